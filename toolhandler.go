package heads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/gate"
	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/toolargs"
)

const (
	defaultToolTimeout     = 10 * time.Second
	defaultToolReplyLimit  = 4000
	defaultToolConcurrency = 64
)

// newToolHandler is the operation of the InvalidErrors.
const newToolHandler = "NewToolHandler"

// ToolHandler is an http.Handler that answers the tool calls of a head with the
// functions of AddTool and AddToolFunc. Tools returns the definitions to register
// with the service, so that definitions and functions can't differ.
//
// It routes by the end of the path: the last segment is the name of the tool, and
// the one before it is the path token, if there is one. The rest of the path is
// ignored. So the handler can be mounted under any prefix, with http.StripPrefix
// or without, and behind a proxy that removes a prefix. Mount it at the path of
// its base URL, or above.
//
// Before a tool is reached, the answer is 405 for any method but POST, 404 for an
// unknown tool or a wrong path token, which look alike, 401 if the check of
// WithToolAuth returns an error, and 413 for a body above 64 KiB. After that it is
// always 200 with {"message": "..."}, since the service ignores other statuses.
// After Shutdown, every call of a tool is answered 200.
//
// A ToolHandler is safe for concurrent use.
type ToolHandler struct{ server *toolServer }

// toolServer is behind a pointer, so that a ToolHandler can be copied without the
// lock.
type toolServer struct {
	base       string // without a slash at its end
	pathToken  Secret
	tokenSum   [sha256.Size]byte
	check      func(*http.Request) error
	timeout    time.Duration
	location   *time.Location // nil without WithToolLocation
	replyLimit int
	logger     *slog.Logger
	observers  observers[ToolCallInfo]
	running    chan struct{} // holds one value for each function that runs
	gate       *gate.Gate

	mu    sync.RWMutex
	tools map[string]*servedTool
	order []string // names, as they were added
}

// servedTool is a definition with the function that answers it.
type servedTool struct {
	tool   Tool
	fields toolargs.Fields
	call   func(ctx context.Context, values []json.RawMessage) (string, error) // one value for each field
	logger *slog.Logger                                                        // with the name of the tool
}

// ToolHandlerOption configures a ToolHandler.
type ToolHandlerOption func(*ToolHandler) error

// WithToolLogger logs what the model does not learn: errors and panics of
// functions, timeouts, refused calls. At the debug level it also logs why a
// request was answered 404 or 405. It logs no arguments, replies or paths. Without
// it the handler is silent.
func WithToolLogger(l *slog.Logger) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if l == nil {
			return invalid(newToolHandler, "tool logger", "is nil", "leave the option out to log nothing")
		}
		h.server.logger = l
		return nil
	}
}

// WithPathToken puts secret into every tool URL, before the name of the tool,
// so that only callers who know the URL can call. The service is not known to
// sign or authenticate its tool calls. Use 16 random bytes or more, for example in
// hexadecimal. The secret must have 16 characters or more, all of them letters,
// digits, "-", "_", "." or "~".
func WithPathToken(secret string) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if err := faultOf(newToolHandler, "path token", check.PathToken(secret)); err != nil {
			return err
		}
		h.server.pathToken = NewSecret(secret)
		h.server.tokenSum = sha256.Sum256([]byte(secret))
		return nil
	}
}

// WithToolAuth calls check for every call that reaches a tool. If check returns an
// error, the call is answered 401, and the error is only logged. A check that
// reads the body must put it back into r.Body. It can read at most 64 KiB.
func WithToolAuth(check func(*http.Request) error) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if check == nil {
			return invalid(newToolHandler, "tool auth", "is nil, which would let everyone in", "give a function or leave the option out")
		}
		h.server.check = check
		return nil
	}
}

// WithToolTimeout sets how long a function may take. Its context ends then, and
// the model is told that the tool failed. The default is 10 seconds.
func WithToolTimeout(d time.Duration) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if d <= 0 {
			return invalid(newToolHandler, "tool timeout", fmt.Sprintf("is %v", d), "give a duration above 0")
		}
		h.server.timeout = d
		return nil
	}
}

// WithToolReplyLimit sets how many characters of a reply reach the model. A longer
// one is cut and ends in "…". The default is 4000.
func WithToolReplyLimit(characters int) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if characters < 1 {
			return invalid(newToolHandler, "tool reply limit", fmt.Sprintf("is %d", characters), "give a number above 0")
		}
		h.server.replyLimit = characters
		return nil
	}
}

