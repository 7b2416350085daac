package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/fleet"
)

func (a *app) mcpCommand() *cobra.Command {
	var allowWrites bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP on stdin and stdout", Args: want(0, 0, "no arguments"),
		Long: `Mcp is an MCP server on stdin and stdout, for programs that work with tools. It
ends when stdin ends and every call has its reply. Its tools read heads and
change nothing:

  heads_get {id}            the head, as get prints it
  heads_examine {id}        what keeps the head from working, as doctor prints it
  heads_plan {spec}         what apply would change; spec is the text of a heads.yaml
  webhooks_list {id}        the webhooks of the head
  tools_check {id}          what is wrong with the tools of the head

With --allow-writes there are two more:

  heads_apply {spec, confirm?}            bring heads to the state of the spec
  heads_convert {ids, voice?, confirm?}   convert heads to streaming mode

Without confirm they change nothing and return the changes with a hash of them,
which covers full values and ids and ends with the process. Called again with this
hash as confirm, they make these changes. If others would be made by now, they
change nothing and return those with their hash.

Replies are those of -o json, with lists under items. Keys and tokens show as
[redacted], and a spec can't hold {file: PATH}.`,
		Example: "  headsctl mcp --allow-writes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			s := &mcpServer{a: a, client: c, key: make([]byte, sha256.Size)}
			_, _ = rand.Read(s.key) // it never fails
			return s.serve(cmd.Context(), allowWrites)
		},
	}
	cmd.Flags().BoolVar(&allowWrites, "allow-writes", false, "serve the tools that change heads, too")
	return cmd
}

// mcpServer answers the calls of one client.
type mcpServer struct {
	a       *app
	client  *heads.Client
	key     []byte     // of the confirmations; ends with the process
	writing sync.Mutex // one call that writes at a time
}

const mcpInstructions = `Reads and looks after heads of the service. The tools that change heads, heads_apply and heads_convert, ` +
	`are there only if the server was started with --allow-writes. Show a person the changes of their dry run before you confirm it.`

// serve returns when stdin ends and every call has its reply, or when ctx ends.
// Heads that have begun to change are finished by then.
func (s *mcpServer) serve(ctx context.Context, allowWrites bool) error {
	outliveReaders()
	server := mcp.NewServer(
		&mcp.Implementation{Name: "headsctl", Version: heads.Version},
		&mcp.ServerOptions{Instructions: mcpInstructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	server.AddReceivingMiddleware(endingWith(ctx))
	s.addReads(server)
	if allowWrites {
		s.addWrites(server)
	}
	err := server.Run(ctx, answering{&mcp.IOTransport{Reader: s.a.stdin, Writer: unclosed{s.a.stdout}}})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the session broke off: %w; headsctl mcp wants an MCP client on stdin and stdout", err)
	}
	return err
}

// unclosed keeps the server from closing stdout.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// endingWith cancels the calls under way when ctx ends. The library waits for
// them and lets them run to their end otherwise.
func endingWith(ctx context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(call context.Context, method string, r mcp.Request) (mcp.Result, error) {
			call, cancel := context.WithCancel(call)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return next(call, method, r)
		}
	}
}

// The arguments of the tools.
type (
	headArguments struct {
		ID string `json:"id" jsonschema:"the UUID in the head's id field"`
	}
	planArguments struct {
		Spec string `json:"spec" jsonschema:"the text of a heads.yaml: a list under heads with id and what is wanted of each head (set, voice, streaming, delivery, webhooks, prune_webhooks, tools); {file: PATH} is refused"`
	}
	applyArguments struct {
		planArguments
		Confirm string `json:"confirm,omitempty" jsonschema:"the value of confirm that the dry run returned; absent for a dry run"`
	}
	convertArguments struct {
		IDs     []string `json:"ids" jsonschema:"the UUIDs in the id fields of the heads"`
		Voice   string   `json:"voice,omitempty" jsonschema:"the voice that the heads get, as PROVIDER/ID; absent if they keep theirs"`
		Confirm string   `json:"confirm,omitempty" jsonschema:"the value of confirm that the dry run returned; absent for a dry run"`
	}
)

func (s *mcpServer) addReads(server *mcp.Server) {
	addHeadTool(s, server, "heads_get", "Returns a head.", s.get)
	addHeadTool(s, server, "heads_examine", "Finds what keeps a head from working, with what to do about it.", s.examine)
	addTool(s, server, true, "heads_plan", "Returns what heads_apply would change to bring heads to the wanted state.", s.plan)
	addHeadTool(s, server, "webhooks_list", "Lists the webhooks of a head.", s.webhooks)
	addHeadTool(s, server, "tools_check", "Finds what is wrong with the tools of a head.", s.checkTools)
}

