package heads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

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
	id     string
	fields []updateField
}

// updateField is one member of the body.
type updateField struct {
	name string
	fieldValue
}

// NewHeadUpdate returns an empty update of the head with that id, a UUID.
func NewHeadUpdate(headID string) *HeadUpdate {
	return &HeadUpdate{id: headID, fields: make([]updateField, 0, 4)} // room for what most updates set
}

// HeadUpdateFrom returns an update with every writable field that h has: those
// in the document that h was read from, and those that are not zero. It skips
// publicUrl, which the service assigns, the fields that have an operation of
// their own (videoStreaming, enableEvents, conversationSettings), and an empty
// voice.
func HeadUpdateFrom(h *Head) *HeadUpdate {
	if h == nil {
		return NewHeadUpdate("") // refused by Validate
	}
	u := NewHeadUpdate(h.ID)
	for _, field := range writableFields {
		value := encodeField(field.value(h))
		raw, has := rawjson.Value(h.Raw, field.name)
		stated := has && (field.access == nullable || !rawjson.IsNull(raw))
		switch {
		case field.access == assigned:
		case field.name == "promptConfig" && h.PromptConfig != nil && h.PromptConfig.SystemPrompt == "" && has && !hasPrompt(raw):
		case value.isNull():
			if stated && field.canEmpty() {
				u.put(field.name, field.emptied())
			}
		case stated || !value.isZero():
			u.put(field.name, value)
		}
	}
	u.dropEmptyVoice()
	return u
}

