package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// ConversationSettingsService reads and changes the conversation settings of
// heads, and the tools in them.
//
// The service replaces the settings whole. All methods but Replace therefore
// read, change and write back, and keep what they do not know byte for byte.
// Calls of one client for one head wait for each other, so that none undoes
// the work of another; what another program writes between the read and the
// write is overwritten.
type ConversationSettingsService struct{ service }

// ConversationSettings are the settings of a head's conversations. Keys other
// than tools, among them a provider's API key, are kept byte for byte and
// never printed; Extra and SetExtra give access to them.
type ConversationSettings struct {
	Tools []Tool

	raw     []byte // the document, with tools as they were read
	missing bool   // the head that was read does not show its settings
}

// Tool is an external endpoint that a head in operation mode oc may call.
// Keys that this library does not know are kept byte for byte.
//
// The service also stores tools of another shape, and a head with such a tool
// may not load. What can't be read of one leaves its fields zero and keeps its
// bytes: Validate reports what is wrong, and RemoveTool, PutTool, SetTools and
// Modify repair it. A tool that was read from the service and is unchanged is
// never refused when it is sent back.
type Tool struct {
	Name        string // the name that the prompt uses
	Description string
	URL         string // https
	Parameters  []ToolParameter

	raw    []byte
	served bool // read from the service
}

// ToolParameter describes one parameter of a tool. Keys that this library does
// not know are kept byte for byte.
type ToolParameter struct {
	Name        string // the name that the prompt uses
	Type        string // string, number, integer, boolean, array or object
	Description string

	raw []byte
}

// errNoSettings keeps settings that were not shown from being written back.
var errNoSettings error = answerFault("the head holds no conversationSettings, so writing them back could erase what it has")

var opSettingsReplace = newOperation("ConversationSettings.Replace", http.MethodPut, "/head/{headId}/conversation-settings")

// Get reads the conversation settings from the head. A head whose settings are
// null has empty ones. So has a head that does not show them, but Replace then
// refuses the result, since it would erase what the head does have.
//
// GET /head/{id}.
func (s *ConversationSettingsService) Get(ctx context.Context, headID string) (*ConversationSettings, error) {
	if err := s.c.check(ctx, "ConversationSettings.Get"); err != nil {
		return nil, err
	}
	head, err := s.c.Heads.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	return head.settings(), nil
}

// Replace replaces the conversation settings of a head with cs, whole: what cs
// does not hold is gone afterwards. Modify is the safe way to change something.
//
// PUT /head/{headId}/conversation-settings. Tools that Tool.Validate refuses,
// two tools of one name, and settings from a head that did not show them are
// not sent; all faults come back together.
func (s *ConversationSettingsService) Replace(ctx context.Context, headID string, cs *ConversationSettings) (*Response, error) {
	faults := faultList{}
	faults.add(checkHeadID(opSettingsReplace.name, headID))
	if cs == nil {
		faults.add(invalid(opSettingsReplace.name, "settings", "are nil; give empty ones to remove all tools and settings"))
	} else {
		if cs.missing {
			faults.add(invalid(opSettingsReplace.name, "settings", "come from a head that does not show its conversationSettings, so sending them could erase what the head has; start from new ConversationSettings to do so"))
		}
		faults.add(validateTools(opSettingsReplace.name, cs.Tools, cs.Tools))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.put(ctx, headID, cs)
}

// Modify reads the conversation settings of a head, runs change on them and
// writes them back whole. It returns them as they were written. When nothing
// changed, nothing is sent.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. A head that does
// not show its settings, not even as null, is a DecodeError: writing them back
// could erase what the head has. If a head that is not in operation mode oc is
// given a tool, Modify returns an InvalidError, since the head could never call
// it. An error of change is returned as it is, and nothing is sent. If the
// answer to the write is of unknown shape, Modify reads the head again and
// returns an error unless it shows the change. change must not itself change settings of the same head through the
// same client: it would wait for itself until the context ends.
func (s *ConversationSettingsService) Modify(ctx context.Context, headID string, change func(*ConversationSettings) error) (*ConversationSettings, error) {
	const operation = "ConversationSettings.Modify"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	if change == nil {
		faults.add(invalid(operation, "change", "is nil; give a function that changes the settings"))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, change)
}

// SetTools makes tools the tools of a head, all others are removed. Unknown
// keys of the settings are kept, and so are those of tools and parameters that
// have the name of an old one. Without tools, all are removed.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. Refuses what
// Modify and Tool.Validate refuse.
func (s *ConversationSettingsService) SetTools(ctx context.Context, headID string, tools ...Tool) (*ConversationSettings, error) {
	const operation = "ConversationSettings.SetTools"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	faults.add(validateTools(operation, tools, built(tools)))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		replaced := make([]Tool, len(tools))
		for i, t := range tools {
			replaced[i] = t.inherit(cs.tool(t.Name))
		}
		cs.Tools = replaced
		return nil
	})
}

