package headsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
)

const maxShown = 80 // characters of what a fault shows

// ParseTool reads the text of one tool.
func ParseTool(text []byte, folder string) (tool heads.Tool, err error) {
	definition, err := yamltext.Parse(text)
	if err != nil {
		return tool, err
	}
	r := specReader{folder: folder}
	if r.isObject(definition) {
		tool = r.tool(definition)
	}
	return tool, errors.Join(r.faults...)
}

// The keys of a heads.yaml.
var (
	fileKeys    = []string{"environments", "defaults", "heads"}
	wantedKeys  = []string{"set", "voice", "streaming", "delivery", "webhooks", "prune_webhooks", "tools"}
	entryKeys   = append([]string{"id", "label"}, wantedKeys...)
	voiceKeys   = []string{"provider", "id"}
	webhookKeys = []string{"url", "events"}
	allKeys     = slices.Concat(fileKeys, entryKeys, voiceKeys, webhookKeys, environmentKeys, []string{"file"})
)

// specReader turns the values of a heads.yaml into specs. It collects faults.
type specReader struct {
	folder string       // of {file: PATH}
	values *valueReader // of ${name}; nil fills in nothing
	faults []error
}

func (r *specReader) fault(err error) {
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

func (r *specReader) want(v *yamltext.Value, kind yamltext.Kind) bool {
	err := v.Want(kind)
	r.fault(err)
	return err == nil
}

// given reports whether an optional value is there. null is no value.
func given(v *yamltext.Value) bool { return v != nil && v.Kind != yamltext.Null }

// isObject reports whether the value is an object that has no other keys than the
// known ones. Without any, all keys are known.
func (r *specReader) isObject(v *yamltext.Value, known ...string) bool {
	if !r.want(v, yamltext.Object) {
		return false
	}
	for _, m := range v.Members {
		if len(known) > 0 && !slices.Contains(known, m.Key) {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("unknown key %q%s", show.Clip(m.Key, maxShown), similar.Hint(m.Key, allKeys))})
		}
	}
	return true
}

// list returns the items of an optional list.
func (r *specReader) list(v *yamltext.Value) []*yamltext.Value {
	if !given(v) || !r.want(v, yamltext.List) {
		return nil
	}
	return v.Items
}

func (r *specReader) bool(v *yamltext.Value) *bool {
	if !given(v) || !r.want(v, yamltext.Bool) {
		return nil
	}
	on := strings.EqualFold(v.Text, "true")
	return &on
}

// text returns a text, or that of the file for {file: PATH}. null is "".
func (r *specReader) text(v *yamltext.Value) string {
	if !given(v) {
		return ""
	}
	if v.Kind == yamltext.Object {
		return r.fileText(v, "a text")
	}
	r.want(v, yamltext.Text)
	return v.Text
}

// fileText returns the text of {file: PATH}, which may stand for what wanted says.
func (r *specReader) fileText(v *yamltext.Value, wanted string) string {
	if !r.isObject(v, "file") {
		return ""
	}
	path := v.Get("file")
	switch {
	case path == nil && len(v.Members) > 0: // that was the fault
		return ""
	case path == nil:
		r.fault(v.Errorf("this is an object; want %s, or {file: PATH}", wanted))
		return ""
	case !r.want(path, yamltext.Text):
		return ""
	}
	text, err := readText(r.folder, path.Text, maxFileText)
	if err != nil {
		r.fault(v.Errorf("%v", err))
	}
	return text
}

// wanted is what an entry and the defaults can both hold.
type wanted struct {
	fleet.Spec
	prune *bool
}

