package headstest

import (
	"encoding/json"
	"regexp"
)

// rule is the type of a field in the contract.
type rule struct {
	wants   string
	accepts func(any) bool
	unset   bool // a head may have null, as Go encodes a nil slice or map, but an update may not
}

var (
	textField         = rule{wants: "a string", accepts: isA[string]}
	flagField         = rule{wants: "true or false", accepts: isA[bool]}
	numberField       = rule{wants: "a number", accepts: isA[json.Number]}
	textOrNullField   = rule{wants: "a string or null", accepts: orNull(isA[string])}
	objectOrNullField = rule{wants: "an object or null", accepts: orNull(isA[map[string]any])}
	textListField     = rule{wants: "a list of strings", accepts: isTextList, unset: true}
	textMapField      = rule{wants: "an object whose values are strings", accepts: isTextMap, unset: true}
	promptField       = rule{wants: "an object with a string system_prompt", accepts: isPrompt, unset: true}
	anyField          = rule{wants: "any JSON value", accepts: func(any) bool { return true }}
)

// holds reports whether a field of a head may have the value.
func (r rule) holds(v any) bool { return r.accepts(v) || r.unset && v == nil }

// writable has the fields that an update changes. The contract allows null for
// three of them.
var writable = map[string]rule{
	"name": textField, "alias": textField, "language": textField, "languageSpeechRecognition": textField,
	"ttsProvider": textField, "ttsVoice": textField, "operationMode": textField, "ocProvider": textField,
	"promptConfig": promptField, "greetings": textField, "voiceflowApiKey": textOrNullField,
	"isRandomSuggestions": flagField, "phrases": textListField, "suggestions": textListField, "customWords": textMapField,
	"publicUrl": textField, "fileUrl": textOrNullField, "pluginOperationalModeConfig": objectOrNullField, "semanticThreshold": numberField,
}

// ignored has the fields that an update never changes: the contract's list, and the
// two switches that have operations of their own. The contract states no type for
// most of them; for the fields that the emulator reads, it is the obvious one.
var ignored = map[string]rule{
	"createdAt": anyField, "updatedAt": anyField, "publicId": textOrNullField, "documentJsonDto": anyField, "documentUrl": anyField,
	"encodedPath": anyField, "iconConfig": anyField, "headVisualId": textOrNullField, "isActive": flagField, "orgId": textOrNullField,
	"orgPublicId": textOrNullField, "allowedOrigins": anyField, "allowedIframeOrigins": anyField, "videoCache": anyField,
	"conversationSettings": objectOrNullField, "splitter": flagField, "expirationSeconds": anyField, "ttsStream": anyField,
	"headVisualVideoUrl": anyField, "posterVideoImage": anyField, "ttsDisplayName": anyField, "organisation": objectOrNullField,
	"videoStreaming": flagField, "enableEvents": flagField,
}

// fieldRule returns the rule of a field of a head in the contract, except for id.
func fieldRule(name string) (r rule, ok bool) {
	if r, ok = writable[name]; !ok {
		r, ok = ignored[name]
	}
	return r, ok
}

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

// isPlaceholder reports whether a text is a placeholder of an example: the word string, or a
// name in angle brackets such as <API_KEY>.
func isPlaceholder(s string) bool { return s == "string" || angled.MatchString(s) }

// holdsPlaceholder reports whether a value is or contains a placeholder, at any depth.
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