// PutTool adds a tool to a head, or replaces the one of the same name. All
// other tools are left as they are, even one that Tool.Validate would refuse.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings. Refuses what
// Modify and Tool.Validate refuse.
func (s *ConversationSettingsService) PutTool(ctx context.Context, headID string, t Tool) (*ConversationSettings, error) {
	const operation = "ConversationSettings.PutTool"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	if t.Name == "" || !t.unchanged() { // one without a name replaces none
		faults.add(t.validate(operation))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		if old := cs.tool(t.Name); old != nil {
			*old = t.inherit(old)
			return nil
		}
		cs.Tools = append(cs.Tools, t)
		return nil
	})
}

// RemoveTool removes the tool of that name from a head. A head without it is
// left as it is, which is no error.
//
// GET /head/{id}, PUT /head/{headId}/conversation-settings.
func (s *ConversationSettingsService) RemoveTool(ctx context.Context, headID, name string) (*ConversationSettings, error) {
	const operation = "ConversationSettings.RemoveTool"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	faults.add(checkText(operation, "tool name", name, "give the name of the tool to remove"))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return s.modify(ctx, operation, headID, func(cs *ConversationSettings) error {
		cs.Tools = slices.DeleteFunc(cs.Tools, func(t Tool) bool { return t.Name == name })
		return nil
	})
}

