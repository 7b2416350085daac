package heads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/toolargs"
)

// Tool is an external endpoint that a head in operation mode oc can call. Keys
// that this library does not know are kept byte for byte.
//
// The service also stores tools of another shape, and a head with such a tool
// may not load. Fields that can't be read are zero, and the bytes are kept.
// Validate reports what is wrong; RemoveTool, PutTool, SetTools and Modify
// repair it. A tool that was read from the service and is unchanged is never
// refused when it is sent back.
type Tool struct {
	Name        string // the name that the prompt uses
	Description string
	URL         string // https
	Parameters  []ToolParameter

	raw    Raw
	served bool // read from the service
}

// ToolParameter describes one parameter of a tool. Keys that this library does
// not know are kept byte for byte.
type ToolParameter struct {
	Name        string // the name that the prompt uses
	Type        string // string, number, integer, boolean, array or object; the service accepts others, and none ("")
	Description string

	raw Raw
}

// PromptProblem is something about a tool that a prompt does not mention.
type PromptProblem struct {
	Tool      string
	Parameter string // "" when the tool itself is never named
	Problem   string // a sentence for the author of the prompt
}

// Validate returns why a tool can't be sent, all faults together, each an
// InvalidError. A malformed tool can keep a head from loading, so Validate is
// stricter than the contract. It requires a name of letters, digits, _ and -
// with at most 64 characters, a description, and an https URL (http only to a
// loopback host). Each parameter needs a unique name without spaces, other than
// session_metadata, and a description. A tool of another shape, such as one whose
// parameters are an object, is refused too. The service accepts parameters of any type
// and without one. So a type is refused only if it is a placeholder or not a text;
// Heads.Examine notes those that are unknown.
func (t Tool) Validate() error { return t.validate("Tool.Validate", nil) }

// UnmarshalJSON accepts any shape and keeps the whole document. Validate reports
// what is wrong with it. Only a name that occurs twice is an error, such as two
// urls.
func (t *Tool) UnmarshalJSON(data []byte) error {
	doc := string(data)
	if err := checkToolNames(doc); err != nil {
		return err
	}
	t.decode(doc)
	return nil
}

// MarshalJSON writes the fields, and the unknown keys that were read. It masks
// nothing, so that a tool can be stored and read back: its URL may hold a token.
func (t Tool) MarshalJSON() ([]byte, error) { return t.document(), nil }

// Format shows name, host and number of parameters; the path of the URL may hold a
// token.
func (t Tool) Format(f fmt.State, _ rune) {
	writeText(f, fmt.Sprintf("heads.Tool{%q, host: %s, parameters: %d}", t.Name, mask.Host(t.URL, maxLabel), len(t.Parameters)))
}

// LogValue returns name, host and number of parameters.
func (t Tool) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", label(t.Name)), slog.String("host", mask.Host(t.URL, maxLabel)), slog.Int("parameters", len(t.Parameters)))
}

// UnmarshalJSON accepts any shape and keeps the whole document. Only a name that
// occurs twice is an error.
func (p *ToolParameter) UnmarshalJSON(data []byte) error {
	doc := string(data)
	if err := exactjson.Once(doc, parameterNames...); err != nil {
		return err
	}
	p.decode(doc)
	return nil
}

// MarshalJSON writes the fields, and the unknown keys that were read.
func (p ToolParameter) MarshalJSON() ([]byte, error) { return p.document(), nil }

// CheckPrompt returns the tools and parameters whose names a system prompt does
// not use. The model decides by the prompt when to call a tool, so the prompt
// should use the names of the definition. A name is found only as a whole word
// and in the same case.
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

// mentions reports whether a text contains a name as a whole word.
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

// isNameRune reports whether a character can be part of a name. Letters of all
// languages can.
func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

var (
	toolName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	toolTypes     = []string{"string", "number", "integer", "boolean", "array", "object"}
)

