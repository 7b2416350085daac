package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/headstest"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := group(&cobra.Command{Use: "tools", Short: "List, change and check the tools of a head"})
	cmd.AddCommand(a.toolsListCommand(), a.toolsPutCommand(), a.toolsRemoveCommand(), a.toolsCheckCommand(), a.toolsCallCommand())
	return cmd
}

func (a *app) toolsListCommand() *cobra.Command {
	var format string
	var secrets bool
	cmd := &cobra.Command{
		Use: "list ID", Short: "List the tools of a head", Args: want(1, 1, "the id of a head"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.getHead(cmd, args[0])
			if err != nil {
				return err
			}
			if h, _, err = shownHead(h, secrets); err != nil {
				return err
			}
			tools := []heads.Tool{}
			if h.ConversationSettings != nil {
				tools = append(tools, h.ConversationSettings.Tools...)
			}
			return a.print(format, tools, func() { a.printTools(tools) })
		},
	}
	outputFlag(cmd, &format)
	showSecretsFlag(cmd, &secrets)
	return cmd
}

func (a *app) printTools(tools []heads.Tool) {
	rows := [][]string{{"NAME", "PARAMETERS", "URL", "DESCRIPTION"}}
	for _, t := range tools {
		var parameters []string
		for _, p := range t.Parameters {
			parameters = append(parameters, strings.TrimSuffix(p.Name+":"+p.Type, ":"))
		}
		rows = append(rows, []string{t.Name, strings.Join(parameters, ","), t.URL, t.Description})
	}
	a.stdout.Table(rows)
}

func (a *app) toolsPutCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "put ID -f TOOL.yaml", Short: "Add a tool to a head, or replace the one of the same name", Args: want(1, 1, "the id of a head"),
		Long: `Put adds a tool to a head, or replaces the one of the same name. The file is YAML
or JSON; {file: PATH} stands for any text:

  name: order_status
  description: Tells where an order is.
  url: https://example.com/tools/order_status
  parameters:
    - {name: order, type: string, description: The number of the order.}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkID(args[0]); err != nil {
				return err
			}
			tool, err := a.readTool(cmd, file)
			if err != nil {
				return err
			}
			a.noteTypesOf(tool)
			c, err := a.client()
			if err != nil {
				return err
			}
			if _, err := c.ConversationSettings.PutTool(cmd.Context(), args[0], tool); err != nil {
				return err
			}
			a.say("put %s", tool.Name)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the tool from `FILE`; - is stdin")
	return cmd
}

// readTool reads the file of one tool and refuses what could keep a head from
// loading.
func (a *app) readTool(cmd *cobra.Command, file string) (heads.Tool, error) {
	if file == "" {
		return heads.Tool{}, usage("%s wants -f with the file of a tool", cmd.CommandPath())
	}
	text, err := a.readYAML("the file of the tool", file)
	if err != nil {
		return heads.Tool{}, err
	}
	tool, err := headsfile.ParseTool(text, filepath.Dir(file))
	if err == nil {
		err = tool.Validate()
	}
	if err != nil {
		return heads.Tool{}, inFile(file, err)
	}
	return tool, nil
}

// parameterTypes are those that the contract names.
var parameterTypes = []string{"string", "number", "integer", "boolean", "array", "object"}

// noteTypesOf notes the types of parameters that are missing or unknown.
func (a *app) noteTypesOf(tools ...heads.Tool) {
	for _, t := range tools {
		for _, p := range t.Parameters {
			field := fmt.Sprintf("tool %q parameter %q", show.Line(t.Name), show.Line(p.Name))
			switch {
			case p.Type == "":
				a.note("note: %s has no type; give it one of %s", field, strings.Join(parameterTypes, ", "))
			case !slices.Contains(parameterTypes, p.Type):
				a.note("note: %s has the unknown type %q%s", field, show.Line(p.Type), similar.Hint(p.Type, parameterTypes))
			}
		}
	}
}

func (a *app) toolsRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID NAME", Short: "Remove a tool from a head", Args: want(2, 2, "the id of a head and the name of a tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clientFor(args[0])
			if err != nil {
				return err
			}
			settings, err := c.ConversationSettings.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, t := range settings.Tools {
				if t.Name == args[1] {
					_, err := c.ConversationSettings.RemoveTool(cmd.Context(), args[0], args[1])
					if err == nil {
						a.say("removed %s", show.Line(args[1]))
					}
					return err
				}
				names = append(names, t.Name)
			}
			a.note("the head has no tool %q%s", show.Line(args[1]), similar.Hint(args[1], names))
			a.say("unchanged")
			return nil
		},
	}
}

func (a *app) toolsCheckCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "check ID", Short: "Find what is wrong with the tools of a head", Args: want(1, 1, "the id of a head"),
		Long: `Check tells what keeps the tools of a head from working: definitions that keep the