// WithToolConcurrency sets how many functions may run at once, including those
// that go on after their call was answered. Above that, a call is answered at
// once, and the model is told to call the tool again. The default is 64.
func WithToolConcurrency(n int) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if n < 1 {
			return invalid(newToolHandler, "tool concurrency", fmt.Sprintf("is %d", n), "give a number above 0")
		}
		h.server.running = make(chan struct{}, n)
		return nil
	}
}

// WithToolLocation sets the time zone of a time argument without a zone, and of a
// date without a time. Without this option the model is asked for the zone of such
// a time, and a date is midnight in UTC.
func WithToolLocation(l *time.Location) ToolHandlerOption {
	return func(h *ToolHandler) error {
		if l == nil {
			return invalid(newToolHandler, "tool location", "is nil", "give a location, or leave the option out to have the model asked")
		}
		h.server.location = l
		return nil
	}
}

// WithToolObserver tells o of every call that reaches a tool, for metrics and
// tracing. Start is called once the tool is found, with its name alone. The check
// of WithToolAuth and the function run with the context that Start returns. End is
// called after the answer was written. Both are called on the goroutine of the
// request.
func WithToolObserver(o Observer[ToolCallInfo]) ToolHandlerOption {
	return func(h *ToolHandler) error {
		h.server.observers = append(h.server.observers, o)
		return o.check(newToolHandler, "WithToolObserver")
	}
}

