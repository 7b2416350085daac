package heads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// OperationMode is how a head answers. The service knows more values than the
// constants.
type OperationMode string

// The operation modes that the contract names. Only a head in mode oc (open
// conversation) can call tools.
const (
	OperationModeTTT OperationMode = "ttt"
	OperationModeOC  OperationMode = "oc"
)

// Head is the complete configuration of a head.
//
// Fields are plain values. A nil pointer, slice or map means that the service
// sent null or nothing; Has distinguishes the two.
//
// Nothing shows the secrets of a Head: it is safe to print, to log and to encode
// as JSON. To store a head, store Raw.Bytes(). Decoding that gives a Head with
// all its secrets.
type Head struct {
	ID                          string                `json:"id"` // UUID
	Name                        string                `json:"name"`
	Alias                       string                `json:"alias"`
	Language                    string                `json:"language"`                  // of the form xx-XX
	LanguageSpeechRecognition   string                `json:"languageSpeechRecognition"` // of the form xx-XX
	TTSProvider                 string                `json:"ttsProvider"`
	TTSVoice                    string                `json:"ttsVoice"`
	OperationMode               OperationMode         `json:"operationMode"`
	OCProvider                  string                `json:"ocProvider"`
	PromptConfig                *PromptConfig         `json:"promptConfig"`
	Greetings                   string                `json:"greetings"`
	VoiceflowAPIKey             *Secret               `json:"voiceflowApiKey"` // null allowed
	IsRandomSuggestions         bool                  `json:"isRandomSuggestions"`
	Phrases                     []string              `json:"phrases"`
	Suggestions                 []string              `json:"suggestions"`
	CustomWords                 map[string]string     `json:"customWords"`                          // word to spoken form
	PublicURL                   Secret                `json:"publicUrl"`                            // an access URL with its key; see Client.AccessURL
	FileURL                     *string               `json:"fileUrl"`                              // null allowed
	PluginOperationalModeConfig Raw                   `json:"pluginOperationalModeConfig,omitzero"` // object or null
	SemanticThreshold           float64               `json:"semanticThreshold"`
	VideoStreaming              bool                  `json:"videoStreaming"` // see SetVideoStreaming
	Splitter                    bool                  `json:"splitter"`       // read-only; never together with VideoStreaming
	EnableEvents                bool                  `json:"enableEvents"`   // see WebhooksService.SetDelivery
	ConversationSettings        *ConversationSettings `json:"conversationSettings"`

	// The fields below are read-only: the service ignores them in an update.

	CreatedAt            Time          `json:"createdAt"`
	UpdatedAt            Time          `json:"updatedAt"`
	PublicID             string        `json:"publicId"`
	OrgID                string        `json:"orgId"`
	OrgPublicID          string        `json:"orgPublicId"`
	HeadVisualID         string        `json:"headVisualId"`
	DocumentURL          string        `json:"documentUrl"`
	EncodedPath          string        `json:"encodedPath"`
	HeadVisualVideoURL   string        `json:"headVisualVideoUrl"`
	PosterVideoImage     string        `json:"posterVideoImage"`
	TTSDisplayName       string        `json:"ttsDisplayName"`
	IsActive             bool          `json:"isActive"`
	TTSStream            bool          `json:"ttsStream"`
	ExpirationSeconds    float64       `json:"expirationSeconds"`
	AllowedOrigins       []string      `json:"allowedOrigins"`
	AllowedIframeOrigins []string      `json:"allowedIframeOrigins"`
	DocumentJSONDTO      Raw           `json:"documentJsonDto,omitzero"`
	IconConfig           Raw           `json:"iconConfig,omitzero"`
	VideoCache           Raw           `json:"videoCache,omitzero"`
	Organisation         *Organisation `json:"organisation"`

	// Raw is the document as received, including fields that Head doesn't have.
	Raw Raw `json:"-"`
}

// PromptConfig holds the prompt of a head. Its ID is read-only. If the service
// sends the prompt as a plain string, that is the SystemPrompt.
type PromptConfig struct {
	ID           string `json:"id,omitempty"`
	SystemPrompt string `json:"system_prompt"`
}

// Organisation is the owner of a head. All of it is read-only.
type Organisation struct {
	ID               string  `json:"id"`
	CreatedAt        Time    `json:"createdAt"`
	UpdatedAt        Time    `json:"updatedAt"`
	APIKey           Secret  `json:"apiKey"`
	Name             string  `json:"name"`
	PublicID         string  `json:"publicId"`
	Alias            string  `json:"alias"`
	SubscriptionType string  `json:"subscriptionType"`
	Slots            float64 `json:"slots"`
	Streaming        bool    `json:"streaming"`
	IsActive         bool    `json:"isActive"`
}