func (r *specReader) wanted(v *yamltext.Value) (w wanted) {
	w.Set = r.fields(v.Get("set"))
	w.Streaming, w.Delivery, w.prune = r.bool(v.Get("streaming")), r.bool(v.Get("delivery")), r.bool(v.Get("prune_webhooks"))
	if voice := v.Get("voice"); given(voice) && r.isObject(voice, voiceKeys...) {
		w.Voice = &heads.Voice{Provider: r.text(voice.Get("provider")), ID: r.text(voice.Get("id"))}
	}
	if hooks := v.Get("webhooks"); given(hooks) {
		w.Webhooks = []fleet.WebhookSpec{}
		for _, hook := range r.list(hooks) {
			if r.isObject(hook, webhookKeys...) {
				w.Webhooks = append(w.Webhooks, fleet.WebhookSpec{URL: r.text(hook.Get("url")), Events: r.events(hook.Get("events"))})
			}
		}
	}
	if definitions := v.Get("tools"); given(definitions) {
		tools := r.tools(definitions)
		w.Tools = &tools
	}
	return w
}

// tools reads a list of tools, or {file: PATH}.
func (r *specReader) tools(v *yamltext.Value) []heads.Tool {
	if v.Kind == yamltext.Object {
		return r.fileTools(v)
	}
	tools := []heads.Tool{}
	for _, definition := range r.list(v) {
		if r.isObject(definition) {
			tools = append(tools, r.tool(definition))
		}
	}
	return tools
}

// fileTools reads a file with a list of tools, in which ${name} are filled in. Its faults
// have their places in both files.
func (r *specReader) fileTools(v *yamltext.Value) []heads.Tool {
	before := len(r.faults)
	text := r.fileText(v, "a list of tools")
	if len(r.faults) > before {
		return nil
	}
	inner := specReader{folder: r.folder, values: r.values}
	var tools []heads.Tool
	list, err := yamltext.Parse([]byte(text))
	switch {
	case err != nil:
		inner.fault(err)
	case list.Kind == yamltext.Null:
		inner.fault(list.Errorf("there are no tools; write a list of them, or [] for none"))
	default:
		if list = inner.filled(list); inner.want(list, yamltext.List) {
			tools = inner.tools(list)
		}
	}
	for _, err := range inner.faults {
		for _, fault := range faultsOf(err) {
			r.fault(v.Errorf("%s:%v", show.Line(v.Get("file").Text), fault))
		}
	}
	return tools
}

// faultsOf returns the errors that were joined.
func faultsOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only what is joined itself
		return joined.Unwrap()
	}
	return []error{err}
}

// under returns the spec with the defaults: fields are merged, everything else
// replaces the default.
func (w wanted) under(defaults wanted) fleet.Spec {
	s := w.Spec
	if defaults.Set != nil {
		s.Set = maps.Clone(defaults.Set)
		maps.Copy(s.Set, w.Set)
	}
	s.Voice = either(w.Voice, defaults.Voice)
	s.Streaming = either(w.Streaming, defaults.Streaming)
	s.Delivery = either(w.Delivery, defaults.Delivery)
	s.Tools = either(w.Tools, defaults.Tools)
	if w.Webhooks == nil {
		s.Webhooks = defaults.Webhooks
	}
	prune := either(w.prune, defaults.prune)
	s.PruneWebhooks = prune != nil && *prune
	return s
}

func either[T any](value, otherwise *T) *T {
	if value != nil {
		return value
	}
	return otherwise
}

func (r *specReader) events(v *yamltext.Value) (events []heads.EventType) {
	for _, event := range r.list(v) {
		events = append(events, heads.EventType(r.text(event)))
	}
	return events
}

// fields returns the fields of an optional object.
func (r *specReader) fields(v *yamltext.Value) map[string]any {
	if !given(v) || !r.isObject(v) {
		return nil
	}
	fields := map[string]any{}
	for _, m := range v.Members {
		fields[m.Key] = r.field(m.Key, m.Value)
	}
	return fields
}