func (s *ConversationSettingsService) modify(ctx context.Context, operation, headID string, change func(*ConversationSettings) error) (*ConversationSettings, error) {
	unlock, err := s.c.lock(ctx, operation, headLock("settings", headID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	head, err := s.c.Heads.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	if !head.Has("conversationSettings") {
		return nil, newDecodeError(operation, head.Raw, errNoSettings)
	}
	before, after := head.settings(), head.settings().clone()
	if err := change(after); err != nil {
		return nil, err
	}
	if bytes.Equal(before.document(), after.document()) {
		return after, nil
	}
	given := before.given(after)
	if head.OperationMode != OperationModeOC && len(given) > 0 {
		return nil, invalid(operation, "tools", "hold %q, which head %s can't call in operation mode %q; set operationMode oc first (HeadUpdate.OperationMode)",
			given[0].Name, headID, head.OperationMode)
	}
	if err := validateTools(operation, after.Tools, given); err != nil {
		return nil, err
	}
	answer, err := s.put(ctx, headID, after)
	if err != nil {
		return nil, err
	}
	read := func() (*ConversationSettings, error) { return s.Get(ctx, headID) }
	shown := func(now *ConversationSettings) bool { return sameJSON(now.document(), after.document()) }
	if err := confirm(operation, answer, headID, read, shown); err != nil {
		return nil, err
	}
	return after, nil
}

// put writes settings that were validated.
func (s *ConversationSettingsService) put(ctx context.Context, headID string, cs *ConversationSettings) (*Response, error) {
	body := rawjson.AppendMember([]byte{'{'}, "conversationSettings", cs.document())
	return doPlain(ctx, s.c, opSettingsReplace, payload{param: headID, body: append(body, '}')})
}

// Extra returns a copy of the value of a key other than tools.
func (cs *ConversationSettings) Extra(key string) (json.RawMessage, bool) {
	if key == "tools" {
		return nil, false
	}
	value, ok := rawjson.Value(cs.raw, key)
	return bytes.Clone(value), ok
}

// SetExtra sets a key other than tools; a nil value removes it. A value that
// is not JSON, an empty key and the key tools give an InvalidError.
func (cs *ConversationSettings) SetExtra(key string, value json.RawMessage) error {
	const operation = "ConversationSettings.SetExtra"
	switch {
	case strings.TrimSpace(key) == "":
		return checkText(operation, "key", key, "give the name of a setting")
	case key == "tools":
		return invalid(operation, "key", "\"tools\" has a field of its own; use ConversationSettings.Tools")
	case value != nil && !json.Valid(value):
		return invalid(operation, oneLine(key, maxLabel), "has a value that is not JSON; give a JSON value, or nil to remove the key")
	}
	cs.raw = rawjson.With(cs.raw, key, bytes.TrimSpace(value))
	return nil
}

// UnmarshalJSON keeps the whole document beside the tools in it.
func (cs *ConversationSettings) UnmarshalJSON(data []byte) error {
	*cs = ConversationSettings{}
	if rawjson.IsNull(data) {
		return nil
	}
	if rawjson.Kind(data) != "object" {
		return mismatch("", data, reflect.TypeFor[map[string]any]())
	}
	cs.raw = bytes.Clone(data)
	tools, _ := rawjson.Value(cs.raw, "tools")
	if oddList(tools) {
		return mismatch("tools", tools, reflect.TypeFor[[]Tool]())
	}
	cs.Tools = decodeList(tools, (*Tool).decode)
	return nil
}

// MarshalJSON writes the document with the tools as they are now.
func (cs ConversationSettings) MarshalJSON() ([]byte, error) { return cs.document(), nil }

// UnmarshalJSON keeps the whole document beside the fields. It takes any shape;
// Validate reports what is wrong with it.
func (t *Tool) UnmarshalJSON(data []byte) error {
	t.decode(bytes.Clone(data))
	return nil
}

// MarshalJSON writes the fields, and the keys that were read beside them.
func (t Tool) MarshalJSON() ([]byte, error) { return t.document(), nil }

// UnmarshalJSON keeps the whole document beside the fields, as that of a Tool.
func (p *ToolParameter) UnmarshalJSON(data []byte) error {
	p.decode(bytes.Clone(data))
	return nil
}

// MarshalJSON writes the fields, and the keys that were read beside them.
func (p ToolParameter) MarshalJSON() ([]byte, error) { return p.document(), nil }

var (
	toolName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	toolTypes     = []string{"string", "number", "integer", "boolean", "array", "object"}
)

// Validate says why a tool can't be sent, all faults together, each an
// InvalidError. A malformed tool can keep a head from loading, so it wants
// more than the contract: a name of letters, digits, _ and - up to 64, a
// description, an https URL (http only to a loopback host), and for each
// parameter a name without spaces that no other one has, a description, and a
// type out of string, number, integer, boolean, array and object. A tool of
// another shape, such as one whose parameters are an object, is refused too.
func (t Tool) Validate() error { return t.validate("Tool.Validate") }

func (t Tool) validate(operation string) error {
	field := "tool " + quote(t.Name)
	if t.raw != nil && rawjson.Kind(t.raw) != "object" && t.unchanged() {
		return invalid(operation, field, "is a JSON %s; want an object with name, description, parameters and url", rawjson.Kind(t.raw))
	}
	var faults, nameFault faultList
	if !toolName.MatchString(t.Name) {
		nameFault.add(invalid(operation, field, "name can keep the head from loading; use a letter or _, then letters, digits, _ and -, at most 64 in all"))
	}
	read := unreadText{operation, field, t.raw}
	faults.add(read.or("name", t.Name, nameFault.join()))
	faults.add(read.or("description", t.Description, checkDescription(operation, field, t.Description)))
	faults.add(read.or("url", t.URL, checkCallbackURL(operation, field+" url", t.URL)))
	if given, _ := rawjson.Value(t.raw, "parameters"); t.Parameters == nil && oddList(given) {
		faults.add(invalid(operation, field, "parameters are a JSON %s; want a list of objects with name, type and description", rawjson.Kind(given)))
	}
	seen := map[string]bool{"": true}
	for _, p := range t.Parameters {
		faults.add(p.validate(operation, field))
		if p.Name != "" && seen[p.Name] {
			faults.add(invalid(operation, field, "parameter %s is defined twice; names must differ", quote(p.Name)))
		}
		seen[p.Name] = true
	}
	return faults.join()
}

func (p ToolParameter) validate(operation, tool string) error {
	field := tool + " parameter " + quote(p.Name)
	if p.raw != nil && rawjson.Kind(p.raw) != "object" && p.unchanged() {
		return invalid(operation, field, "is a JSON %s; want an object with name, type and description", rawjson.Kind(p.raw))
	}
	var faults, nameFault, typeFault faultList
	if !parameterName.MatchString(p.Name) {
		nameFault.add(invalid(operation, field, "name can keep the head from loading; use a letter or _, then letters, digits and _ . - without spaces, at most 64 in all"))
	}
	if !slices.Contains(toolTypes, p.Type) {
		typeFault.add(invalid(operation, field, "type %s is unknown; want one of %s", quote(p.Type), strings.Join(toolTypes, ", ")))
	}
	read := unreadText{operation, field, p.raw}
	faults.add(read.or("name", p.Name, nameFault.join()))
	faults.add(read.or("type", p.Type, typeFault.join()))
	faults.add(read.or("description", p.Description, checkDescription(operation, field, p.Description)))
	return faults.join()
}

// unreadText finds the members of a document that should be texts and are not.
type unreadText struct {
	operation, field string
	raw              []byte
}

// or returns the fault of a member that could not be read and was not set
// since, and else the given one.
func (u unreadText) or(key, text string, fault error) error {
	value, _ := rawjson.Value(u.raw, key)
	switch kind := rawjson.Kind(value); {
	case text != "", kind == "string", kind == "null", kind == "nothing":
		return fault
	default:
		return invalid(u.operation, u.field, "%s is a JSON %s; want a string", key, kind)
	}
}

func checkDescription(operation, field, text string) error {
	if strings.TrimSpace(text) == "" || isPlaceholder(text) {
		return invalid(operation, field, "description %s says nothing; say in a sentence what it is for, the model reads it", quote(text))
	}
	return nil
}

// built are the tools that a caller made or changed.
func built(tools []Tool) []Tool { return slices.DeleteFunc(slices.Clone(tools), Tool.unchanged) }

// validateTools checks the tools that are given, and that none has the name of
// another one of all. What comes from the service and is unchanged is not
// refused for its shape.
func validateTools(operation string, all, given []Tool) error {
	var faults faultList
	count := map[string]int{}
	for _, t := range all {
		count[t.Name]++
	}
	for _, t := range given {
		if !t.served || !t.unchanged() {
			faults.add(t.validate(operation))
		}
		if count[t.Name] > 1 {
			faults.add(invalid(operation, "tool "+quote(t.Name), "is given twice; names must differ"))
			count[t.Name] = 0 // said once
		}
	}
	return faults.join()
}

// PromptProblem is something that a prompt does not say about a tool.
type PromptProblem struct {
	Tool      string
	Parameter string // "" when the tool itself is never named
	Problem   string // a sentence for whoever writes the prompt
}

// String returns the sentence.
func (p PromptProblem) String() string { return p.Problem }

// CheckPrompt finds the tools and parameters whose names a system prompt does
// not use: the model calls a tool by what the prompt says of it, with the same
// names as in the definition. A name counts only as a whole word, in the same
// case.
func CheckPrompt(systemPrompt string, tools ...Tool) []PromptProblem {
	var problems []PromptProblem
	for _, t := range tools {
		if !mentions(systemPrompt, t.Name) {
			problems = append(problems, PromptProblem{t.Name, "", fmt.Sprintf(
				"The prompt never names the tool %q. Say when the head should call it.", t.Name)})
		}
		for _, p := range t.Parameters {
			if !mentions(systemPrompt, p.Name) {
				problems = append(problems, PromptProblem{t.Name, p.Name, fmt.Sprintf(
					"The prompt never names %q, a parameter of the tool %q. Say where its value comes from.", p.Name, t.Name)})
			}
		}
	}
	return problems
}

// mentions says whether a name stands in a text as a whole word.
func mentions(text, name string) bool {
	if name == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !isNameRune(before) && !isNameRune(after) {
			return true
		}
		from = start + 1
	}
}

// isNameRune says whether a character would go on a name; letters of all
// languages count.
func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Format shows how many tools and other keys there are.
func (cs ConversationSettings) Format(f fmt.State, _ rune) { writeText(f, cs.describe()) }

// LogValue shows how many tools and other keys there are.
func (cs ConversationSettings) LogValue() slog.Value { return slog.StringValue(cs.describe()) }

func (cs ConversationSettings) describe() string {
	others := 0
	for m := range rawjson.Members(cs.raw) {
		if string(m.Key) != "tools" {
			others++
		}
	}
	return fmt.Sprintf("heads.ConversationSettings{tools: %d, other keys: %d}", len(cs.Tools), others)
}

// Format shows name and number of parameters; the URL may hold a path token.
func (t Tool) Format(f fmt.State, _ rune) { writeText(f, t.describe()) }

// LogValue shows name and number of parameters.
func (t Tool) LogValue() slog.Value { return slog.StringValue(t.describe()) }

func (t Tool) describe() string {
	return fmt.Sprintf("heads.Tool{%q, parameters: %d}", t.Name, len(t.Parameters))
}

// Format shows name and type.
func (p ToolParameter) Format(f fmt.State, _ rune) { writeText(f, p.describe()) }

// LogValue shows name and type.
func (p ToolParameter) LogValue() slog.Value { return slog.StringValue(p.describe()) }

func (p ToolParameter) describe() string {
	return fmt.Sprintf("heads.ToolParameter{%q %s}", p.Name, p.Type)
}

// settings are the head's own, or empty ones.
func (h *Head) settings() *ConversationSettings {
	if h.ConversationSettings == nil {
		return &ConversationSettings{missing: !h.Has("conversationSettings")}
	}
	return h.ConversationSettings
}

// tool finds the tool of that name, or nil.
func (cs *ConversationSettings) tool(name string) *Tool {
	for i := range cs.Tools {
		if cs.Tools[i].Name == name {
			return &cs.Tools[i]
		}
	}
	return nil
}

// given are the tools of after that are new or changed.
func (cs *ConversationSettings) given(after *ConversationSettings) []Tool {
	var given []Tool
	kept := slices.Clone(cs.Tools)
	for _, t := range after.Tools {
		i := slices.IndexFunc(kept, func(old Tool) bool { return encodeField(old).equal(encodeField(t)) })
		if i < 0 {
			given = append(given, t)
		} else {
			kept = slices.Delete(kept, i, i+1) // a copy of it is new
		}
	}
	return given
}

func (cs *ConversationSettings) clone() *ConversationSettings {
	tools := slices.Clone(cs.Tools)
	for i := range tools {
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return &ConversationSettings{Tools: tools, raw: cs.raw}
}

// document is the JSON of the settings: the one that was read, with the tools
// as they are now.
func (cs *ConversationSettings) document() json.RawMessage {
	return rawjson.With(cs.raw, "tools", documents(cs.Tools, Tool.document))
}

// unchanged reports whether the tool is as it was read.
func (t Tool) unchanged() bool {
	if t.raw == nil {
		return false
	}
	read := Tool{served: t.served}
	read.decode(t.raw)
	return reflect.DeepEqual(read, t)
}

func (t Tool) document() json.RawMessage {
	if t.unchanged() {
		return t.raw
	}
	doc := objectOf(t.raw)
	var read Tool
	read.decode(doc)
	doc = withText(doc, read.Name, "name", t.Name)
	doc = withText(doc, read.Description, "description", t.Description)
	old, _ := rawjson.Value(doc, "parameters")
	switch {
	case t.Parameters == nil && oddList(old):
	case rawjson.Kind(old) != "array" || !reflect.DeepEqual(read.Parameters, t.Parameters):
		doc = rawjson.With(doc, "parameters", documents(t.Parameters, ToolParameter.document))
	}
	return withText(doc, read.URL, "url", t.URL)
}

// unchanged reports whether the parameter is as it was read.
func (p ToolParameter) unchanged() bool {
	if p.raw == nil {
		return false
	}
	var read ToolParameter
	read.decode(p.raw)
	return reflect.DeepEqual(read, p)
}

func (p ToolParameter) document() json.RawMessage {
	if p.unchanged() {
		return p.raw
	}
	doc := objectOf(p.raw)
	var read ToolParameter
	read.decode(doc)
	doc = withText(doc, read.Name, "name", p.Name)
	doc = withText(doc, read.Type, "type", p.Type)
	return withText(doc, read.Description, "description", p.Description)
}

// objectOf returns a document that is an object, and nil for any other.
func objectOf(doc []byte) []byte {
	if rawjson.Kind(doc) != "object" {
		return nil
	}
	return doc
}

func documents[T any](list []T, document func(T) json.RawMessage) []byte {
	out := []byte{'['}
	for i, item := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, document(item)...)
	}
	return append(out, ']')
}

