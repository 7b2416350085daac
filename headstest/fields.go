package headstest

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// rule is the type of a writable field, as the contract gives it.
type rule struct {
	wants   string
	accepts func(any) bool
}

var (
	textField         = rule{"a string", isA[string]}
	flagField         = rule{"true or false", isA[bool]}
	numberField       = rule{"a number", isA[json.Number]}
	textOrNullField   = rule{"a string or null", orNull(isA[string])}
	objectOrNullField = rule{"an object or null", orNull(isA[map[string]any])}
	textListField     = rule{"a list of strings", isTextList}
	textMapField      = rule{"an object whose values are strings", isTextMap}
	promptField       = rule{"an object with a string system_prompt", isPrompt}
)

// writable are the fields that an update changes. The contract allows null for
// three of them.
var writable = map[string]rule{
	"name": textField, "alias": textField, "language": textField, "languageSpeechRecognition": textField,
	"ttsProvider": textField, "ttsVoice": textField, "operationMode": textField, "ocProvider": textField,
	"promptConfig": promptField, "greetings": textField, "voiceflowApiKey": textOrNullField,
	"isRandomSuggestions": flagField, "phrases": textListField, "suggestions": textListField, "customWords": textMapField,
	"publicUrl": textField, "fileUrl": textOrNullField, "pluginOperationalModeConfig": objectOrNullField, "semanticThreshold": numberField,
}

// ignored are the fields that an update leaves alone, whatever is sent: the
// contract's list, and the two switches that have an operation of their own.
var ignored = map[string]bool{
	"createdAt": true, "updatedAt": true, "publicId": true, "documentJsonDto": true, "documentUrl": true,
	"encodedPath": true, "iconConfig": true, "headVisualId": true, "isActive": true, "orgId": true,
	"orgPublicId": true, "allowedOrigins": true, "allowedIframeOrigins": true, "videoCache": true,
	"conversationSettings": true, "splitter": true, "expirationSeconds": true, "ttsStream": true,
	"headVisualVideoUrl": true, "posterVideoImage": true, "ttsDisplayName": true, "organisation": true,
	"videoStreaming": true, "enableEvents": true,
}

// decode reads a value that is known to be JSON. Numbers stay text, so that
// none is too large.
func decode(raw json.RawMessage) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v)
	return v
}

func isA[T any](v any) bool { _, ok := v.(T); return ok }

func orNull(accepts func(any) bool) func(any) bool {
	return func(v any) bool { return v == nil || accepts(v) }
}

func isTextList(v any) bool {
	list, ok := v.([]any)
	for _, item := range list {
		ok = ok && isA[string](item)
	}
	return ok
}

func isTextMap(v any) bool {
	m, ok := v.(map[string]any)
	for _, item := range m {
		ok = ok && isA[string](item)
	}
	return ok
}

func isPrompt(v any) bool {
	m, ok := v.(map[string]any)
	return ok && isA[string](m["system_prompt"])
}

var angled = regexp.MustCompile(`^<[A-Z][A-Z0-9_]*>$`)

// isPlaceholder knows what a copied example leaves behind: the literal word
// string, and names in angle brackets such as <API_KEY>.
func isPlaceholder(s string) bool { return s == "string" || angled.MatchString(s) }

// holdsPlaceholder looks at every depth.
func holdsPlaceholder(v any) bool {
	switch v := v.(type) {
	case string:
		return isPlaceholder(v)
	case []any:
		for _, item := range v {
			if holdsPlaceholder(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if holdsPlaceholder(item) {
				return true
			}
		}
	}
	return false
}