// validate returns the faults of a tool. If was is not nil, it is the tool as the service has
// it, and what is the same there is not judged again.
func (t Tool) validate(operation string, was *Tool) error {
	field := "tool " + quote(t.Name)
	if t.raw.plain() != "" && rawjson.Kind(t.raw.plain()) != "object" && t.unchanged() {
		return invalid(operation, field, fmt.Sprintf("is a JSON %s", rawjson.Kind(t.raw.plain())), "want an object with name, description, parameters and url")
	}
	var faults, nameFault faultList
	if !toolName.MatchString(t.Name) {
		nameFault.add(invalid(operation, field, "name can keep the head from loading", "use a letter or _, then letters, digits, _ and -, at most 64 in all"))
	}
	read := unreadText{operation, field, t.raw.plain()}
	old := Tool{}
	if was != nil {
		old = *was
	}
	if was == nil || t.Name != old.Name {
		faults.add(read.or("name", t.Name, nameFault.join()))
	}
	if was == nil || t.Description != old.Description {
		faults.add(read.or("description", t.Description, checkDescription(operation, field, t.Description)))
	}
	if was == nil || t.URL != old.URL {
		faults.add(read.or("url", t.URL, checkCallbackURL(operation, field+" url", t.URL)))
	}
	if given, _ := rawjson.Value(t.raw.plain(), "parameters"); was == nil && t.Parameters == nil && oddList(given) {
		faults.add(invalid(operation, field, fmt.Sprintf("parameters are a JSON %s", rawjson.Kind(given)), "want a list of objects with name, type and description"))
	}
	allowed := map[string]int{} // how many parameters may have a name
	for _, p := range old.Parameters {
		allowed[p.Name]++
	}
	seen := map[string]int{}
	for _, p := range t.Parameters {
		faults.add(p.validate(operation, field, old.parameter(p)))
		if seen[p.Name]++; p.Name != "" && seen[p.Name] > max(1, allowed[p.Name]) {
			faults.add(invalid(operation, field, fmt.Sprintf("parameter %s is defined twice", quote(p.Name)), "names must differ"))
		}
	}
	return faults.join()
}

// parameter returns the parameter of the tool that p was read as, or nil.
func (t Tool) parameter(p ToolParameter) *ToolParameter {
	i := slices.IndexFunc(t.Parameters, func(old ToolParameter) bool { return p.raw.plain() != "" && old.raw.plain() == p.raw.plain() })
	if i < 0 {
		return nil
	}
	return &t.Parameters[i]
}

// validate returns the faults of a parameter. As in Tool.validate, what was has is not judged.
func (p ToolParameter) validate(operation, tool string, was *ToolParameter) error {
	field := tool + " parameter " + quote(p.Name)
	if p.raw.plain() != "" && rawjson.Kind(p.raw.plain()) != "object" && p.unchanged() {
		if was != nil {
			return nil
		}
		return invalid(operation, field, fmt.Sprintf("is a JSON %s", rawjson.Kind(p.raw.plain())), "want an object with name, type and description")
	}
	var faults, nameFault, typeFault faultList
	if !parameterName.MatchString(p.Name) {
		nameFault.add(invalid(operation, field, "name can keep the head from loading", "use a letter or _, then letters, digits and _ . - without spaces, at most 64 in all"))
	}
	if p.Name == toolargs.SessionMetadata {
		nameFault.add(invalid(operation, field, "has the name that carries the session", "choose another"))
	}
	if p.Type != "string" && check.IsPlaceholder(p.Type) {
		typeFault.add(invalid(operation, field, fmt.Sprintf("type %s is a placeholder", quote(p.Type)), fmt.Sprintf("want one of %s", strings.Join(toolTypes, ", "))))
	}
	read := unreadText{operation, field, p.raw.plain()}
	if was == nil || p.Name != was.Name {
		faults.add(read.or("name", p.Name, nameFault.join()))
	}
	if was == nil || p.Type != was.Type {
		faults.add(read.or("type", p.Type, typeFault.join()))
	}
	if was == nil || p.Description != was.Description {
		faults.add(read.or("description", p.Description, checkDescription(operation, field, p.Description)))
	}
	return faults.join()
}

// unreadText finds the members of a document that should be strings and are not.
type unreadText struct {
	operation, field string
	raw              string
}

// or returns the fault of a member that could not be read and was not set since,
// or else the given fault.
func (u unreadText) or(key, text string, fault error) error {
	value, _ := rawjson.Value(u.raw, key)
	switch kind := rawjson.Kind(value); {
	case text != "", kind == "string", kind == "null", kind == "nothing":
		return fault
	default:
		return invalid(u.operation, u.field, fmt.Sprintf("%s is a JSON %s", key, kind), "want a string")
	}
}