// withText sets a string member, and leaves its bytes alone when they were read
// as the same text.
func withText(doc []byte, read, key, text string) []byte {
	if _, ok := rawjson.Value(doc, key); ok && read == text {
		return doc
	}
	return rawjson.With(doc, key, rawjson.String(text))
}

// inherit keeps the unknown keys of an old tool of the same name, and of its
// parameters, for a tool that was not itself read from the service.
func (t Tool) inherit(old *Tool) Tool {
	if old == nil || t.raw != nil {
		return t
	}
	t.raw = old.raw
	t.Parameters = slices.Clone(t.Parameters)
	if given, _ := rawjson.Value(old.raw, "parameters"); t.Parameters == nil && oddList(given) {
		t.Parameters = []ToolParameter{} // what is there of another shape goes
	}
	for i, p := range t.Parameters {
		same := slices.IndexFunc(old.Parameters, func(o ToolParameter) bool { return o.Name == p.Name })
		if same >= 0 && p.raw == nil {
			t.Parameters[i].raw = old.Parameters[same].raw
		}
	}
	return t
}

// decode reads a tool from a document that it keeps.
func (t *Tool) decode(doc []byte) {
	*t = Tool{raw: doc, served: t.served}
	for m := range rawjson.Members(doc) {
		switch string(m.Key) {
		case "name":
			t.Name = textOf(m.Value)
		case "description":
			t.Description = textOf(m.Value)
		case "url":
			t.URL = textOf(m.Value)
		case "parameters":
			t.Parameters = decodeList(m.Value, (*ToolParameter).decode)
		}
	}
}