// HeadUpdateFromJSON returns an update with every writable field of a document
// as GET /head/{id} sends it. Values are kept byte for byte. It skips the fields
// that the service would ignore, publicUrl, the fields that have an operation of
// their own, fields that the contract does not name, null where the contract
// does not allow it, and an empty voice.
//
// It returns an InvalidError if the document is not a JSON object, has no id, holds
// a value of the wrong type, or holds a field of a head twice. Names are exact.
func HeadUpdateFromJSON(getResponse []byte) (*HeadUpdate, error) {
	const operation = "HeadUpdateFromJSON"
	if !json.Valid(getResponse) || rawjson.Kind(getResponse) != "object" {
		return nil, invalid(operation, "document", "is not a JSON object; give the body of a GET /head/{id} answer")
	}
	document := bytes.Clone(getResponse)
	id, _ := rawjson.Value(document, "id")
	if !isUUID(textOf(id)) {
		return nil, invalid(operation, "id", "is missing or not a UUID; give the body of a GET /head/{id} answer")
	}
	u := NewHeadUpdate(textOf(id))
	var faults faultList
	var twice *exactjson.DuplicateError
	if errors.As(exactjson.Decode(document, new(Head), exactjson.Rules{Open: anyField}), &twice) {
		faults.add(invalid(operation, twice.Field, "occurs twice; give the document as the service sends it"))
	}
	for _, field := range writableFields {
		value, ok := rawjson.Value(document, field.name)
		if !ok || field.access == assigned || rawjson.IsNull(value) && field.access != nullable {
			continue
		}
		if field.name == "promptConfig" {
			if value, ok = promptOnly(value); !ok {
				continue
			}
		}
		if fault := field.fault(value); fault != "" {
			faults.add(invalid(operation, field.name, "%s", fault))
			continue
		}
		u.put(field.name, fieldValue{raw: value})
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	u.dropEmptyVoice()
	return u, nil
}

// For returns an update that makes the same changes to another head.
func (u *HeadUpdate) For(headID string) *HeadUpdate {
	return &HeadUpdate{id: headID, fields: slices.Clone(u.fields)}
}

// Fields returns the JSON names of the fields in the body, without the id, in
// the order in which they are sent.
func (u *HeadUpdate) Fields() []string {
	names := make([]string, len(u.fields))
	for i, f := range u.fields {
		names[i] = f.name
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
// value that encodes as a JSON object.
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
// has added since. Validate refuses read-only names and names that have an
// operation of their own.
func (u *HeadUpdate) Set(field string, value any) *HeadUpdate { return u.set(field, value) }

// Validate returns why the update can't be sent, all faults together, each an
// InvalidError: no fields, an id that is not a UUID, a placeholder such as
// "string" or "<API_KEY>" at any depth, one such as YOUR_KEY, voiceID or "of your
// choice" as a provider, a voice, a key or in a URL, a voice without its provider or a
// provider without its voice, a language that is not a BCP 47 tag, a read-only
// name, a value of the wrong type.
func (u *HeadUpdate) Validate() error {
	operation := opHeadsUpdate.name
	if u == nil {
		return invalid(operation, "update", "is nil; make one with NewHeadUpdate")
	}
	var faults faultList
	faults.add(checkHeadID(operation, u.id))
	if len(u.fields) == 0 {
		faults.add(invalid(operation, "update", "sets no field, and an empty update can have unexpected effects; call a setter"))
	}
	for _, f := range u.fields {
		if fault := f.refusal(); fault != "" {
			faults.add(invalid(operation, cmp.Or(mask.OneLine(f.name, maxLabel), "field name"), "%s", fault))
		}
	}
	faults.add(u.checkVoice(operation))
	return faults.join()
}

// checkVoice refuses half a voice.
func (u *HeadUpdate) checkVoice(operation string) error {
	if !u.has("ttsProvider") && !u.has("ttsVoice") {
		return nil
	}
	noProvider, noVoice := u.get("ttsProvider").isBlank(), u.get("ttsVoice").isBlank()
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
	return invalid(operation, "ttsVoice", "%s and ttsProvider %s must be set together, but %s; give both, use Voice(provider, voice)",
		quote(u.get("ttsVoice").text()), quote(u.get("ttsProvider").text()), blank)
}

// MarshalJSON returns the body that Update sends.
func (u HeadUpdate) MarshalJSON() ([]byte, error) { return u.document(), nil }

// Format shows the id and the names of the fields, but no value.
func (u HeadUpdate) Format(f fmt.State, _ rune) { writeText(f, u.describe()) }

// LogValue shows the id and the names of the fields, but no value.
func (u HeadUpdate) LogValue() slog.Value { return slog.StringValue(u.describe()) }

func (u HeadUpdate) describe() string {
	return fmt.Sprintf("heads.HeadUpdate{%s: %s}", mask.OneLine(u.id, maxLabel), strings.Join(u.Fields(), " "))
}

// refusal returns why the field can't be sent, or "".
func (f *updateField) refusal() string {
	if f.fault != "" {
		return f.fault
	}
	if strings.TrimSpace(f.name) == "" {
		return "is blank; give the name that the field has in JSON"
	}
	if known := findField(f.name); known != nil && known.isWritable() {
		if fault := known.fault(f.raw); fault != "" {
			return fault
		}
	} else if known := findFieldLike(f.name); known != nil {
		if known.isWritable() {
			return "is not a field of the service; the name is " + known.name
		}
		return known.unchangeable()
	}
	if found := findField(f.name).placeholder(f.raw); found != "" {
		return fmt.Sprintf("holds the placeholder %q; give a real value or don't set the field", found)
	}
	return ""
}

func (u *HeadUpdate) set(name string, v any) *HeadUpdate {
	u.put(name, encodeField(v))
	return u
}

func (u *HeadUpdate) setText(name, v string) *HeadUpdate {
	u.put(name, fieldValue{raw: rawjson.String(v)})
	return u
}

// setLanguage sets a language, with a fault if it is not a tag. Languages that
// were read from the service and those of Set are not checked.
func (u *HeadUpdate) setLanguage(name, v string) *HeadUpdate {
	value := fieldValue{raw: rawjson.String(v)}
	if v != "" && !isPlaceholder(v) && !languageTag.MatchString(v) {
		value.fault = quote(v) + " is not a language tag; give a BCP 47 tag such as en-US"
	}
	u.put(name, value)
	return u
}

func (u *HeadUpdate) put(name string, value fieldValue) {
	field := updateField{name, value}
	if i := u.index(name); i >= 0 {
		u.fields[i] = field
		return
	}
	u.fields = append(u.fields, field)
}

func (u *HeadUpdate) index(name string) int {
	return slices.IndexFunc(u.fields, func(f updateField) bool { return f.name == name })
}

func (u *HeadUpdate) has(name string) bool { return u.index(name) >= 0 }

// dropEmptyVoice removes a voice without both parts, which could not be sent.
// Half a voice stays, and Validate refuses it.
func (u *HeadUpdate) dropEmptyVoice() {
	if u.get("ttsProvider").text() == "" && u.get("ttsVoice").text() == "" {
		u.fields = slices.DeleteFunc(u.fields, func(f updateField) bool { return f.name == "ttsProvider" || f.name == "ttsVoice" })
	}
}

// get returns the value of a field, or the zero fieldValue.
func (u *HeadUpdate) get(name string) fieldValue {
	if i := u.index(name); i >= 0 {
		return u.fields[i].fieldValue
	}
	return fieldValue{}
}

// document returns the id and the fields as one JSON object.
func (u *HeadUpdate) document() json.RawMessage {
	size := len(`{"id":""}`) + len(u.id)
	for _, f := range u.fields {
		size += len(f.name) + len(f.raw) + len(`,"":`)
	}
	b := append(make([]byte, 0, size), '{')
	b = rawjson.AppendString(append(b, `"id":`...), u.id)
	for _, f := range u.fields {
		b = rawjson.AppendMember(append(b, ','), f.name, f.raw)
	}
	return append(b, '}')
}

// orEmpty returns an empty list for nil.
func orEmpty(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