head from loading, and names that the prompt doesn't use. It ends with 1 if it
finds a problem.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clientFor(args[0])
			if err != nil {
				return err
			}
			e, err := examine(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			findings := toolFindings(e)
			err = a.print(format, findings, func() { a.printFindings(findings) })
			problem := func(f heads.Finding) bool { return f.Severity != heads.SeverityNote }
			if err == nil && slices.ContainsFunc(findings, problem) {
				return exit(exitFailed)
			}
			return err
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

// toolFindings returns what was found about the tools of a head, never nil.
func toolFindings(e *heads.Examination) []heads.Finding {
	findings := []heads.Finding{}
	for _, f := range e.Findings {
		if strings.HasPrefix(f.Subject, "tool ") || strings.HasPrefix(f.Code, "tool") {
			findings = append(findings, f)
		}
	}
	return findings
}

func (a *app) printFindings(findings []heads.Finding) {
	if len(findings) == 0 {
		a.say("nothing found")
		return
	}
	rows := [][]string{{"SEVERITY", "CODE", "SUBJECT", "PROBLEM", "REMEDY"}}
	for _, f := range findings {
		rows = append(rows, []string{fmt.Sprint(f.Severity), f.Code, f.Subject, f.Problem, f.Remedy})
	}
	a.stdout.Table(rows)
}

func (a *app) toolsCallCommand() *cobra.Command {
	return &cobra.Command{
		Use: "call ID TOOL [ARG=VALUE]...", Short: "Call a tool of a head as the service does", Args: want(2, -1, "the id of a head, the name of a tool, and arguments"),
		Long: `Call sends a call to the URL of a registered tool, with the arguments and the
metadata of a new session, and prints the reply. The service is only asked for the
head. It ends with 1 if the service could not use the reply, and says what is wrong.

ARG=VALUE is a text, or what the tool declares: a number, a boolean, a list or an
object is read as JSON. ARG:=JSON is always JSON.`,
		Example: "  headsctl tools call 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01 order_status order=7",
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.getHead(cmd, args[0])
			if err != nil {
				return err
			}
			tool, err := toolNamed(h, args[1])
			if err != nil {
				return err
			}
			values, err := toolArguments(tool, args[2:])
			if err != nil {
				return err
			}
			call, err := callTool(cmd.Context(), h, tool, values)
			if err != nil {
				return err
			}
			if len(call.Reply) > 0 {
				a.stdout.Document(call.Reply)
			}
			if call.Problem != "" {
				return fmt.Errorf("the service could not use the reply of tool %s: %s", show.Line(tool.Name), show.Line(call.Problem))
			}
			return nil
		},
	}
}

// toolNamed finds a tool of a head.
func toolNamed(h *heads.Head, name string) (heads.Tool, error) {
	var names []string
	if h.ConversationSettings != nil {
		for _, t := range h.ConversationSettings.Tools {
			if t.Name == name {
				return t, nil
			}
			names = append(names, t.Name)
		}
	}
	return heads.Tool{}, fmt.Errorf("the head has no tool %q%s; headsctl tools list shows them", show.Line(name), similar.Hint(name, names))
}

// toolArguments reads ARG=VALUE and ARG:=JSON. It reports all faults together.
func toolArguments(tool heads.Tool, assignments []string) (map[string]any, error) {
	types := map[string]string{}
	var names []string
	for _, p := range tool.Parameters {
		types[p.Name] = p.Type
		names = append(names, p.Name)
	}
	values := map[string]any{}
	var faults []error
	for _, text := range assignments {
		name, given, found := strings.Cut(text, "=")
		name, isJSON := strings.CutSuffix(name, ":")
		_, twice := values[name]
		declared, known := types[name]
		isJSON = isJSON || declared != "string" && slices.Contains(parameterTypes, declared)
		switch {
		case !found:
			faults = append(faults, fmt.Errorf("%q is not an argument; write ARG=VALUE or ARG:=JSON", show.Line(text)))
		case !known:
			faults = append(faults, fmt.Errorf("the tool has no parameter %q%s", show.Line(name), similar.Hint(name, names)))
		case twice:
			faults = append(faults, fmt.Errorf("argument %s is given twice; give it once", name))
		case isJSON && !json.Valid([]byte(given)):
			faults = append(faults, fmt.Errorf("argument %s is of type %q, and its value is not JSON", name, show.Line(declared)))
		case isJSON:
			values[name] = json.RawMessage(given)
		default:
			values[name] = given
		}
	}
	return values, faulty(errors.Join(faults...))
}

// callTool calls a tool through an emulator that has the head, so problems of a reply have the
// emulator's words.
func callTool(ctx context.Context, h *heads.Head, tool heads.Tool, values map[string]any) (*headstest.ToolCall, error) {
	e := headstest.NewEmulator(headstest.WithLoopbackHTTP())
	defer e.Close()
	head, err := json.Marshal(map[string]any{
		"id": h.ID, "name": h.Name, "language": h.Language, "operationMode": h.OperationMode, "isActive": h.IsActive || !h.Has("isActive"),
		"publicId": h.PublicID, "orgId": h.OrgID, "orgPublicId": h.OrgPublicID,
	})
	if err != nil {
		return nil, err
	}
	definition, err := json.Marshal(tool)
	if err != nil {
		return nil, err
	}
	if _, err := e.Import(headstest.Seed{Heads: []json.RawMessage{head}}); err != nil {
		return nil, inService(err)
	}
	if err := e.AddTool(h.ID, definition); err != nil {
		return nil, inService(err)
	}
	call, err := e.CallTool(ctx, h.ID, tool.Name, values)
	return call, inService(err)
}

// inService removes the name of the emulator from an error, which is about the service here.
func inService(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("the service would not call the tool: %s", strings.ReplaceAll(err.Error(), "headstest: ", ""))
}