// decode reads a parameter from a document that it keeps.
func (p *ToolParameter) decode(doc []byte) {
	*p = ToolParameter{raw: doc}
	for m := range rawjson.Members(doc) {
		switch string(m.Key) {
		case "name":
			p.Name = textOf(m.Value)
		case "type":
			p.Type = textOf(m.Value)
		case "description":
			p.Description = textOf(m.Value)
		}
	}
}

// decodeList reads an array, whose elements may keep their part of it. What is
// no array reads as nil.
func decodeList[T any](value []byte, decode func(*T, []byte)) []T {
	if rawjson.Kind(value) != "array" {
		return nil
	}
	list := []T{}
	for element := range rawjson.Elements(value) {
		list = append(list, *new(T))
		decode(&list[len(list)-1], element)
	}
	return list
}

// oddList reports whether a member that should be a list is something else.
func oddList(value []byte) bool {
	switch rawjson.Kind(value) {
	case "array", "null", "nothing":
		return false
	}
	return true
}

// textOf is the text of a JSON string, and "" for anything else.
func textOf(value []byte) string {
	if rawjson.Kind(value) != "string" {
		return ""
	}
	return rawjson.Unquote(value)
}

// mismatch is the error of encoding/json for a value of the wrong type.
func mismatch(field string, value []byte, want reflect.Type) error {
	return &json.UnmarshalTypeError{Field: field, Value: rawjson.Kind(value), Type: want}
}