// Has reports whether the document that the head was read from holds a field,
// even one that is null. The name is the one in JSON.
func (h *Head) Has(field string) bool {
	_, ok := rawjson.Value(h.Raw.Bytes(), field)
	return ok
}

// LogValue shows id and name.
func (h Head) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", label(h.ID)), slog.String("name", label(h.Name)))
}

// settings returns the head's settings, or empty ones.
func (h *Head) settings() *ConversationSettings {
	if h.ConversationSettings == nil {
		return &ConversationSettings{missing: !h.Has("conversationSettings")}
	}
	return h.ConversationSettings
}

// UnmarshalJSON reads the document of a head, as the service sends it or as it was
// stored, and keeps it in Raw. Names are exact: a field in another letter case is
// in Raw only. A field that occurs twice is an error.
func (h *Head) UnmarshalJSON(document []byte) error { return unmarshal(document, h.decode) }

func (h *Head) decode(document []byte) error {
	if err := decodeObject(document, h, exactjson.Rules{Open: isOpenField, Mend: promptOfString}); err != nil {
		return err
	}
	h.Raw = rawOf(bytes.Clone(document))
	if h.ConversationSettings == nil {
		return nil
	}
	for i := range h.ConversationSettings.Tools {
		h.ConversationSettings.Tools[i].served = true
	}
	return nil
}

func (h *Head) checkID(id string) error { return sameID("head", h.ID, id) }

// promptOfString reads a promptConfig that is a string as the prompt.
func promptOfString(path string, value []byte) []byte {
	if path != "promptConfig" || rawjson.Kind(value) != "string" {
		return nil
	}
	return promptObject(value)
}

// isOpenField reports whether the contract leaves the type of a field of a head open.
func isOpenField(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return slices.ContainsFunc(headFields, func(f headField) bool {
		return f.access == open && (f.name == path || f.name == name)
	})
}

// fieldAccess is what an update can do with a field.
type fieldAccess int

const (
	writable  fieldAccess = iota + 1 // an update can change it
	nullable                         // an update can change it, also to null
	assigned                         // an update can change it, but the service assigns it: copies of a head don't hold it
	immutable                        // an update can't change it
	open                             // an update can't change it, and the contract leaves its type open
)

// headField is one field of a head.
type headField struct {
	name        string // in JSON
	access      fieldAccess
	updateFault fault // why an update can't change it, and what can; the zero fault means readOnly

	index []int     // of the field in Head
	kind  fieldKind // of a writable field
}

// readOnly is the fault of a field that no one can change.
var readOnly = fault{Problem: notByUpdate + ": it is read-only, and the service would ignore it", Remedy: "leave it as it is"}

const notByUpdate = "can't be changed by an update"

// headFields is the one table of the fields of a head. Fields that an update
// can change are in the contract's order. A new field of the service is one line
// here, a field in Head, and a setter.
var headFields = bindFields([]headField{
	{name: "id", access: immutable, updateFault: fault{Problem: notByUpdate + ": it identifies the head and never changes", Remedy: "give the id of another head to Heads.Update", Use: useHeadsUpdate}},
	{name: "name", access: writable},
	{name: "alias", access: writable},
	{name: "language", access: writable},
	{name: "languageSpeechRecognition", access: writable},
	{name: "ttsProvider", access: writable},
	{name: "ttsVoice", access: writable},
	{name: "operationMode", access: writable},
	{name: "ocProvider", access: writable},
	{name: "promptConfig", access: writable},
	{name: "promptConfig.id", access: open},
	{name: "greetings", access: writable},
	{name: "voiceflowApiKey", access: nullable},
	{name: "isRandomSuggestions", access: writable},
	{name: "phrases", access: writable},
	{name: "suggestions", access: writable},
	{name: "customWords", access: writable},
	{name: "publicUrl", access: assigned},
	{name: "fileUrl", access: nullable},
	{name: "pluginOperationalModeConfig", access: nullable},
	{name: "semanticThreshold", access: writable},
	{name: "videoStreaming", access: immutable, updateFault: fault{Problem: notByUpdate, Remedy: "use Heads.SetVideoStreaming, or Heads.ConvertToStreaming and Heads.ConvertToLegacy", Use: useSetVideoStreaming}},
	{name: "splitter", access: immutable, updateFault: fault{Problem: notByUpdate + ": it is read-only", Remedy: "the service turns it off when Heads.SetVideoStreaming turns streaming on", Use: useSetVideoStreaming}},
	{name: "enableEvents", access: immutable, updateFault: fault{Problem: notByUpdate, Remedy: "use Webhooks.SetDelivery", Use: useSetDelivery}},
	{name: "conversationSettings", access: immutable, updateFault: fault{Problem: notByUpdate, Remedy: "use ConversationSettings.Modify or ConversationSettings.SetTools", Use: useSettingsModify}},
	{name: "createdAt", access: open},
	{name: "updatedAt", access: open},
	{name: "publicId", access: open},
	{name: "orgId", access: open},
	{name: "orgPublicId", access: open},
	{name: "headVisualId", access: open, updateFault: fault{Problem: notByUpdate + ": it is read-only", Remedy: "create a new head for another visual"}},
	{name: "documentUrl", access: open},
	{name: "encodedPath", access: open},
	{name: "headVisualVideoUrl", access: open},
	{name: "posterVideoImage", access: open},
	{name: "ttsDisplayName", access: open},
	{name: "isActive", access: open},
	{name: "ttsStream", access: open},
	{name: "expirationSeconds", access: open},
	{name: "allowedOrigins", access: open},
	{name: "allowedIframeOrigins", access: open},
	{name: "documentJsonDto", access: open},
	{name: "iconConfig", access: open},
	{name: "videoCache", access: open},
	{name: "organisation", access: open},
})