// addHeadTool adds a tool that reads one head.
func addHeadTool(s *mcpServer, server *mcp.Server, name, about string, f func(ctx context.Context, id string) (any, error)) {
	addTool(s, server, true, name, about, func(ctx context.Context, in headArguments) (*mcp.CallToolResult, error) {
		if err := checkID(in.ID); err != nil {
			return nil, err
		}
		v, err := f(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return structured(v)
	})
}

func (s *mcpServer) addWrites(server *mcp.Server) {
	const confirmed = " Without confirm it changes nothing and returns the changes and the hash that confirms them."
	addTool(s, server, false, "heads_apply", "Brings heads to the wanted state."+confirmed, s.apply)
	addTool(s, server, false, "heads_convert", "Converts heads to streaming mode. Their old access URLs stop working."+confirmed, s.convert)
}

// addTool adds a tool that returns errors with the texts of the terminal. It reads the
// arguments itself, since the errors of the library show their values.
func addTool[In any](s *mcpServer, server *mcp.Server, readOnly bool, name, about string, f func(context.Context, In) (*mcp.CallToolResult, error)) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // the type is one of those above
	}
	if ids := schema.Properties["ids"]; ids != nil {
		ids.Type, ids.Types = "array", nil // a slice may be null in Go alone
	}
	tool := &mcp.Tool{Name: name, Description: about, InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}}
	server.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		err := decodeArguments(r.Params.Arguments, &in)
		if err == nil {
			var result *mcp.CallToolResult
			if result, err = f(ctx, in); err == nil {
				return result, nil
			}
		}
		return asFailed(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s.a.errorText(err)}}}, nil)
	})
}

// argumentTypes names the types of arguments.
var argumentTypes = map[reflect.Kind]string{reflect.String: "a string", reflect.Slice: "a list of strings"}

