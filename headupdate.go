package heads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// HeadUpdate is a partial update of a head. It sends the fields whose setter was
// called, even an empty value, and nothing else. Setters copy their arguments
// and return the update, so that calls can be chained. If a setter is called
// twice, the last call wins.
//
// A HeadUpdate is safe for concurrent use as long as no setter is called.
type HeadUpdate struct {
	last *updateNode
}

// updateNode is a field that was set and those before it. It never changes, so a copy of
// an update is an update of its own.
type updateNode struct {
	before *updateNode
	updateField
	short [64]byte // for a short value, which needs no memory of its own then
}

// updateField is one member of the body. In an updateNode its value is veiled.
type updateField struct {
	name string
	fieldValue
}

// NewHeadUpdate returns an empty update. It is of no head: Heads.Update takes the
// id.
func NewHeadUpdate() *HeadUpdate { return &HeadUpdate{} }

// HeadUpdateFromJSON returns an update with every writable field of a document
// as GET /head/{id} sends it. Values are kept byte for byte, but a number in quotes
// loses them. It skips the id and
// all other fields that the service would ignore, publicUrl, the fields that have
// an operation of their own, fields that the contract does not name, null where
// the contract does not allow it, and an empty voice.
//
// It returns an InvalidError if the document is not a JSON object, holds a value of
// the wrong type, or holds a field of a head twice. Names are exact.
func HeadUpdateFromJSON(document []byte) (*HeadUpdate, error) {
	const operation = "HeadUpdateFromJSON"
	if !json.Valid(document) || rawjson.Kind(document) != "object" {
		return nil, invalid(operation, "document", "is not a JSON object", "give the body of a GET /head/{id} answer")
	}
	u := NewHeadUpdate()
	var faults faultList
	var twice *exactjson.DuplicateError
	if errors.As(exactjson.Decode(document, new(Head), exactjson.Rules{Open: anyField}), &twice) {
		faults.add(invalid(operation, twice.Field, "occurs twice", "give the document as the service sends it"))
	}
	for _, field := range writableFields {
		value, ok := rawjson.Value(document, field.name)
		if !ok || field.access == assigned || rawjson.IsNull(value) && field.access != nullable {
			continue
		}
		switch field.kind {
		case kindPrompt:
			if value, ok = promptOnly(value); !ok {
				continue
			}
		case kindNumber:
			if number, ok := rawjson.Number(value); ok {
				value = number
			}
		}
		if fault := field.fault(value); fault.Problem != "" {
			faults.add(faultOf(operation, field.name, fault))
			continue
		}
		u.put(field.name, fieldValue{raw: bytes.Clone(value)})
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	u.dropEmptyVoice()
	return u, nil
}

// Fields returns the JSON names of the fields in the body, without the id, in
// the order in which they are sent.
func (u *HeadUpdate) Fields() []string {
	names := make([]string, u.last.count())
	for i, n := len(names)-1, u.last; n != nil; i, n = i-1, n.before {
		names[i] = n.name
	}
	return names
}

// Name sets the name of the head.
func (u *HeadUpdate) Name(v string) *HeadUpdate { return u.setText("name", v) }

// Alias sets the alias of the head.
func (u *HeadUpdate) Alias(v string) *HeadUpdate { return u.setText("alias", v) }

// Language sets the language, a BCP 47 tag such as en-US. Validate refuses any
// other text, such as "german".
func (u *HeadUpdate) Language(v string) *HeadUpdate { return u.setLanguage("language", v) }

// LanguageSpeechRecognition sets the language that the head listens for, a BCP
// 47 tag such as en-US.
func (u *HeadUpdate) LanguageSpeechRecognition(v string) *HeadUpdate {
	return u.setLanguage("languageSpeechRecognition", v)
}

// Voice sets the text-to-speech provider and a voice of that provider. Validate
// refuses one without the other.
func (u *HeadUpdate) Voice(provider, voice string) *HeadUpdate {
	return u.setText("ttsProvider", provider).setText("ttsVoice", voice)
}

// OperationMode sets how the head answers.
func (u *HeadUpdate) OperationMode(v OperationMode) *HeadUpdate {
	return u.setText("operationMode", string(v))
}

// OCProvider sets the provider of operation mode oc.
func (u *HeadUpdate) OCProvider(v string) *HeadUpdate { return u.setText("ocProvider", v) }

// SystemPrompt sets the prompt: system_prompt in the object promptConfig.
func (u *HeadUpdate) SystemPrompt(v string) *HeadUpdate {
	return u.set("promptConfig", promptBody{SystemPrompt: v})
}

// Greetings sets the greeting text.
func (u *HeadUpdate) Greetings(v string) *HeadUpdate { return u.setText("greetings", v) }

// VoiceflowAPIKey sets the key of the external dialog tool.
func (u *HeadUpdate) VoiceflowAPIKey(v string) *HeadUpdate { return u.setText("voiceflowApiKey", v) }

// ClearVoiceflowAPIKey sends null as the key of the external dialog tool.
func (u *HeadUpdate) ClearVoiceflowAPIKey() *HeadUpdate { return u.set("voiceflowApiKey", nil) }

// IsRandomSuggestions sets whether suggestions are shown in random order.
func (u *HeadUpdate) IsRandomSuggestions(v bool) *HeadUpdate { return u.set("isRandomSuggestions", v) }

// Phrases replaces the phrases. Without arguments it sends an empty list.
func (u *HeadUpdate) Phrases(v ...string) *HeadUpdate { return u.set("phrases", orEmpty(v)) }

// Suggestions replaces the suggestions. Without arguments it sends an empty
// list.
func (u *HeadUpdate) Suggestions(v ...string) *HeadUpdate { return u.set("suggestions", orEmpty(v)) }

// CustomWords replaces the pronunciations, a map from word to spoken form. For
// nil it sends an empty object.
func (u *HeadUpdate) CustomWords(v map[string]string) *HeadUpdate {
	if v == nil {
		v = map[string]string{}
	}
	return u.set("customWords", v)
}

// PublicURL sets the access URL. The service assigns it, so few programs need
// this.
func (u *HeadUpdate) PublicURL(v string) *HeadUpdate { return u.setText("publicUrl", v) }

// FileURL sets the URL of the head's file.
func (u *HeadUpdate) FileURL(v string) *HeadUpdate { return u.setText("fileUrl", v) }

// ClearFileURL sends null as the URL of the head's file.
func (u *HeadUpdate) ClearFileURL() *HeadUpdate { return u.set("fileUrl", nil) }

// PluginOperationalModeConfig sets the configuration of the plugin mode: a
// value that encodes as a JSON object, or a Raw that holds one.
func (u *HeadUpdate) PluginOperationalModeConfig(v any) *HeadUpdate {
	return u.set("pluginOperationalModeConfig", v)
}

// ClearPluginOperationalModeConfig sends null as the configuration of the
// plugin mode.
func (u *HeadUpdate) ClearPluginOperationalModeConfig() *HeadUpdate {
	return u.set("pluginOperationalModeConfig", nil)
}

// SemanticThreshold sets the semantic threshold. Validate refuses NaN and
// infinities.
func (u *HeadUpdate) SemanticThreshold(v float64) *HeadUpdate { return u.set("semanticThreshold", v) }

// Set sets any field by its JSON name. It is meant for fields that the service
// has added since. A Secret and a Raw are sent as what they hold, unless they are
// nested in another value. Validate refuses read-only names and names that have
// an operation of their own.
func (u *HeadUpdate) Set(field string, value any) *HeadUpdate { return u.set(field, value) }

// Validate returns why the update can't be sent, all faults together, each an
// InvalidError: no fields, a placeholder such as "string", "<API_KEY>" or
// "[redacted]" at any depth, one such as YOUR_KEY, voiceID or "of your choice" as a
// provider, a voice, a key or in a URL, a voice without its provider or a provider
// without its voice, a language that is not a BCP 47 tag, a read-only name, a value
// of the wrong type.
func (u *HeadUpdate) Validate() error {
	_, err := u.body("")
	return err
}

// body returns the document to send, and the error of Validate.
func (u *HeadUpdate) body(id string) ([]byte, error) {
	const operation = "Heads.Update"
	if u == nil {
		return nil, invalid(operation, "update", "is nil", "make one with NewHeadUpdate", useNewHeadUpdate)
	}
	var faults faultList
	var few [8]updateField // as many as most updates set
	document, fields := u.write(id, few[:0])
	if len(fields) == 0 {
		faults.add(invalid(operation, "update", "sets no field, and an empty update can have unexpected effects", "call a setter"))
	}
	for _, f := range fields {
		if fault := f.refusal(); fault.Problem != "" {
			faults.add(faultOf(operation, cmp.Or(mask.OneLine(f.name, maxLabel), "field name"), fault))
		}
	}
	faults.add(checkVoice(operation, fields))
	return document, faults.join()
}

// checkVoice refuses half a voice.
func checkVoice(operation string, fields []updateField) error {
	var provider, voice fieldValue
	for _, f := range fields {
		switch f.name {
		case "ttsProvider":
			provider = f.fieldValue
		case "ttsVoice":
			voice = f.fieldValue
		}
	}
	if provider.raw == nil && voice.raw == nil {
		return nil
	}
	noProvider, noVoice := provider.isBlank(), voice.isBlank()
	var blank string
	switch {
	case noProvider && noVoice:
		blank = "both are blank"
	case noProvider:
		blank = "the provider is blank"
	case noVoice:
		blank = "the voice is blank"
	default:
		return nil
	}
	return invalid(operation, "ttsVoice", fmt.Sprintf("%s and ttsProvider %s must be set together, but %s", quote(voice.text()), quote(provider.text()), blank), "give both with HeadUpdate.Voice", useVoice)
}

// refusal returns why the field can't be sent, or no fault.
func (f *updateField) refusal() fault {
	if f.fault.Problem != "" {
		return f.fault
	}
	if strings.TrimSpace(f.name) == "" {
		return fault{Problem: "is blank", Remedy: "give the name that the field has in JSON"}
	}
	if known := findField(f.name); known != nil && known.isWritable() {
		if fault := known.fault(f.raw); fault.Problem != "" {
			return fault
		}
	} else if known := findFieldLike(f.name); known != nil {
		if known.isWritable() {
			return fault{Problem: "is not a field of the service", Remedy: "the name is " + known.name}
		}
		return known.updateFault
	}
	if found := findField(f.name).placeholder(f.raw); found != "" {
		return fault{Problem: fmt.Sprintf("holds the placeholder %q", found), Remedy: "give a real value or don't set the field"}
	}
	return fault{}
}

func (u *HeadUpdate) set(name string, v any) *HeadUpdate {
	u.put(name, encodeField(v))
	return u
}

func (u *HeadUpdate) setText(name, v string) *HeadUpdate {
	n := new(updateNode)
	n.updateField = updateField{name, fieldValue{raw: rawjson.AppendString(n.short[:0], v)}}
	u.add(n)
	return u
}

// setLanguage sets a language, with a fault if it is not a tag. Languages that
// were read from the service and those of Set are not checked.
func (u *HeadUpdate) setLanguage(name, v string) *HeadUpdate {
	value := fieldValue{raw: rawjson.String(v)}
	if v != "" && !check.IsPlaceholder(v) && !languageTag.MatchString(v) {
		value.fault = fault{Problem: quote(v) + " is not a language tag", Remedy: "give a BCP 47 tag such as en-US"}
	}
	u.put(name, value)
	return u
}

// put sets a field. The value must not be used afterwards.
func (u *HeadUpdate) put(name string, value fieldValue) {
	u.add(&updateNode{updateField: updateField{name, value}})
}

// add veils and adds a field. One of the same name is replaced in its place.
func (u *HeadUpdate) add(n *updateNode) {
	veil(n.raw)
	u.last = u.last.with(n)
}

// with returns the fields of n with another one.
func (n *updateNode) with(field *updateNode) *updateNode {
	if n.find(field.name) == nil {
		field.before = n
		return field
	}
	if n.name == field.name {
		field.before = n.before
		return field
	}
	return &updateNode{before: n.before.with(field), updateField: n.updateField}
}

// without returns the fields of n but those with one of the names.
func (n *updateNode) without(names ...string) *updateNode {
	switch {
	case n == nil:
		return nil
	case slices.Contains(names, n.name):
		return n.before.without(names...)
	}
	return &updateNode{before: n.before.without(names...), updateField: n.updateField}
}

// find returns the field of a name, or nil.
func (n *updateNode) find(name string) *updateNode {
	for ; n != nil; n = n.before {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (n *updateNode) count() (count int) {
	for ; n != nil; n = n.before {
		count++
	}
	return count
}

func (u *HeadUpdate) has(name string) bool { return u.last.find(name) != nil }

// dropEmptyVoice removes a voice without both parts, which could not be sent.
// It does not remove half a voice, which Validate refuses.
func (u *HeadUpdate) dropEmptyVoice() {
	if u.get("ttsProvider").text() == "" && u.get("ttsVoice").text() == "" {
		u.last = u.last.without("ttsProvider", "ttsVoice")
	}
}

// get returns the value of a field, or the zero fieldValue.
func (u *HeadUpdate) get(name string) (value fieldValue) {
	if n := u.last.find(name); n != nil {
		value = n.fieldValue
		value.raw = bytes.Clone(value.raw)
		veil(value.raw)
	}
	return value
}

// Document returns the fields as one JSON object, as Heads.Update sends them
// behind the id.
func (u *HeadUpdate) Document() Raw { return rawOf(u.document("")) }

// document returns the id, unless it is "", and the fields as one JSON object. A
// nil update has none.
func (u *HeadUpdate) document(id string) []byte {
	if u == nil {
		return nil
	}
	document, _ := u.write(id, nil)
	return document
}

// write returns the document, and appends the fields in their order, whose values are
// parts of it.
func (u *HeadUpdate) write(id string, fields []updateField) ([]byte, []updateField) {
	size := len(`{"id":""}`) + len(id)
	for n := u.last; n != nil; n = n.before {
		size += len(n.name) + len(n.raw) + len(`,"":`)
	}
	b := append(make([]byte, 0, size), '{')
	if id != "" {
		b = rawjson.AppendString(append(b, `"id":`...), id)
	}
	b, fields = u.last.write(b, fields)
	return append(b, '}'), fields
}

func (n *updateNode) write(b []byte, fields []updateField) ([]byte, []updateField) {
	if n == nil {
		return b, fields
	}
	b, fields = n.before.write(b, fields)
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = rawjson.AppendMember(b, n.name, n.raw)
	f := n.updateField
	f.raw = b[len(b)-len(n.raw) : len(b) : len(b)]
	veil(f.raw)
	return b, append(fields, f)
}

// orEmpty returns an empty list for nil.
func orEmpty(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}

// diffHeads returns the update that changes before into after. It sets exactly
// the fields that differ; a changed voice or provider brings its partner. Lists
// and maps are compared by content. If the heads are the same, the update has no
// fields. A difference in a field that an update can't change is an InvalidError.
func diffHeads(operation string, before, after *Head) (*HeadUpdate, error) {
	faults := readOnlyChanges(operation, before, after)
	u := NewHeadUpdate()
	for _, field := range writableFields {
		was, is := encodeField(field.value(before)), encodeField(field.value(after))
		switch {
		case was.equal(is):
		case !is.isNull():
			u.put(field.name, is)
		case !field.canEmpty():
			faults.add(invalid(operation, field.name, "was removed, which the service has no way to do", "set SystemPrompt to \"\" to empty it", useSystemPrompt))
		case field.access == nullable || !was.isEmpty():
			u.put(field.name, field.emptied())
		}
	}
	if u.has("ttsProvider") || u.has("ttsVoice") {
		u.Voice(after.TTSProvider, after.TTSVoice)
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	return u, nil
}

// readOnlyChanges returns a fault for each difference that an update can't make.
func readOnlyChanges(operation string, before, after *Head) (faults faultList) {
	for _, field := range headFields {
		if !field.isWritable() && field.changed(before, after) {
			faults.add(faultOf(operation, field.name, field.updateFault))
		}
	}
	return faults
}

// shownBy reports whether a head has all values of the update.
func (u *HeadUpdate) shownBy(h *Head) bool {
	_, fields := u.write("", nil)
	for _, f := range fields {
		has := encodeField(findField(f.name).value(h))
		bothEmpty := has.isEmpty() && f.isEmpty()
		if !bothEmpty && !rawjson.Same(has.raw, f.raw) {
			return false
		}
	}
	return true
}