// writableFields are the fields that an update can change.
var writableFields = slices.DeleteFunc(slices.Clone(headFields), func(f headField) bool { return !f.isWritable() })

// WritableFields returns the JSON names of the fields that an update can change,
// in the contract's order.
func WritableFields() []string {
	names := make([]string, len(writableFields))
	for i, field := range writableFields {
		names[i] = field.name
	}
	return names
}

// bindFields finds the fields of Head by their JSON names.
func bindFields(fields []headField) []headField {
	for i := range fields {
		f := &fields[i]
		t := reflect.TypeFor[Head]()
		for name := range strings.SplitSeq(f.name, ".") {
			t = indirect(t)
			n := fieldNamed(t, name)
			f.index, t = append(f.index, n), t.Field(n).Type
		}
		if f.isWritable() {
			f.kind = kindOf(t)
		}
		f.updateFault = cmp.Or(f.updateFault, readOnly)
	}
	return fields
}

func fieldNamed(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return i
		}
	}
	panic("heads: " + t.Name() + " has no field " + name)
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// findField returns the field of that name, or nil.
func findField(name string) *headField {
	return firstField(func(f headField) bool { return f.name == name })
}

// findFieldLike is findField in any letter case.
func findFieldLike(name string) *headField {
	return firstField(func(f headField) bool { return strings.EqualFold(f.name, name) })
}

func firstField(match func(headField) bool) *headField {
	if i := slices.IndexFunc(headFields, match); i >= 0 {
		return &headFields[i]
	}
	return nil
}

func (f *headField) isWritable() bool { return f.access <= assigned }

// canEmpty reports whether the service has a value for a field without a value.
func (f *headField) canEmpty() bool {
	return f.access == nullable || f.kind == kindList || f.kind == kindWords
}

// emptied returns what is sent for a field that has lost its value.
func (f *headField) emptied() fieldValue {
	switch {
	case f.access == nullable:
		return fieldValue{raw: json.RawMessage("null")}
	case f.kind == kindList:
		return fieldValue{raw: json.RawMessage("[]")}
	default:
		return fieldValue{raw: json.RawMessage("{}")}
	}
}

// value returns what a head holds in the field, as an update would send it.
func (f *headField) value(h *Head) any {
	v := reflect.ValueOf(h)
	for _, i := range f.index {
		if v = reflect.Indirect(v); !v.IsValid() {
			return nil
		}
		v = v.Field(i)
	}
	if prompt, ok := v.Interface().(*PromptConfig); ok && prompt != nil {
		return promptBody{prompt.SystemPrompt}
	}
	return v.Interface()
}

// changed reports whether two heads differ in the field.
func (f *headField) changed(before, after *Head) bool {
	was, is := f.value(before), f.value(after)
	switch was.(type) {
	case Raw, *ConversationSettings:
		// A head that was stored and read back has other white space and escapes.
		return !encodeField(was).equal(encodeField(is))
	}
	if len(f.index) > 1 && (is == nil || is == "") {
		return false // a prompt is sent without its id
	}
	return !reflect.DeepEqual(was, is)
}