// NewToolHandler returns a handler without tools. At baseURL the handler can be
// reached from the internet. It is an https URL, or http on a loopback host, with
// or without a path.
//
// NewToolHandler returns an *InvalidError for each fault in baseURL and the
// options, joined if there are several.
func NewToolHandler(baseURL string, opts ...ToolHandlerOption) (*ToolHandler, error) {
	h := &ToolHandler{&toolServer{
		timeout:    defaultToolTimeout,
		replyLimit: defaultToolReplyLimit,
		logger:     slog.New(slog.DiscardHandler),
		running:    make(chan struct{}, defaultToolConcurrency),
		gate:       new(gate.Gate),
		tools:      make(map[string]*servedTool),
	}}
	base, faults := toolBase(baseURL)
	h.server.base = base
	for _, opt := range opts {
		if opt == nil {
			faults.add(invalid(newToolHandler, "option", "is nil", "leave it out"))
			continue
		}
		faults.add(opt(h))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return h, nil
}

// toolBase returns baseURL without a slash at its end.
func toolBase(baseURL string) (base string, faults faultList) {
	u, found := check.URL(baseURL, check.ToolBase)
	faults = faultsOf(newToolHandler, "base URL", found)
	if u == nil {
		return "", faults
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), faults
}

// AddTool makes f the answer to calls of the tool name.
//
// In is a struct; its fields are the parameters. The json tag gives the name,
// the jsonschema tag the description, and the Go kind the type: string, number,
// integer, boolean, array or object. A time.Time and a type with UnmarshalText
// are strings, a time.Duration is a string like "90s", a byte slice is a string
// in base64, a json.RawMessage is an object that takes any value. The fields of an
// embedded struct are fields of In. A field is optional when it is a pointer or its
// json tag has omitempty or omitzero. Fields of inner structs can't be registered.
// Describe nested fields in the outer field's tag.
//
// Arguments are read leniently: numbers and booleans in strings, a number for a
// string, a single value for a list, null or a blank string for an optional
// one. If an argument is missing or can't be used, f is not called, and the model
// is told which one in a plain sentence.
//
// The model reads the string that f returns, or the text of a ToolError. After any
// other error, a panic or a timeout it reads only that the tool failed. Line breaks
// become spaces, and WithToolReplyLimit limits the text. What a function returns
// after its context has ended is ignored.
//
// AddTool refuses a definition that the service could not load, a name that is
// taken, and fields that no argument can fill. It returns an *InvalidError for
// each fault, joined if there are several. It may be called while h is serving.
func AddTool[In any](h *ToolHandler, name, description string, f func(context.Context, In) (string, error)) error {
	var call typedCall
	if f != nil {
		call = func(ctx context.Context, fields toolargs.Fields, values []json.RawMessage) (string, error) {
			var in In
			if faults := fields.Decode(values, reflect.ValueOf(&in).Elem()); faults != nil {
				return "", faults
			}
			return f(ctx, in)
		}
	}
	return h.addTyped(name, description, reflect.TypeFor[In](), call)
}

// typedCall decodes the arguments of a tool and calls its function.
type typedCall func(ctx context.Context, fields toolargs.Fields, values []json.RawMessage) (string, error)

// addTyped is AddTool without the type parameter, so that a program has it once. The call is nil
// if the function is.
func (h *ToolHandler) addTyped(name, description string, in reflect.Type, call typedCall) error {
	const operation = "AddTool"
	if h == nil || h.server == nil {
		return toolFault(operation, name, "handler", "is not one that NewToolHandler returned", "make one first")
	}
	fields, schemaFaults := toolargs.FromStruct(in, toolargs.Options{Location: h.server.location, Stamp: reflect.TypeFor[Time]()})
	var faults faultList
	for _, f := range schemaFaults {
		faults.add(toolFault(operation, name, f.Part, f.Problem, f.Remedy))
	}
	if call == nil {
		faults.add(toolFault(operation, name, "function", "is nil", "give the function that answers"))
	}
	return h.server.add(operation, &servedTool{
		tool:   Tool{Name: name, Description: description, Parameters: toolParameters(fields.List())},
		fields: fields,
		call:   func(ctx context.Context, values []json.RawMessage) (string, error) { return call(ctx, fields, values) },
		logger: h.server.logger.With(slog.String("tool", name)),
	}, faults)
}

// ToolSpec defines a tool whose parameters are known only when the program
// runs. AddToolFunc takes it.
type ToolSpec struct {
	Name, Description string
	Parameters        []ToolParameter
	Required          []string // names of parameters
}

// AddToolFunc makes f the answer to calls of the tool t.Name. AddTool does the
// same for parameters that a Go struct can describe.
//
// The arguments are a JSON object of the declared parameters that were given, in
// the order of t.Parameters. Each value is read as AddTool reads an argument of
// its type, so f finds a number for "5" and a list for a single value; see
// ReadArgument. Null is ignored, and so is a blank string for any type but string.
// If an argument of t.Required is missing or one can't be used, f is not called,
// and the model is told which one.
//
// A type may also be two or more of string, number, integer and boolean, such as
// "string|integer". It is registered as string, and f finds the scalar that was
// given as it came.
//
// What f returns is handled as with AddTool. AddToolFunc refuses what AddTool
// refuses, and a name in t.Required that is no parameter or occurs twice.
// The spec is copied. AddToolFunc may be called while h is serving.
func AddToolFunc(h *ToolHandler, t ToolSpec, f func(ctx context.Context, arguments json.RawMessage) (string, error)) error {
	const operation = "AddToolFunc"
	if h == nil || h.server == nil {
		return toolFault(operation, t.Name, "handler", "is not one that NewToolHandler returned", "make one first")
	}
	faults := checkRequired(operation, t)
	if f == nil {
		faults.add(toolFault(operation, t.Name, "function", "is nil", "give the function that answers"))
	}
	tool := Tool{Name: t.Name, Description: t.Description, Parameters: slices.Clone(t.Parameters)}
	list := make([]toolargs.Field, len(tool.Parameters))
	for i := range tool.Parameters {
		p := &tool.Parameters[i]
		list[i] = toolargs.Declared(p.Name, p.Type, slices.Contains(t.Required, p.Name))
		p.Type = list[i].WireType()
		if !slices.Contains(toolTypes, p.Type) { // the handler reads values of these alone
			faults.add(toolFault(operation, t.Name, "parameter "+quote(p.Name), fmt.Sprintf("type %s is unknown", quote(p.Type)), "want one of "+strings.Join(toolTypes, ", ")))
		}
	}
	fields := toolargs.NewFields(list)
	call := func(ctx context.Context, values []json.RawMessage) (string, error) {
		arguments, argumentFaults := fields.Object(values)
		if argumentFaults != nil {
			return "", argumentFaults
		}
		return f(ctx, arguments)
	}
	return h.server.add(operation, &servedTool{
		tool:   tool,
		fields: fields,
		call:   call,
		logger: h.server.logger.With(slog.String("tool", t.Name)),
	}, faults)
}

func toolFault(operation, tool, part, problem, remedy string) error {
	return invalid(operation, "tool "+strconv.Quote(tool)+" "+part, problem, remedy)
}

func checkRequired(operation string, t ToolSpec) (faults faultList) {
	for i, name := range t.Required {
		switch {
		case slices.Contains(t.Required[:i], name):
			faults.add(toolFault(operation, t.Name, "required "+quote(name), "is given twice", "leave one out"))
		case !slices.ContainsFunc(t.Parameters, func(p ToolParameter) bool { return p.Name == name }):
			faults.add(toolFault(operation, t.Name, "required "+quote(name), "is not the name of a parameter", "declare it or leave it out"))
		}
	}
	return faults
}

func toolParameters(fields []toolargs.Field) []ToolParameter {
	parameters := make([]ToolParameter, len(fields))
	for i, f := range fields {
		parameters[i] = ToolParameter{Name: f.Name, Type: f.WireType(), Description: f.Description}
	}
	return parameters
}

// ReadArgument reads raw, one JSON value, as AddTool reads an argument of the
// type, and returns it as a JSON value of that type: 5 for "5" and for 5.0 if the
// type is integer, "7" for 7 if it is string, [7] if it is array. For functions
// given to AddToolFunc, which read what is inside a list or an object themselves.
//
// An error of ReadArgument is meant for the model, which reads the text if the
// function returns it. A type that a tool's parameter can't have and a value that
// is not JSON are InvalidErrors.
func ReadArgument(wireType string, raw json.RawMessage) (json.RawMessage, error) {
	const operation = "ReadArgument"
	raw = bytes.TrimSpace(raw)
	switch {
	case !slices.Contains(toolTypes, wireType):
		return nil, invalid(operation, "type "+quote(wireType), "is unknown", fmt.Sprintf("want one of %s", strings.Join(toolTypes, ", ")))
	case !json.Valid(raw):
		return nil, invalid(operation, "value", "is not JSON", "give one JSON value")
	}
	value, faults := toolargs.Read(wireType, raw)
	if faults != nil {
		return nil, faults
	}
	return value, nil
}

// add serves t unless there are faults, those given or those in its definition.
func (s *toolServer) add(operation string, t *servedTool, faults faultList) error {
	name := url.PathEscape(t.tool.Name)
	// Validated without the path token, which an error could quote.
	t.tool.URL = s.base + "/" + name
	faults.add(t.tool.validate(operation, nil))
	if !s.pathToken.IsZero() {
		t.tool.URL = s.base + "/" + s.pathToken.Reveal() + "/" + name
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools[t.tool.Name] != nil {
		faults.add(toolFault(operation, t.tool.Name, "name", "is taken by a tool of this handler", "choose another"))
	}
	if err := faults.join(); err != nil {
		return err
	}
	s.tools[t.tool.Name] = t
	s.order = append(s.order, t.tool.Name)
	return nil
}

// Tools returns the definitions in the order in which they were added, to be passed
// to ConversationSettingsService.SetTools. Their URLs hold the path token.
func (h *ToolHandler) Tools() []Tool {
	if h.server == nil {
		return nil
	}
	h.server.mu.RLock()
	defer h.server.mu.RUnlock()
	tools := make([]Tool, len(h.server.order))
	for i, name := range h.server.order {
		tools[i] = h.server.tools[name].tool
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return tools
}

// Shutdown waits until the calls under way are answered and their functions have
// returned, including those that go on after their call was answered. If ctx ends
// before that, Shutdown returns the error of ctx. From its start no further
// function is called: a call that reaches a tool is answered 200, and the model is
// told to call the tool again, which may reach another instance.
//
// Call it after, or at the same time as, the Shutdown of the http.Server.
func (h *ToolHandler) Shutdown(ctx context.Context) error {
	if h.server == nil {
		return nil
	}
	return h.server.gate.Close(ctx)
}

// ServeHTTP answers one tool call.
func (h *ToolHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := httpbody.Start(w, toolBodyTimeout)
	if h.server == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		h.server.logger.DebugContext(r.Context(), "request is not a tool call: wrong method", slog.String("method", mask.OneLine(r.Method, 16)))
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	t := h.server.route(r)
	if t == nil {
		http.NotFound(w, r)
		return
	}
	h.server.serve(w, r, t, body)
}

// route returns the tool that the path ends in, or nil. It looks at the token
// and the name alike before it decides, so that the time shows nothing either.
func (s *toolServer) route(r *http.Request) *servedTool {
	rest, name := cutLastSegment(r.URL.Path)
	_, token := cutLastSegment(rest)
	sum := sha256.Sum256([]byte(token))
	wrongToken := !s.pathToken.IsZero() && subtle.ConstantTimeCompare(sum[:], s.tokenSum[:]) == 0

	s.mu.RLock()
	t := s.tools[name]
	s.mu.RUnlock()
	if t != nil && !wrongToken {
		return t
	}
	// The path is not logged: if the handler is mounted at the wrong place, any
	// segment may be the token.
	s.logger.DebugContext(r.Context(), "request is not a tool call: no tool at its path", slog.Bool("known_tool", t != nil),
		slog.Bool("right_path_token", !wrongToken), slog.Int("path_segments", strings.Count(r.URL.Path, "/")))
	return nil
}

func cutLastSegment(path string) (before, segment string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}