func checkDescription(operation, field, text string) error {
	if strings.TrimSpace(text) == "" || check.IsPlaceholder(text) {
		return invalid(operation, field, fmt.Sprintf("description %s says nothing", quote(text)), "explain in a sentence what it is for, since the model reads it")
	}
	return nil
}

// built returns the tools that a caller made or changed.
func built(tools []Tool) []Tool { return slices.DeleteFunc(slices.Clone(tools), Tool.unchanged) }

// validateTools checks the given tools, and that none of them has the name of
// another one in all. Tools from the service that are unchanged are not refused
// for their shape, and of those that were changed only the changes are judged.
func validateTools(operation string, all, given []Tool) error {
	var faults faultList
	count := map[string]int{}
	for _, t := range all {
		count[t.Name]++
	}
	for _, t := range given {
		if !t.served || !t.unchanged() {
			faults.add(t.validate(operation, t.asServed()))
		}
		if count[t.Name] > 1 {
			faults.add(invalid(operation, "tool "+quote(t.Name), "is given twice", "names must differ"))
			count[t.Name] = 0 // report it once
		}
	}
	return faults.join()
}

// asServed returns the tool as it was read from the service, or nil if it was not read there
// or as no object.
func (t Tool) asServed() *Tool {
	if !t.served || rawjson.Kind(t.raw.plain()) != "object" {
		return nil
	}
	was := Tool{served: true}
	was.decode(t.raw.plain())
	return &was
}

// unchanged reports whether the tool is as it was read.
func (t Tool) unchanged() bool { return isAsRead(t, t.raw.plain(), (*Tool).decode) }

// document returns the tool as JSON: the document that was read, with the fields
// as they are now.
func (t Tool) document() json.RawMessage {
	if t.unchanged() {
		return json.RawMessage(t.raw.plain())
	}
	doc := objectOf(t.raw.plain())
	var read Tool
	read.decode(doc)
	doc = withText(doc, read.Name, "name", t.Name)
	doc = withText(doc, read.Description, "description", t.Description)
	old, _ := rawjson.Value(doc, "parameters")
	switch {
	case t.Parameters == nil && oddList(old):
	case rawjson.Kind(old) != "array" || !reflect.DeepEqual(read.Parameters, t.Parameters):
		doc = string(rawjson.With(doc, "parameters", documents(t.Parameters, ToolParameter.document)))
	}
	return json.RawMessage(withText(doc, read.URL, "url", t.URL))
}

// The names that the contract gives to the members of a tool and of a parameter.
var (
	toolNames      = []string{"name", "description", "url", "parameters"}
	parameterNames = []string{"name", "type", "description"}
)

// checkToolNames returns an error for a tool in which a name of the contract occurs
// twice.
func checkToolNames(doc string) error {
	if err := exactjson.Once(doc, toolNames...); err != nil {
		return err
	}
	parameters, _ := rawjson.Value(doc, "parameters")
	for parameter := range rawjson.Elements(parameters) {
		if err := exactjson.Once(parameter, parameterNames...); err != nil {
			return exactjson.Under("parameters", err)
		}
	}
	return nil
}