// fault returns why the field can't have a JSON value, or no fault.
func (f *headField) fault(value json.RawMessage) fault {
	if rawjson.IsNull(value) {
		if f.access == nullable {
			return fault{}
		}
		return fault{Problem: "is null, which the service does not allow here", Remedy: fmt.Sprintf("want a JSON %s", f.kind)}
	}
	if !f.kind.fits(value) {
		return fault{Problem: "is a JSON " + rawjson.Kind(value), Remedy: fmt.Sprintf("want a JSON %s", f.kind)}
	}
	return fault{}
}

// placeholder returns the placeholder in a value of the field, or "". A field that is not
// known has a nil f.
func (f *headField) placeholder(value json.RawMessage) string {
	if found := check.FindPlaceholder(value); found != "" || f == nil {
		return found
	}
	switch f.name {
	case "ttsProvider", "ttsVoice", "ocProvider", "voiceflowApiKey":
		if text := textOf(value); check.IsSample(text) {
			return strings.TrimSpace(text)
		}
	case "publicUrl", "fileUrl":
		text := textOf(value)
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			return check.SampleInURL(u)
		}
		if check.IsSample(text) {
			return strings.TrimSpace(text)
		}
	}
	return ""
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

// kindOf returns the kind of a field of Head.
func kindOf(t reflect.Type) fieldKind {
	switch t = indirect(t); {
	case t == reflect.TypeFor[PromptConfig]():
		return kindPrompt
	case t == reflect.TypeFor[Raw]():
		return kindObject
	case t == reflect.TypeFor[Secret]():
		return kindString
	}
	switch t.Kind() {
	case reflect.String:
		return kindString
	case reflect.Bool:
		return kindBool
	case reflect.Float64:
		return kindNumber
	case reflect.Slice:
		return kindList
	case reflect.Map:
		return kindWords
	}
	panic("heads: no kind of field for " + t.String())
}

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

// languageTag has the form of BCP 47 with a language of two or three letters,
// which all languages of heads have.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?` +
	`(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-[A-WYZa-wyz0-9](-[A-Za-z0-9]{2,8})+)*(-[Xx](-[A-Za-z0-9]{1,8})+)?$`)

// promptBody is the part of a PromptConfig that an update sends.
type promptBody struct {
	SystemPrompt string `json:"system_prompt"`
}

// promptOnly returns the part of a promptConfig that an update may hold. A
// promptConfig that is a string is the prompt itself.
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

// promptObject returns the promptConfig of a prompt, a JSON value.
func promptObject(prompt []byte) json.RawMessage {
	return append(rawjson.AppendMember([]byte{'{'}, "system_prompt", prompt), '}')
}

// fieldValue is the value of a field in JSON.
type fieldValue struct {
	raw   json.RawMessage
	fault fault // why it can't be sent
}

// encodeField writes a value as it is sent. A Secret, a Raw and settings are
// written whole, which encoding/json would not do.
func encodeField(v any) fieldValue {
	switch v := v.(type) {
	case Secret:
		return fieldValue{raw: rawjson.String(v.Reveal())}
	case *Secret:
		if v != nil {
			return fieldValue{raw: rawjson.String(v.Reveal())}
		}
	case Raw:
		if v.Len() == 0 {
			return fieldValue{raw: json.RawMessage("null")}
		}
		return encodeField(json.RawMessage(v.Bytes()))
	case *ConversationSettings:
		if v != nil {
			return fieldValue{raw: v.document()}
		}
	}
	raw, err := rawjson.Encode(v)
	if err != nil {
		return fieldValue{raw: json.RawMessage("null"), fault: fault{Problem: "can't be written as JSON", Remedy: "give a value that JSON can hold"}}
	}
	return fieldValue{raw: raw}
}

// text returns the string that the value is, or "".
func (v fieldValue) text() string { return textOf(v.raw) }

// isBlank reports whether the value is not a string, or one without a visible
// character.
func (v fieldValue) isBlank() bool {
	if bytes.IndexByte(v.raw, '\\') >= 0 {
		return strings.TrimSpace(v.text()) == ""
	}
	return rawjson.Kind(v.raw) != "string" || len(bytes.TrimSpace(bytes.Trim(v.raw, `"`))) == 0
}

func (v fieldValue) isNull() bool { return v.fault == fault{} && rawjson.IsNull(v.raw) }

// isEmpty reports whether the value is null, an empty list or an empty object.
func (v fieldValue) isEmpty() bool {
	switch string(v.raw) {
	case "[]", "{}", "null":
		return true
	}
	return false
}

func (v fieldValue) equal(o fieldValue) bool {
	return v.fault == o.fault && sameEncoded(v.raw, o.raw)
}