// field returns the value of a field, with the texts of files wherever the field
// holds a text. The configuration of a plugin is kept as it is: file is a key like
// any other there.
func (r *specReader) field(name string, v *yamltext.Value) any {
	if v.Kind == yamltext.Null {
		return nil
	}
	switch kindOfField(name) {
	case textField:
		return r.text(v)
	case listField:
		if v.Kind == yamltext.List {
			return r.texts(v)
		}
	case wordsField:
		if v.Kind == yamltext.Object {
			return r.textMembers(v, nil)
		}
	case promptField:
		if v.Kind == yamltext.Object {
			return r.textMembers(v, []string{"system_prompt"})
		}
	}
	return json.RawMessage(r.json(v))
}

// json returns a value as JSON, or null after a fault.
func (r *specReader) json(v *yamltext.Value) []byte {
	document, err := v.AppendJSON(nil)
	if err != nil {
		r.fault(err)
		return []byte("null")
	}
	return document
}

// texts returns a list of texts.
func (r *specReader) texts(v *yamltext.Value) []any {
	texts := []any{}
	for _, item := range v.Items {
		if item.Kind == yamltext.Null {
			texts = append(texts, nil) // refused by fleet
			continue
		}
		texts = append(texts, r.text(item))
	}
	return texts
}

// textMembers returns an object as JSON whose members of the given names are texts,
// or all members if names is nil.
func (r *specReader) textMembers(v *yamltext.Value, names []string) json.RawMessage {
	return r.members(v, func(m yamltext.Member) []byte {
		if (names == nil || slices.Contains(names, m.Key)) && m.Value.Kind != yamltext.Null {
			return rawjson.String(r.text(m.Value))
		}
		return r.json(m.Value)
	})
}

// members returns an object as JSON, with the values that value returns, in its own
// order.
func (r *specReader) members(v *yamltext.Value, value func(yamltext.Member) []byte) json.RawMessage {
	var members [][]byte
	for _, m := range v.Members {
		members = append(members, rawjson.AppendMember(nil, m.Key, value(m)))
	}
	return object(members...)
}

// object returns the JSON of an object.
func object(members ...[]byte) json.RawMessage {
	return slices.Concat([]byte{'{'}, bytes.Join(members, []byte{','}), []byte{'}'})
}

// tool reads a tool. Keys that the service may know are kept, in their order.
func (r *specReader) tool(v *yamltext.Value) (tool heads.Tool) {
	document := r.members(v, func(m yamltext.Member) []byte {
		switch {
		case slices.Contains([]string{"name", "description", "url"}, m.Key) && m.Value.Kind != yamltext.Null:
			return rawjson.String(r.text(m.Value))
		case m.Key == "parameters" && m.Value.Kind == yamltext.List:
			var parameters [][]byte
			for _, p := range m.Value.Items {
				if p.Kind != yamltext.Object {
					parameters = append(parameters, r.json(p))
					continue
				}
				parameters = append(parameters, r.textMembers(p, []string{"name", "type", "description"}))
			}
			return slices.Concat([]byte{'['}, bytes.Join(parameters, []byte{','}), []byte{']'})
		}
		return r.json(m.Value)
	})
	r.fault(json.Unmarshal(document, &tool))
	return tool
}

// fieldKind is what a field of a head holds.
type fieldKind int

const (
	textField fieldKind = iota
	listField
	wordsField
	promptField
	anyField
)

// kindOfField asks the library what a field takes.
func kindOfField(name string) fieldKind {
	takes := func(document string) bool {
		return heads.NewHeadUpdate().Set(name, json.RawMessage(document)).Validate() == nil
	}
	switch {
	case !slices.Contains(heads.WritableFields(), name): // refused by fleet
		return anyField
	case takes(`{"system_prompt":"s"}`) && !takes(`{}`):
		return promptField
	case takes(`{"a":1}`):
		return anyField
	case takes(`{}`):
		return wordsField
	case takes(`[]`):
		return listField
	case takes(`1`), takes(`true`):
		return anyField
	}
	return textField
}
