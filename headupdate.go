package heads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// HeadUpdate is a partial update of a head. A setter that is called sends its
// value, be it empty; a setter that is not called sends nothing. Setters copy
// what they are given and return the update, so that they can be chained. The
// last call for a field counts.
//
// A HeadUpdate may be used by several goroutines at once only while nobody
// calls a setter.
type HeadUpdate struct {
	id     string
	fields []updateField
}

// updateField is one member of the body.
type updateField struct {
	name  string
	value json.RawMessage
	fault string // why the value can't be sent
}

// NewHeadUpdate returns an empty update of the head with that id, a UUID.
func NewHeadUpdate(headID string) *HeadUpdate { return &HeadUpdate{id: headID} }

// HeadUpdateFrom returns an update with every writable field that h has: the
// ones that the document it was read from holds, and the ones that are not
// zero. It leaves out publicUrl, which the service assigns, what has an
// operation of its own (videoStreaming, enableEvents, conversationSettings), and
// a voice that is empty.
func HeadUpdateFrom(h *Head) *HeadUpdate {
	if h == nil {
		return NewHeadUpdate("") // refused by Validate
	}
	u := NewHeadUpdate(h.ID)
	for _, field := range writableFields {
		value := encodeField(field.value(h))
		raw, has := rawjson.Value(h.Raw, field.name)
		stated := has && (field.nullable || !rawjson.IsNull(raw))
		switch {
		case field.name == "publicUrl":
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
// as GET /head/{id} sends it, values byte for byte. The fields that the service
// would ignore are left out, and so are publicUrl, what has an operation of its
// own, fields that the contract does not name, null where it is not allowed, and
// a voice that is empty. A document that is no JSON object, has no id or holds a
// value of the wrong type gives an InvalidError.
func HeadUpdateFromJSON(getResponse []byte) (*HeadUpdate, error) {
	const operation = "HeadUpdateFromJSON"
	var document map[string]json.RawMessage
	if err := json.Unmarshal(getResponse, &document); err != nil || document == nil {
		return nil, invalid(operation, "document", "is not a JSON object; give the body of a GET /head/{id} answer")
	}
	var id string
	if json.Unmarshal(document["id"], &id) != nil || !isUUID(id) {
		return nil, invalid(operation, "id", "is missing or not a UUID; give the body of a GET /head/{id} answer")
	}
	u := NewHeadUpdate(id)
	var faults faultList
	for _, field := range writableFields {
		value, ok := document[field.name]
		if !ok || field.name == "publicUrl" || rawjson.IsNull(value) && !field.nullable {
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
		u.put(field.name, encodedField{raw: value})
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	u.dropEmptyVoice()
	return u, nil
}

// DiffHeads returns the update that turns before into after: exactly the
// fields that differ, but for a changed voice or provider, which brings its
// partner. Lists and maps are compared by content. The update has no fields
// when the heads are the same.
//
// A difference in a field that an update can't change is an InvalidError that
// names the method which does change it.
func DiffHeads(before, after *Head) (*HeadUpdate, error) {
	return diffHeads("DiffHeads", before, after)
}

func diffHeads(operation string, before, after *Head) (*HeadUpdate, error) {
	if before == nil || after == nil {
		return nil, invalid(operation, "head", "is nil; give two heads that Heads.Get returned")
	}
	faults := readOnlyChanges(operation, before, after)
	u := NewHeadUpdate(before.ID)
	for _, field := range writableFields {
		was, is := encodeField(field.value(before)), encodeField(field.value(after))
		switch {
		case was.equal(is):
		case !is.isNull():
			u.put(field.name, is)
		case !field.canEmpty():
			faults.add(invalid(operation, field.name, "was removed, which the service has no way to do; set SystemPrompt to \"\" to empty it"))
		case field.nullable || !was.isEmpty():
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

// For returns the same changes for another head.
func (u *HeadUpdate) For(headID string) *HeadUpdate {
	return &HeadUpdate{id: headID, fields: slices.Clone(u.fields)}
}

// Fields returns the JSON names of the fields in the body, id left out, in the
// order in which they are sent.
func (u *HeadUpdate) Fields() []string {
	names := make([]string, len(u.fields))
	for i, f := range u.fields {
		names[i] = f.name
	}
	return names
}

// Name sets the name of the head.
func (u *HeadUpdate) Name(v string) *HeadUpdate { return u.set("name", v) }

// Alias sets the alias of the head.
func (u *HeadUpdate) Alias(v string) *HeadUpdate { return u.set("alias", v) }

// Language sets the language, a BCP 47 tag such as en-US. Another text, such as
// "german", is refused by Validate.
func (u *HeadUpdate) Language(v string) *HeadUpdate { return u.setLanguage("language", v) }

// LanguageSpeechRecognition sets the language that is listened for, a BCP 47
// tag such as en-US.
func (u *HeadUpdate) LanguageSpeechRecognition(v string) *HeadUpdate {
	return u.setLanguage("languageSpeechRecognition", v)
}

// Voice sets the text-to-speech provider and the voice of that provider. The
// two go together; one without the other is refused.
func (u *HeadUpdate) Voice(provider, voice string) *HeadUpdate {
	return u.set("ttsProvider", provider).set("ttsVoice", voice)
}

// OperationMode sets how the head answers.
func (u *HeadUpdate) OperationMode(v OperationMode) *HeadUpdate { return u.set("operationMode", v) }

// OCProvider sets the provider of operation mode oc.
func (u *HeadUpdate) OCProvider(v string) *HeadUpdate { return u.set("ocProvider", v) }

// SystemPrompt sets the prompt: system_prompt in the object promptConfig.
func (u *HeadUpdate) SystemPrompt(v string) *HeadUpdate {
	return u.set("promptConfig", promptBody{SystemPrompt: v})
}

// Greetings sets the greeting text.
func (u *HeadUpdate) Greetings(v string) *HeadUpdate { return u.set("greetings", v) }

// VoiceflowAPIKey sets the key of the external dialog tool.
func (u *HeadUpdate) VoiceflowAPIKey(v string) *HeadUpdate { return u.set("voiceflowApiKey", v) }

// ClearVoiceflowAPIKey sends null as the key of the external dialog tool.
func (u *HeadUpdate) ClearVoiceflowAPIKey() *HeadUpdate { return u.set("voiceflowApiKey", nil) }

// IsRandomSuggestions sets whether suggestions come in random order.
func (u *HeadUpdate) IsRandomSuggestions(v bool) *HeadUpdate { return u.set("isRandomSuggestions", v) }

// Phrases replaces the phrases; without arguments it sends an empty list.
func (u *HeadUpdate) Phrases(v ...string) *HeadUpdate { return u.set("phrases", orEmpty(v)) }

// Suggestions replaces the suggestions; without arguments it sends an empty
// list.
func (u *HeadUpdate) Suggestions(v ...string) *HeadUpdate { return u.set("suggestions", orEmpty(v)) }

// CustomWords replaces the pronunciations, word to spoken form; nil sends an
// empty object.
func (u *HeadUpdate) CustomWords(v map[string]string) *HeadUpdate {
	if v == nil {
		v = map[string]string{}
	}
	return u.set("customWords", v)
}

// PublicURL sets the public access address. The service assigns it; few
// programs need this.
func (u *HeadUpdate) PublicURL(v string) *HeadUpdate { return u.set("publicUrl", v) }

// FileURL sets the address of the head's file.
func (u *HeadUpdate) FileURL(v string) *HeadUpdate { return u.set("fileUrl", v) }

// ClearFileURL sends null as the address of the head's file.
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

// SemanticThreshold sets the semantic threshold. NaN and infinities are refused.
func (u *HeadUpdate) SemanticThreshold(v float64) *HeadUpdate { return u.set("semanticThreshold", v) }

// Set sets any field by its JSON name, for one that the service has added
// since. Read-only names, and names that have an operation of their own, are
// refused by Validate.
func (u *HeadUpdate) Set(field string, value any) *HeadUpdate { return u.set(field, value) }

// Validate says why the update can't be sent, all faults together, each an
// InvalidError: no fields, an id that is no UUID, a placeholder such as
// "string" or "<API_KEY>" at any depth, a voice without its provider or a
// provider without its voice, a language given as something else than a BCP 47
// tag, a read-only name, a value of the wrong type.
func (u *HeadUpdate) Validate() error {
	operation := opHeadsUpdate.name
	if u == nil {
		return invalid(operation, "update", "is nil; make one with NewHeadUpdate")
	}
	var faults faultList
	faults.add(checkHeadID(operation, u.id))
	if len(u.fields) == 0 {
		faults.add(invalid(operation, "update", "sets no field, and an empty update can change a head in ways that nobody asked for; call a setter"))
	}
	for _, f := range u.fields {
		if fault := f.check(); fault != "" {
			faults.add(invalid(operation, cmp.Or(oneLine(f.name, maxLabel), "field name"), "%s", fault))
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
	provider, voice := u.text("ttsProvider"), u.text("ttsVoice")
	noProvider, noVoice := strings.TrimSpace(provider) == "", strings.TrimSpace(voice) == ""
	blank := ""
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
		quote(voice), quote(provider), blank)
}

// MarshalJSON returns the body that Update sends.
func (u HeadUpdate) MarshalJSON() ([]byte, error) { return u.body(), nil }

// Format shows the id and the names of the fields, no value.
func (u HeadUpdate) Format(f fmt.State, _ rune) { writeText(f, u.describe()) }

// LogValue shows the id and the names of the fields, no value.
func (u HeadUpdate) LogValue() slog.Value { return slog.StringValue(u.describe()) }

func (u HeadUpdate) describe() string {
	return fmt.Sprintf("heads.HeadUpdate{%s: %s}", oneLine(u.id, maxLabel), strings.Join(u.Fields(), " "))
}

// promptBody is what an update holds of a PromptConfig.
type promptBody struct {
	SystemPrompt string `json:"system_prompt"`
}

// fieldKind is the JSON type of a writable field.
type fieldKind string

const (
	kindString fieldKind = "string"
	kindBool   fieldKind = "boolean"
	kindNumber fieldKind = "number"
	kindList   fieldKind = "list of strings"
	kindWords  fieldKind = "object of strings"
	kindObject fieldKind = "object"
	kindPrompt fieldKind = "object with the string system_prompt and without the read-only id"
)

// writableField is a field that an update can change.
type writableField struct {
	name     string
	kind     fieldKind
	nullable bool
	value    func(*Head) any // nil for null and for absent
}

// writableFields are all fields that an update can change, in the contract's order.
var writableFields = []writableField{
	{"name", kindString, false, func(h *Head) any { return h.Name }},
	{"alias", kindString, false, func(h *Head) any { return h.Alias }},
	{"language", kindString, false, func(h *Head) any { return h.Language }},
	{"languageSpeechRecognition", kindString, false, func(h *Head) any { return h.LanguageSpeechRecognition }},
	{"ttsProvider", kindString, false, func(h *Head) any { return h.TTSProvider }},
	{"ttsVoice", kindString, false, func(h *Head) any { return h.TTSVoice }},
	{"operationMode", kindString, false, func(h *Head) any { return h.OperationMode }},
	{"ocProvider", kindString, false, func(h *Head) any { return h.OCProvider }},
	{"promptConfig", kindPrompt, false, func(h *Head) any {
		if h.PromptConfig == nil {
			return nil
		}
		return promptBody{h.PromptConfig.SystemPrompt}
	}},
	{"greetings", kindString, false, func(h *Head) any { return h.Greetings }},
	{"voiceflowApiKey", kindString, true, func(h *Head) any { return h.VoiceflowAPIKey }},
	{"isRandomSuggestions", kindBool, false, func(h *Head) any { return h.IsRandomSuggestions }},
	{"phrases", kindList, false, func(h *Head) any { return h.Phrases }},
	{"suggestions", kindList, false, func(h *Head) any { return h.Suggestions }},
	{"customWords", kindWords, false, func(h *Head) any { return h.CustomWords }},
	{"publicUrl", kindString, false, func(h *Head) any { return h.PublicURL }},
	{"fileUrl", kindString, true, func(h *Head) any { return h.FileURL }},
	{"pluginOperationalModeConfig", kindObject, true, func(h *Head) any { return h.PluginOperationalModeConfig }},
	{"semanticThreshold", kindNumber, false, func(h *Head) any { return h.SemanticThreshold }},
}

// notUpdated says for the fields that an update can't change what does.
var notUpdated = map[string]string{
	"id":                   "it identifies the head and never changes; HeadUpdate.For names another head",
	"videoStreaming":       "use Heads.SetVideoStreaming, or Heads.ConvertToStreaming and Heads.ConvertToLegacy",
	"enableEvents":         "use Webhooks.SetDelivery",
	"conversationSettings": "use ConversationSettings.Modify or ConversationSettings.SetTools",
	"splitter":             "it is read-only; the service turns it off when streaming is enabled (Heads.SetVideoStreaming)",
	"headVisualId":         "it is read-only; a head with another visual has to be created anew",
}

const readOnly = "it is read-only, and the service would ignore it"

// unchangeable returns why an update can't hold a field, or "".
func unchangeable(field string) string {
	for i := range headType.NumField() {
		name := jsonName(headType.Field(i))
		if name == "-" || !strings.EqualFold(name, field) || isWritable(name) {
			continue
		}
		if reason, ok := notUpdated[name]; ok {
			return reason
		}
		return readOnly
	}
	return ""
}

var headType = reflect.TypeFor[Head]()

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func isWritable(name string) bool { return findWritable(name) != nil }

func findWritable(name string) *writableField {
	i := slices.IndexFunc(writableFields, func(f writableField) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &writableFields[i]
}

// writableLike is the writable field whose name differs only in letter case,
// or "".
func writableLike(name string) string {
	for _, f := range writableFields {
		if strings.EqualFold(f.name, name) {
			return f.name
		}
	}
	return ""
}

// readOnlyChanges finds the differences that an update can't make.
func readOnlyChanges(operation string, before, after *Head) (faults faultList) {
	b, a := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for i := range headType.NumField() {
		name := jsonName(headType.Field(i))
		if name == "-" || isWritable(name) || sameValue(b.Field(i).Interface(), a.Field(i).Interface()) {
			continue
		}
		faults.add(invalid(operation, name, "can't be changed by an update: %s", unchangeable(name)))
	}
	if a := after.PromptConfig; a != nil && a.ID != "" && a.ID != before.promptID() {
		faults.add(invalid(operation, "promptConfig.id", "can't be changed by an update: %s", readOnly))
	}
	return faults
}

// sameValue compares JSON as JSON: a head that was stored and read back has
// other white space and escapes.
func sameValue(was, is any) bool {
	switch was.(type) {
	case json.RawMessage, *ConversationSettings:
		return encodeField(was).equal(encodeField(is))
	}
	return reflect.DeepEqual(was, is)
}

func (h *Head) promptID() string {
	if h.PromptConfig == nil {
		return ""
	}
	return h.PromptConfig.ID
}

// canEmpty says whether the service has a value for a field without a value.
func (f *writableField) canEmpty() bool {
	return f.nullable || f.kind == kindList || f.kind == kindWords
}

// emptied is what is sent for a field that has lost its value.
func (f *writableField) emptied() encodedField {
	switch {
	case f.nullable:
		return encodedField{raw: json.RawMessage("null")}
	case f.kind == kindList:
		return encodedField{raw: json.RawMessage("[]")}
	default:
		return encodedField{raw: json.RawMessage("{}")}
	}
}

// fault says why a JSON value does not suit the field, or "".
func (f *writableField) fault(value json.RawMessage) string {
	if rawjson.IsNull(value) {
		if f.nullable {
			return ""
		}
		return fmt.Sprintf("is null, which the service does not allow here; want a JSON %s", f.kind)
	}
	if !f.kind.fits(value) {
		return fmt.Sprintf("is a JSON %s; want a JSON %s", rawjson.Kind(value), f.kind)
	}
	return ""
}

// languageTag has the form of BCP 47 with a language of two or three letters,
// which all languages of heads have.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?` +
	`(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-[A-WYZa-wyz0-9](-[A-Za-z0-9]{2,8})+)*(-[Xx](-[A-Za-z0-9]{1,8})+)?$`)

// fits reports whether a JSON value is of the kind.
func (k fieldKind) fits(value []byte) bool {
	switch kind := rawjson.Kind(value); k {
	case kindList:
		for element := range rawjson.Elements(value) {
			if rawjson.Kind(element) != "string" {
				return false
			}
		}
		return kind == "array"
	case kindWords:
		for m := range rawjson.Members(value) {
			if rawjson.Kind(m.Value) != "string" {
				return false
			}
		}
		return kind == "object"
	case kindPrompt:
		prompt, _ := rawjson.Value(value, "system_prompt")
		_, hasID := rawjson.Value(value, "id")
		return rawjson.Kind(prompt) == "string" && !hasID
	default:
		return kind == string(k)
	}
}

// check says why the field can't be sent, or "".
func (f *updateField) check() string {
	if f.fault != "" {
		return f.fault
	}
	if strings.TrimSpace(f.name) == "" {
		return "is blank; give the name that the field has in JSON"
	}
	if known := findWritable(f.name); known != nil {
		if fault := known.fault(f.value); fault != "" {
			return fault
		}
	} else if reason := unchangeable(f.name); reason != "" {
		return "can't be changed by an update: " + reason
	} else if meant := writableLike(f.name); meant != "" {
		return "is not a field of the service; the name is " + meant
	}
	if found := findPlaceholder(f.value); found != "" {
		return fmt.Sprintf("holds the placeholder %q; give a real value or leave the field out", found)
	}
	return ""
}

// encodedField is the value of a field as it is sent.
type encodedField struct {
	raw   json.RawMessage
	fault string
}

func encodeField(v any) encodedField {
	raw, err := rawjson.Encode(v)
	if err != nil {
		return encodedField{raw: json.RawMessage("null"), fault: "can't be written as JSON; give a value that encoding/json takes"}
	}
	return encodedField{raw: raw}
}

func (e encodedField) isNull() bool { return e.fault == "" && rawjson.IsNull(e.raw) }

func (e encodedField) equal(o encodedField) bool {
	return e.fault == o.fault && bytes.Equal(escapeHTML(e.raw), escapeHTML(o.raw))
}

// escapeHTML writes <, > and & as json.Marshal does.
func escapeHTML(raw []byte) []byte {
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, raw)
	return escaped.Bytes()
}

// isZero says whether the value is what a field has that was never set.
func (e encodedField) isZero() bool {
	switch string(e.raw) {
	case `""`, "false", "0", "null":
		return e.fault == ""
	}
	return false
}

// isEmpty says whether the value is null, an empty list or an empty object.
func (e encodedField) isEmpty() bool {
	switch string(e.raw) {
	case "[]", "{}", "null":
		return true
	}
	return false
}

func (u *HeadUpdate) set(name string, v any) *HeadUpdate {
	u.put(name, encodeField(v))
	return u
}

// setLanguage sets a language with a fault if it can't be one. Values that were
// read from the service, and those of Set, are sent as they are.
func (u *HeadUpdate) setLanguage(name, v string) *HeadUpdate {
	value := encodeField(v)
	if v != "" && !isPlaceholder(v) && !languageTag.MatchString(v) {
		value.fault = quote(v) + " is not a language tag; give a BCP 47 tag such as en-US"
	}
	u.put(name, value)
	return u
}

func (u *HeadUpdate) put(name string, value encodedField) {
	field := updateField{name: name, value: value.raw, fault: value.fault}
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

// dropEmptyVoice takes out a voice of which neither part is set: nothing that
// could be sent. Half a voice stays, for Validate to refuse.
func (u *HeadUpdate) dropEmptyVoice() {
	if u.text("ttsProvider") == "" && u.text("ttsVoice") == "" {
		u.fields = slices.DeleteFunc(u.fields, func(f updateField) bool { return f.name == "ttsProvider" || f.name == "ttsVoice" })
	}
}

// text is the value of a field that holds a string, else "".
func (u *HeadUpdate) text(name string) string {
	if i := u.index(name); i >= 0 && rawjson.Kind(u.fields[i].value) == "string" {
		return rawjson.Unquote(u.fields[i].value)
	}
	return ""
}

// body writes id and fields as one JSON object.
func (u *HeadUpdate) body() []byte {
	size := len(`{"id":""}`) + len(u.id)
	for _, f := range u.fields {
		size += len(f.name) + len(f.value) + len(`,"":`)
	}
	b := append(make([]byte, 0, size), '{')
	b = rawjson.AppendString(append(b, `"id":`...), u.id)
	for _, f := range u.fields {
		b = rawjson.AppendMember(append(b, ','), f.name, f.value)
	}
	return append(b, '}')
}

// promptOnly leaves of a promptConfig what an update may hold. One that is a
// string is the prompt itself.
func promptOnly(value json.RawMessage) (json.RawMessage, bool) {
	switch rawjson.Kind(value) {
	case "object":
	case "string":
		return promptObject(value), true
	default:
		return value, true // refused for its type
	}
	prompt, ok := rawjson.Value(value, "system_prompt")
	return promptObject(prompt), ok && !rawjson.IsNull(prompt)
}

// promptObject is the promptConfig of a prompt, a JSON value.
func promptObject(prompt []byte) json.RawMessage {
	return append(rawjson.AppendMember([]byte{'{'}, "system_prompt", prompt), '}')
}

func hasPrompt(promptConfig json.RawMessage) bool {
	_, ok := promptOnly(promptConfig)
	return ok
}

// shownBy reports whether a head has all values of the update.
func (u *HeadUpdate) shownBy(h *Head) bool {
	for _, f := range u.fields {
		has := encodeField(findWritable(f.name).value(h))
		if !sameJSON(has.raw, f.value) && !(has.isEmpty() && encodedField{raw: f.value}.isEmpty()) {
			return false
		}
	}
	return true
}

// sameJSON compares two documents by content, whatever the order of their keys.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// orEmpty makes nil an empty list.
func orEmpty(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