// decode reads a tool from a document, which it keeps.
func (t *Tool) decode(doc string) {
	*t = Tool{raw: copyRaw(doc), served: t.served}
	for m := range rawjson.Members(doc) {
		switch m.Key {
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

// inherit copies the unknown keys of an old tool of the same name, and of its
// parameters, to a tool that was not read from the service.
func (t Tool) inherit(old *Tool) Tool {
	if old == nil || t.raw.plain() != "" {
		return t
	}
	t.raw = old.raw
	t.Parameters = slices.Clone(t.Parameters)
	if given, _ := rawjson.Value(old.raw.plain(), "parameters"); t.Parameters == nil && oddList(given) {
		t.Parameters = []ToolParameter{} // replaces what has another shape
	}
	for i, p := range t.Parameters {
		same := slices.IndexFunc(old.Parameters, func(o ToolParameter) bool { return o.Name == p.Name })
		if same >= 0 && p.raw.plain() == "" {
			t.Parameters[i].raw = old.Parameters[same].raw
		}
	}
	return t
}

// unchanged reports whether the parameter is as it was read.
func (p ToolParameter) unchanged() bool { return isAsRead(p, p.raw.plain(), (*ToolParameter).decode) }

// document returns the parameter as JSON: the document that was read, with the
// fields as they are now.
func (p ToolParameter) document() json.RawMessage {
	if p.unchanged() {
		return json.RawMessage(p.raw.plain())
	}
	doc := objectOf(p.raw.plain())
	var read ToolParameter
	read.decode(doc)
	doc = withText(doc, read.Name, "name", p.Name)
	switch {
	case p.Type != "":
		doc = withText(doc, read.Type, "type", p.Type)
	case read.Type != "":
		doc = string(rawjson.With(doc, "type", nil))
	}
	return json.RawMessage(withText(doc, read.Description, "description", p.Description))
}

// decode reads a parameter from a document, which it keeps.
func (p *ToolParameter) decode(doc string) {
	*p = ToolParameter{raw: copyRaw(doc)}
	for m := range rawjson.Members(doc) {
		switch m.Key {
		case "name":
			p.Name = textOf(m.Value)
		case "type":
			p.Type = textOf(m.Value)
		case "description":
			p.Description = textOf(m.Value)
		}
	}
}

// isAsRead reports whether a value equals what decode reads from its document.
func isAsRead[T any](value T, raw string, decode func(*T, string)) bool {
	if raw == "" {
		return false
	}
	read := value
	decode(&read, raw)
	return reflect.DeepEqual(read, value)
}

// objectOf returns a document that is an object, and "" for any other.
func objectOf(doc string) string {
	if rawjson.Kind(doc) != "object" {
		return ""
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

// withText sets a string member. If the member was read as the same text, its
// bytes are kept.
func withText(doc, read, key, text string) string {
	if _, ok := rawjson.Value(doc, key); ok && read == text {
		return doc
	}
	return string(rawjson.With(doc, key, rawjson.String(text)))
}

// decodeList reads an array, whose elements may keep their part of it. Any other
// value is read as nil.
func decodeList[T any](value string, decode func(*T, string)) []T {
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
func oddList(value string) bool {
	switch rawjson.Kind(value) {
	case "array", "null", "nothing":
		return false
	}
	return true
}

// textOf returns the text of a JSON string, and "" for any other value.
func textOf[T rawjson.Text](value T) string {
	if rawjson.Kind(value) != "string" {
		return ""
	}
	return rawjson.Unquote(value)
}

// ConversationSettings are the settings of a head's conversations. Keys other
// than tools, such as a provider's API key, are kept byte for byte and never
// shown. Extra and SetExtra read and write them.
type ConversationSettings struct {
	Tools []Tool

	raw     Raw  // the document, with tools as they were read
	missing bool // the head that was read does not show its settings
}

// Extra returns the value of a key other than tools.
func (cs *ConversationSettings) Extra(key string) (Raw, bool) {
	value, ok := rawjson.Value(cs.raw.plain(), key)
	if key == "tools" || !ok {
		return Raw{}, false
	}
	return rawOf([]byte(value)), true
}

// SetExtra sets a key other than tools. A nil value removes it. SetExtra returns
// an InvalidError for a value that is not JSON or holds "[redacted]", for an empty
// key, and for the key tools.
func (cs *ConversationSettings) SetExtra(key string, value json.RawMessage) error {
	const operation = "ConversationSettings.SetExtra"
	switch {
	case strings.TrimSpace(key) == "":
		return checkText(operation, "key", key, "give the name of a setting")
	case key == "tools":
		return invalid(operation, "key", "\"tools\" has a field of its own", "use ConversationSettings.Tools", useSettingsTools)
	case value != nil && !json.Valid(value):
		return invalid(operation, mask.OneLine(key, maxLabel), "has a value that is not JSON", "give a JSON value, or nil to remove the key")
	}
	if err := checkExtra(operation, key, value); err != nil {
		return err
	}
	cs.raw = rawOf(rawjson.With(cs.raw.Bytes(), key, bytes.TrimSpace(value)))
	return nil
}

// UnmarshalJSON reads the tools and keeps the whole document. A name of the
// contract that occurs twice in the settings, a tool or a parameter is an error.
func (cs *ConversationSettings) UnmarshalJSON(data []byte) error { return cs.decode(string(data)) }

// MarshalJSON writes the tools with their secrets masked, and of every other key what
// Raw shows of its value. URLs of tools also lose path segments of 16 characters or
// more, apart from the tool's name. Settings with something masked can't be sent.
func (cs ConversationSettings) MarshalJSON() ([]byte, error) {
	shown := []byte{'{'}
	for m := range rawjson.Members(cs.raw.Bytes()) {
		if string(m.Key) != "tools" {
			length, _ := rawOf(m.Value).MarshalJSON() // never fails
			shown = append(rawjson.AppendMember(shown, string(m.Key), length), ',')
		}
	}
	tools := documents(cs.Tools, func(t Tool) json.RawMessage {
		t.URL = mask.CallbackURL(t.URL, t.Name)
		return t.document()
	})
	return append(rawjson.AppendMember(shown, "tools", mask.JSON(tools, mask.SecretsOf(cs.document())...)), '}'), nil
}

// checkExtras refuses a key other than tools whose value holds what a Secret or a
// Raw shows of itself, unless before, which may be nil, has the same value.
func (cs *ConversationSettings) checkExtras(operation string, before *ConversationSettings) error {
	var faults faultList
	for m := range rawjson.Members(cs.raw.plain()) {
		if m.Key == "tools" {
			continue
		}
		if before != nil {
			if was, _ := rawjson.Value(before.raw.plain(), m.Key); was == m.Value {
				continue
			}
		}
		faults.add(checkExtra(operation, m.Key, []byte(m.Value)))
	}
	return faults.join()
}

func checkExtra(operation, key string, value []byte) error {
	if found := mask.FindMasked(value); found != "" {
		return invalid(operation, mask.OneLine(key, maxLabel), fmt.Sprintf("holds %q, which stands for what is not shown", found), "give the value itself")
	}
	return nil
}

// decode reads the settings from a document, which it keeps.
func (cs *ConversationSettings) decode(doc string) error {
	*cs = ConversationSettings{}
	if rawjson.IsNull(doc) {
		return nil
	}
	if rawjson.Kind(doc) != "object" {
		return exactjson.Mismatch("", doc, reflect.TypeFor[map[string]any]())
	}
	if err := exactjson.Once(doc, "tools"); err != nil {
		return err
	}
	tools, _ := rawjson.Value(doc, "tools")
	if oddList(tools) {
		return exactjson.Mismatch("tools", tools, reflect.TypeFor[[]Tool]())
	}
	for tool := range rawjson.Elements(tools) {
		if err := checkToolNames(tool); err != nil {
			return exactjson.Under("tools", err)
		}
	}
	cs.raw, cs.Tools = copyRaw(doc), decodeList(tools, (*Tool).decode)
	return nil
}

// document returns the settings as JSON: the document that was read, with the
// tools as they are now.
func (cs *ConversationSettings) document() json.RawMessage {
	return rawjson.With(cs.raw.plain(), "tools", documents(cs.Tools, Tool.document))
}

// tool returns the tool of that name, or nil.
func (cs *ConversationSettings) tool(name string) *Tool {
	for i := range cs.Tools {
		if cs.Tools[i].Name == name {
			return &cs.Tools[i]
		}
	}
	return nil
}

// changedTools returns the tools of after that are new or changed.
func (cs *ConversationSettings) changedTools(after *ConversationSettings) []Tool {
	var changed []Tool
	kept := slices.Clone(cs.Tools)
	for _, t := range after.Tools {
		i := slices.IndexFunc(kept, func(old Tool) bool { return sameDocument(old, t) })
		if i < 0 {
			changed = append(changed, t)
		} else {
			kept = slices.Delete(kept, i, i+1) // a copy of it is new
		}
	}
	return changed
}

func sameDocument(a, b Tool) bool {
	return sameEncoded(a.document(), b.document())
}

func (cs *ConversationSettings) clone() *ConversationSettings {
	tools := slices.Clone(cs.Tools)
	for i := range tools {
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return &ConversationSettings{Tools: tools, raw: cs.raw}
}

// sameEncoded reports whether two JSON values differ at most in the escapes of <, > and &.
func sameEncoded(a, b []byte) bool { return bytes.Equal(escapeHTML(a), escapeHTML(b)) }

// escapeHTML writes <, > and & as json.Marshal does.
func escapeHTML(raw []byte) []byte {
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, raw)
	return escaped.Bytes()
}