// decodeArguments reads the arguments of a call. No error shows a value.
func decodeArguments(doc []byte, into any) error {
	if len(doc) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		kind, _, _ := strings.Cut(wrong.Value, " ") // "number 5"
		return usage("the argument %s holds a value of type %s; want %s", name, kind, argumentTypes[wrong.Type.Kind()])
	case errors.As(err, &wrong):
		return usage("the arguments are no JSON object")
	default:
		return usage("the arguments can't be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// errorText returns an error as the terminal shows it.
func (a *app) errorText(err error) string { return strings.Join(a.errorLines(err), "\n") }

// structured returns v as a reply, in structured form and as text.
func structured(v any) (*mcp.CallToolResult, error) {
	doc, err := rawjson.Encode(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: doc, Content: []mcp.Content{&mcp.TextContent{Text: string(doc)}}}, nil
}

// itemsReply is a reply that is a list.
type itemsReply[T any] struct {
	Items []T `json:"items"`
}

func (s *mcpServer) get(ctx context.Context, id string) (any, error) {
	h, err := s.client.Heads.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	_, doc, err := shownHead(h, false)
	return doc, err
}

func (s *mcpServer) examine(ctx context.Context, id string) (any, error) {
	e, err := examine(ctx, s.client, id)
	return itemsReply[*heads.Examination]{[]*heads.Examination{e}}, err
}

func (s *mcpServer) webhooks(ctx context.Context, id string) (any, error) {
	list, err := s.client.Webhooks.List(ctx, id)
	return itemsReply[json.RawMessage]{webhookDocuments(list, false)}, err
}

func (s *mcpServer) checkTools(ctx context.Context, id string) (any, error) {
	e, err := examine(ctx, s.client, id)
	if err != nil {
		return nil, err
	}
	return itemsReply[heads.Finding]{toolFindings(e)}, nil
}

// runReply is the reply of a run over many heads.
type runReply struct {
	itemsReply[fleet.Result]
	Counts map[fleet.Outcome]int `json:"counts"`
	Error  string                `json:"error,omitempty"`
}

// dryRunReply tells what a call that writes would change.
type dryRunReply struct {
	Changes []headChange `json:"changes"`
	Confirm string       `json:"confirm"`
	runReply
}

type headChange struct {
	HeadID string `json:"head_id"`
	Label  string `json:"label,omitempty"`
	fleet.Change
}

// specsIn reads the text of a heads.yaml that can't refer to files.
func specsIn(text string) ([]fleet.Spec, error) {
	file, err := headsfile.Parse([]byte(text), headsfile.NoFolder)
	if err != nil {
		return nil, inFile("spec", err)
	}
	if len(file.Environments) > 0 {
		return nil, usage("spec has environments, and this server has the settings of one; leave them out, and give each head its id alone")
	}
	specs, err := file.Specs("")
	if err != nil {
		return nil, inFile("spec", err)
	}
	return specs, nil
}

func (s *mcpServer) plan(ctx context.Context, in planArguments) (*mcp.CallToolResult, error) {
	specs, err := specsIn(in.Spec)
	if err != nil {
		return nil, err
	}
	report, err := fleet.Plan(ctx, s.client, specs, fleet.Options{})
	if err != nil {
		return nil, err
	}
	return structured(runReplyOf(report, planned))
}

func runReplyOf(report *fleet.Report, outcomes []fleet.Outcome) runReply {
	return runReply{itemsReply: itemsReply[fleet.Result]{append([]fleet.Result{}, report.Results...)}, Counts: countsOf(report, outcomes)}
}

func (s *mcpServer) apply(ctx context.Context, in applyArguments) (*mcp.CallToolResult, error) {
	specs, err := specsIn(in.Spec)
	if err != nil {
		return nil, err
	}
	return s.write(ctx, specs, in.Confirm)
}

func (s *mcpServer) convert(ctx context.Context, in convertArguments) (*mcp.CallToolResult, error) {
	if len(in.IDs) == 0 {
		return nil, usage("there are no ids; give those of the heads")
	}
	targets, err := targetsOf(in.IDs)
	if err != nil {
		return nil, err
	}
	specs, err := conversions(targets, in.Voice, false)
	if err != nil {
		return nil, err
	}
	return s.write(ctx, specs, in.Confirm)
}

// write makes the changes that confirm stands for, or returns a dry run.
func (s *mcpServer) write(ctx context.Context, specs []fleet.Spec, confirm string) (*mcp.CallToolResult, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	plan, err := fleet.Plan(ctx, s.client, specs, fleet.Options{})
	if err != nil {
		return nil, err
	}
	dry := s.dryRun(plan)
	switch confirm {
	case dry.Confirm:
		return s.confirmed(ctx, specs, plan)
	case "":
		return structured(dry)
	}
	dry.Error = "nothing was done: the confirmed changes are not those that would be made now; look at changes, and confirm them with the new hash"
	return asFailed(structured(dry))
}

// dryRun returns the changes of a plan and the hash that confirms them. The hash
// covers full values and ids, of which the changes show a part.
func (s *mcpServer) dryRun(plan *fleet.Report) dryRunReply {
	reply := dryRunReply{Changes: []headChange{}, Confirm: hex.EncodeToString(plan.Digest(s.key)), runReply: runReplyOf(plan, planned)}
	for _, r := range plan.Results {
		if r.Outcome != fleet.OutcomePending {
			continue
		}
		for _, c := range r.Changes {
			reply.Changes = append(reply.Changes, headChange{r.HeadID, r.Label, c})
		}
	}
	return reply
}

// confirmed changes the heads that the plan would change, and no other: one that
// was blocked or failed has no changes in the plan that could be confirmed.
func (s *mcpServer) confirmed(ctx context.Context, specs []fleet.Spec, plan *fleet.Report) (*mcp.CallToolResult, error) {
	var pending []fleet.Spec
	var places []int
	confirmed := &fleet.Report{}
	for i, r := range plan.Results {
		if r.Outcome == fleet.OutcomePending {
			pending, places = append(pending, specs[i]), append(places, i)
			confirmed.Results = append(confirmed.Results, r)
		}
	}
	if len(pending) == 0 {
		return structured(runReplyOf(plan, applied))
	}
	report, err := s.applyWithJournal(ctx, pending, confirmed)
	if report == nil {
		return nil, err
	}
	for i, r := range report.Results {
		plan.Results[places[i]] = r
	}
	outcomes := applied
	if plan.Count(fleet.OutcomePending) > 0 { // no longer as they were confirmed
		outcomes = append(slices.Clone(applied), fleet.OutcomePending)
	}
	reply := runReplyOf(plan, outcomes)
	if err != nil {
		reply.Error = s.a.errorText(err)
	}
	if err != nil || plan.Count(fleet.OutcomeFailed)+plan.Count(fleet.OutcomePending) > 0 {
		return asFailed(structured(reply))
	}
	return structured(reply)
}

// applyWithJournal applies what was planned, with the journal of headsctl apply.
func (s *mcpServer) applyWithJournal(ctx context.Context, specs []fleet.Spec, planned *fleet.Report) (*fleet.Report, error) {
	w := &work{a: s.a, flags: &manyFlags{}, client: s.client, specs: specs, planned: planned}
	if err := w.openJournal(false); err != nil {
		return nil, err
	}
	defer w.close()
	return fleet.Apply(ctx, w.client, w.specs, w.options())
}

// asFailed marks a reply as that of a failed call.
func asFailed(result *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if err == nil {
		result.IsError = true
	}
	return result, err
}
