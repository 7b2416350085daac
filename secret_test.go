package heads

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaf is the secret that nothing may show.
const leaf = "leaf-7Q3x-canary"

// leafDocument holds it where no field of this package knows it.
const leafDocument = `{"apiKey":"` + leaf + `","nested":[{"token":"` + leaf + `"}]}`

// holders returns a value of every exported type that can hold a secret.
func holders(t *testing.T) map[string]func(show func(wrapping string, v any)) {
	t.Helper()
	settings := &ConversationSettings{}
	require.NoError(t, settings.UnmarshalJSON([]byte(`{"provider":{"apiKey":"`+leaf+`"},"tools":[{"name":"find","secret":"`+leaf+`","parameters":[{"name":"a","secret":"`+leaf+`"}]}]}`)))
	key := NewSecret(leaf)
	raw := NewRaw([]byte(leafDocument))
	organisation := Organisation{APIKey: key}
	webhook := Webhook{ID: 7, HeadID: testHead, SharedKey: key}
	address := AccessURL{Base: "https://chat.example.com", PublicOrgID: "o", PublicHeadID: "h", APIKey: key, others: NewSecret("x=" + leaf)}
	head := Head{
		ID: testHead, Name: "Ada", PublicURL: key, VoiceflowAPIKey: &key, Organisation: &organisation, Raw: raw, PluginOperationalModeConfig: raw,
		DocumentJSONDTO: raw, IconConfig: raw, VideoCache: raw, ConversationSettings: settings,
	}
	client, err := New(memoryURL, leaf, WithHTTPClient(&http.Client{Transport: newScript(answer(200, `[{"id":7,"headId":"`+testHead+`","sharedKey":"`+leaf+`"}]`))}))
	require.NoError(t, err)
	source := client.Webhooks.KeySource()
	keys, err := source.Keys(t.Context(), KeyHint{HeadID: testHead})
	require.NoError(t, err)
	require.Equal(t, []string{leaf}, keys)
	events, err := NewEventHandler(source, func(context.Context, *Event) error { return nil })
	require.NoError(t, err)
	tools, err := NewToolHandler("https://tools.example.com", WithPathToken(leaf))
	require.NoError(t, err)
	require.NoError(t, AddTool(tools, "find", "Finds.", func(context.Context, struct{}) (string, error) { return "", nil }))
	refused := callError[*Error](t, answer(400, leafDocument, "Set-Cookie: session="+leaf))
	unread := callError[*DecodeError](t, answer(200, leafDocument))
	lost := callError[*transportError](t, fail(&url.Error{Op: "Get", URL: "https://" + leaf + "@a.example.com/?key=" + leaf, Err: errors.New("no")}))
	_, noToken := sourceClient(t, newScript(answer(200, "")), func(context.Context, string) (string, error) { return leaf, errors.New("refused " + leaf) }).Heads.Get(t.Context(), testHead)
	require.Error(t, noToken)
	response, err := newTestClient(t, memoryURL, newScript(answer(200, leafDocument, "Set-Cookie: session="+leaf))).Do(t.Context(), Request{Method: "GET", Path: "/voice"})
	require.NoError(t, err)
	update := NewHeadUpdate().VoiceflowAPIKey(leaf).PublicURL("https://chat.example.com/o/h?api_key=" + leaf)
	plan := ConversionPlan{HeadID: testHead, Before: address, Head: &head}
	return map[string]func(func(string, any)){
		"Secret":               wrapped(key),
		"Raw":                  wrapped(raw),
		"Raw of text":          wrapped(NewRaw([]byte(leaf))),
		"Head":                 wrapped(head),
		"Organisation":         wrapped(organisation),
		"Webhook":              wrapped(webhook),
		"Ensured":              wrapped(Ensured{Webhook: webhook, Duplicates: []int64{8}}),
		"AccessURL":            wrapped(address),
		"HeadVisual":           wrapped(HeadVisual{ID: "v", Raw: raw}),
		"ConversationSettings": wrapped(*settings),
		"HeadUpdate":           wrapped(*update),
		"WebhookUpdate":        wrapped(*NewWebhookUpdate().URL("https://hooks.example.com/" + leaf)),
		"Event":                wrapped(Event{Type: EventStartConversation, Raw: raw}),
		"SessionMetadata":      wrapped(SessionMetadata{SessionID: "s", Raw: raw}),
		"Response":             wrapped(*response),
		"Error":                wrapped(*refused),
		"DecodeError":          wrapped(*unread),
		"error without answer": wrapped(*lost),
		"error of the source":  wrapped(noToken),
		"Attempt":              wrapped(Attempt{Err: noToken}),
		"DeliveryInfo":         wrapped(DeliveryInfo{Err: noToken}),
		"ToolCallInfo":         wrapped(ToolCallInfo{Err: noToken}),
		"Conversion":           wrapped(Conversion{Before: address, After: address}),
		"ConversionPlan":       wrapped(plan),
		"ConversionError":      wrapped(ConversionError{HeadID: testHead, Err: refused, RollbackErr: noToken}),
		"Client":               wrapped(*client),
		"EventHandler":         wrapped(*events),
		"ToolHandler":          wrapped(*tools),
		"KeySource":            wrapped(source),
		"SharedKeys":           wrapped(SharedKeys(leaf)),
		"HeadKeys":             wrapped(HeadKeys(map[string][]string{testHead: {leaf}})),
	}
}

// noHolders are the exported types that hold no Secret and no Raw, and the ones of
// Client.Do's caller and of the tools, whose texts are plain.
var noHolders = []string{
	"Claim", "ConversionStep", "ConvertOptions", "Deduplicator", "DeliveryOutcome", "EnsureOptions", "EventHandlerOption", "EventType", "Examination", "Finding",
	"InvalidError", "KeyHint", "KeySourceOption", "MemoryDeduplicator", "Observer", "OperationMode", "Option", "PromptConfig", "PromptProblem", "Reason", "Request",
	"RetryPolicy", "Severity", "StepName", "Time", "TokenSource", "Tool", "ToolError", "ToolHandlerOption", "ToolOutcome", "ToolParameter", "ToolSpec", "VisualMode",
	"Voice", "WebhookSpec",
	"HeadsService", "HeadVisualsService", "WebhooksService", "ConversationSettingsService", // held by Client
}

func TestEveryTypeThatCanHoldASecretIsShown(t *testing.T) {
	held := holders(t)
	for _, name := range exportedTypes(t) {
		assert.NotEqual(t, held[name] != nil, slices.Contains(noHolders, name), name)
	}
}

// callError returns the error of a call that is answered with the step.
func callError[E error](t *testing.T, s step) E {
	t.Helper()
	var e E
	require.ErrorAs(t, getHead(t.Context(), newTestClient(t, memoryURL, newScript(s), WithRetryPolicy(RetryPolicy{}))), &e)
	return e
}

type (
	exportedField[T any] struct{ V T }
	hiddenField[T any]   struct{ v T }
	hiddenPointer[T any] struct{ v *T }
	hiddenAny            struct{ v any }
	exportedAny          struct{ V any }
	hiddenSlice[T any]   struct{ v []T }
	hiddenMap[T any]     struct{ v map[string]T }
	nested[T any]        struct{ v hiddenField[hiddenField[T]] }
)

// wrapped shows a value in the 17 ways in which a program can hold it.
func wrapped[T any](v T) func(show func(wrapping string, v any)) {
	return func(show func(wrapping string, v any)) {
		p := &v
		for wrapping, held := range map[string]any{
			"the value":                     v,
			"a pointer":                     p,
			"a pointer to a pointer":        &p,
			"an exported field":             exportedField[T]{v},
			"a pointer to one with it":      &exportedField[T]{v},
			"an unexported field":           hiddenField[T]{v},
			"a pointer in an unexported":    hiddenPointer[T]{p},
			"any in an unexported field":    hiddenAny{v},
			"a pointer in any, unexported":  hiddenAny{p},
			"any in an exported field":      exportedAny{p},
			"unexported fields, three deep": &nested[T]{hiddenField[hiddenField[T]]{hiddenField[T]{v}}},
			"a slice":                       []T{v},
			"a slice of pointers":           []*T{p},
			"a slice in an unexported":      hiddenSlice[T]{[]T{v}},
			"an array":                      [1]T{v},
			"a map":                         map[string]any{"k": v},
			"a map in an unexported field":  hiddenMap[T]{map[string]T{"k": v}},
		} {
			show(wrapping, held)
		}
	}
}

// leafVerbs are those of package fmt, with flags, and wrong ones.
var leafVerbs = []string{
	"%v", "%+v", "%#v", "%T", "%t", "%b", "%c", "%d", "%o", "%O", "%q", "%#q", "%x", "%X", "% x", "%#x", "%U", "%#U",
	"%e", "%E", "%f", "%F", "%g", "%G", "%s", "%10s", "%.3s", "%-40v", "%p", "%#p", "%w", "%z", "%!",
}

// ways are all ways to write a value that this package promises to be safe.
var ways = func() map[string]func(v any) string {
	ways := map[string]func(any) string{
		"Sprint":   func(v any) string { return fmt.Sprint(v) },
		"Sprintln": func(v any) string { return fmt.Sprintln("a", v) },
		"Errorf":   func(v any) string { return fmt.Errorf("a: %w", asError(v)).Error() },
		"slog text": func(v any) string {
			var b strings.Builder
			slog.New(slog.NewTextHandler(&b, nil)).With("w", v).Info("m", "v", v, slog.Group("g", "v", v))
			return b.String()
		},
		"slog JSON": func(v any) string {
			var b strings.Builder
			slog.New(slog.NewJSONHandler(&b, nil)).With("w", v).Info("m", "v", v, slog.Group("g", "v", v))
			return b.String()
		},
		"JSON": func(v any) string { text, err := json.Marshal(v); return fmt.Sprint(string(text), err) },
		"XML":  func(v any) string { text, err := xml.Marshal(v); return fmt.Sprint(string(text), err) },
		"gob": func(v any) string {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return fmt.Sprint(b.String(), err)
		},
		"template": func(v any) string {
			var b strings.Builder
			err := template.Must(template.New("").Parse(`{{.}} {{print .}} {{printf "%s %d %x" . . .}} {{html .}} {{js .}} {{urlquery .}}`)).Execute(&b, v)
			return fmt.Sprint(b.String(), err)
		},
	}
	for _, verb := range leafVerbs {
		ways[verb] = func(v any) string { return fmt.Sprintf(verb, v) }
	}
	return ways
}()

func asError(v any) error {
	err, _ := v.(error)
	return err
}

// shows reports whether a text shows the leaf: as it is, or as a verb writes a
// string or bytes, or in base64.
func shows(text string) bool {
	for _, trace := range leafTraces {
		if strings.Contains(text, trace) {
			return true
		}
	}
	return false
}

var leafTraces = func() []string {
	traces := []string{leaf}
	for _, verb := range []string{"%d", "%o", "%b", "%c", "%U", "%x", "%X", "% x", "%#v", "%q"} {
		for _, v := range []any{[]byte(leaf), []rune(leaf)} {
			text := fmt.Sprintf(verb, v)
			text = strings.TrimSuffix(text[strings.LastIndexAny(text, "[{")+1:], "]")
			traces = append(traces, strings.TrimSuffix(text, "}"))
		}
	}
	for shift := range 3 { // the leaf may begin anywhere in a group of three bytes
		encoded := base64.StdEncoding.EncodeToString([]byte("   "[:shift] + leaf))
		traces = append(traces, encoded[4:len(encoded)-4])
	}
	return traces
}()

func TestNothingShowsASecretWhereverItIsHeld(t *testing.T) {
	leaks := 0
	for name, each := range holders(t) {
		t.Run(name, func(t *testing.T) {
			wrappings := 0
			each(func(wrapping string, v any) {
				wrappings++
				for way, write := range ways {
					if text := write(v); shows(text) {
						if leaks++; leaks <= 20 { // enough to see what leaks
							t.Errorf("%s by %s: %.300s", wrapping, way, text)
						}
					}
				}
			})
			assert.Equal(t, 17, wrappings)
		})
	}
	assert.Zero(t, leaks, "shown")
}

// The traces find what package fmt makes of a secret that is not hidden.
func TestTracesOfASecretAreFound(t *testing.T) {
	for way, write := range ways {
		for _, held := range []any{leaf, exportedField[string]{leaf}, []byte(leaf), &hiddenField[string]{leaf}} {
			text := write(held)
			if strings.Contains(text, "leaf") {
				assert.True(t, shows(text), "%s: %s", way, text)
			}
		}
	}
	for _, verb := range []string{"%v", "%d", "%x", "%X", "%s", "%q", "%o", "%b", "%c", "%U", "%#v"} {
		assert.True(t, shows(fmt.Sprintf(verb, []byte(leafDocument))), verb)
	}
	document, err := json.Marshal([]byte(leafDocument))
	require.NoError(t, err)
	assert.True(t, shows(string(document)), "base64")
}

// What a tool holds under keys that this package does not know is out of reach,
// too. Its JSON is the definition itself, which is stored and read back.
func TestToolsShowNoUnknownKeys(t *testing.T) {
	var tool Tool
	require.NoError(t, json.Unmarshal([]byte(`{"name":"find","url":"https://tools.example.com/`+leaf+`/find","secret":"x-`+leaf+`","parameters":[{"name":"a","secret":"`+leaf+`"}]}`), &tool))
	assert.NotContains(t, fmt.Sprint(tool, []any{tool}, &tool), leaf)
	parameter := tool.Parameters[0]
	for name, each := range map[string]func(func(string, any)){"Tool": wrapped(Tool{Name: "find", raw: tool.raw}), "ToolParameter": wrapped(parameter)} {
		each(func(wrapping string, v any) {
			for _, verb := range leafVerbs {
				assert.False(t, shows(fmt.Sprintf(verb, v)), "%s, %s by %s", name, wrapping, verb)
			}
		})
	}
}

func TestSecret(t *testing.T) {
	secret := NewSecret("k")
	assert.Equal(t, "k", secret.Reveal())
	assert.Len(t, map[Secret]bool{secret: true, NewSecret("k"): true}, 1, "equal secrets are ==")
	assert.NotEqual(t, secret, NewSecret("l"))
	assert.False(t, secret.IsZero())
	assert.Equal(t, "[redacted]", secret.String())
	assert.Equal(t, "[redacted]", secret.LogValue().String())

	assert.Len(t, map[Secret]bool{NewSecret(""): true, {}: true}, 1, "the zero Secret is the empty one")
	assert.True(t, Secret{}.IsZero())
	assert.Empty(t, Secret{}.Reveal())
	assert.Empty(t, fmt.Sprint(Secret{}))

	read := func(text string) (s Secret) {
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		return s
	}
	assert.Equal(t, secret, read(`"k"`))
	assert.Equal(t, "a\nb", read(`"a\nb"`).Reveal())
	assert.True(t, read(`"[redacted]"`).IsZero(), "what a Secret shows is not its value")
	assert.True(t, read(`null`).IsZero())
	for text, want := range map[string]Secret{`{"s":"[redacted]","p":"[redacted]"}`: secret, `{"s":"","p":""}`: {}} {
		written, err := json.Marshal(map[string]any{"s": want, "p": &want})
		require.NoError(t, err)
		assert.JSONEq(t, text, string(written))
	}
}

func TestRaw(t *testing.T) {
	text := []byte(`{"a":1}`)
	raw := NewRaw(text)
	text[2] = 'b'
	assert.Equal(t, `{"a":1}`, string(raw.Bytes()), "NewRaw copies")
	raw.Bytes()[2] = 'b'
	assert.Equal(t, `{"a":1}`, string(raw.Bytes()), "so does Bytes")
	assert.Equal(t, 7, raw.Len())
	assert.Equal(t, "[7 bytes]", raw.String())
	assert.Equal(t, "[7 bytes] [7 bytes]", fmt.Sprintf("%d %v", raw, raw))
	assert.Equal(t, "[7 bytes]", raw.LogValue().String())

	assert.True(t, raw.Equal(NewRaw([]byte(`{"a":1}`))))
	assert.False(t, raw.Equal(NewRaw([]byte(`{"a": 1}`))), "byte for byte")
	assert.True(t, reflect.DeepEqual(raw, NewRaw([]byte(`{"a":1}`))), "contents are compared, not places")
	assert.False(t, reflect.DeepEqual(raw, NewRaw([]byte(`{"a":2}`))))

	assert.Nil(t, Raw{}.Bytes())
	assert.Zero(t, Raw{}.Len())
	assert.True(t, Raw{}.Equal(NewRaw(nil)))
	assert.NotNil(t, NewRaw([]byte{}).Bytes())

	var read struct{ A int }
	require.NoError(t, raw.Decode(&read))
	assert.Equal(t, 1, read.A)
	for name, broken := range map[string]Raw{"empty": {}, "no JSON": NewRaw([]byte(leaf)), "of another shape": NewRaw([]byte(`{"A":"` + leaf + `"}`))} {
		var unread *DecodeError
		require.ErrorAs(t, broken.Decode(&read), &unread, name)
		assert.Equal(t, "Raw.Decode", unread.Operation)
		assert.Contains(t, unread.Error(), "heads: Raw.Decode: the text can't be read: ")
		assert.NotContains(t, unread.Error(), leaf)
	}
}

func TestRawIsMaskedAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiKey":"k","a":{"token":["t"],"b":"c"}}`: `{"apiKey":"[redacted]","a":{"token":["[redacted]"],"b":"c"}}`,
		`"https://a.example.com/?key=k"`:             `"https://a.example.com/?key=[redacted]"`,
		`null`:                                       `null`,
		`12`:                                         `12`,
		`no JSON`:                                    `"[7 bytes]"`,
	} {
		written, err := json.Marshal(NewRaw([]byte(text)))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(written))
	}
	written, err := json.Marshal(Raw{})
	require.NoError(t, err)
	assert.Equal(t, "null", string(written))

	var read struct{ R, N Raw }
	require.NoError(t, json.Unmarshal([]byte(`{"R": {"apiKey": "k"}, "N": null}`), &read))
	assert.Equal(t, `{"apiKey": "k"}`, string(read.R.Bytes()), "byte for byte")
	assert.Equal(t, `null`, string(read.N.Bytes()))
}

// A secret of the document is masked in its other texts too.
func TestRawMasksItsSecretsInsideEveryText(t *testing.T) {
	const key, path = "0canary123456789", "canary-path-token"
	address := "https://chat.example.com/MyOrg-1/li-1?api_key=" + key
	document, err := json.Marshal(map[string]any{
		"publicUrl": address, "voiceflowApiKey": "canary-dialog", "encodedPath": key,
		"greetings": `Hello <iframe src="` + address + `&amp;x=1"></iframe>, open //chat.example.com/a/b?api_key=other-canary or https:\/\/x.example.com\/?k=other-canary`,
		"name":      "Key " + key, "phrases": []string{address}, "customWords": map[string]string{key: key, "token": "toh-ken"},
		"fileUrl": "https://files.example.com/" + key, "documentUrl": "https://files.example.com/canary-dialog",
		"promptConfig": map[string]any{"id": "1", "system_prompt": "Post to https://a.example.com/canary-path-token/x with canary-dialog or " + key},
		"iconConfig":   map[string]any{"text": "see " + strings.ReplaceAll(key, "9", "%39")}, "organisation": map[string]any{"name": key, "apiKey": "canary-organisation"},
		"conversationSettings": map[string]any{"model": "of canary-organisation", "tools": []any{map[string]any{
			"name": "order", "description": "canary-organisation", "url": "https://a.example.com/" + path + "/order", "parameters": []any{},
		}}},
	})
	require.NoError(t, err)
	shown, err := json.Marshal(NewRaw(document))
	require.NoError(t, err)
	assert.NotContains(t, string(shown), "canary")
	assert.NotContains(t, string(shown), "123456789")
	head := new(Head)
	require.NoError(t, json.Unmarshal(shown, head))
	assert.Equal(t, "Key [redacted]", head.Name)
	assert.Contains(t, head.Greetings, `<iframe src="https://chat.example.com/MyOrg-1/li-1?api_key=[redacted]`)
	assert.Equal(t, "Post to https://a.example.com/[redacted]/x with [redacted] or [redacted]", head.PromptConfig.SystemPrompt)
	assert.JSONEq(t, `{"text":"[redacted]"}`, string(head.IconConfig.Bytes()), "its characters are escaped")
	assert.Equal(t, "toh-ken", head.CustomWords["token"])
}

// A head is stored as its Raw, not as its JSON.
func TestStoredHeadKeepsItsSecrets(t *testing.T) {
	document := `{"id":"` + testHead + `","publicUrl":"https://chat.example.com/o/h?api_key=` + leaf + `","voiceflowApiKey":"` + leaf +
		`","organisation":{"apiKey":"` + leaf + `"},"pluginOperationalModeConfig":{"apiKey":"` + leaf + `"},"conversationSettings":{"apiKey":"` + leaf + `","tools":[]},"added":"` + leaf + `"}`
	head, err := newTestClient(t, memoryURL, newScript(answer(200, document))).Heads.Get(t.Context(), testHead)
	require.NoError(t, err)

	var stored Head
	require.NoError(t, json.Unmarshal(head.Raw.Bytes(), &stored))
	assert.Equal(t, document, string(head.Raw.Bytes()))
	assert.Equal(t, leaf, stored.VoiceflowAPIKey.Reveal())
	assert.Equal(t, leaf, stored.Organisation.APIKey.Reveal())
	assert.Contains(t, stored.PublicURL.Reveal(), leaf)
	assert.JSONEq(t, `{"apiKey":"`+leaf+`"}`, string(stored.PluginOperationalModeConfig.Bytes()))
	extra, ok := stored.ConversationSettings.Extra("apiKey")
	assert.True(t, ok)
	assert.Equal(t, `"`+leaf+`"`, string(extra.Bytes()))

	written, err := json.Marshal(head)
	require.NoError(t, err)
	assert.NotContains(t, string(written), leaf)
	var masked Head
	require.NoError(t, json.Unmarshal(written, &masked))
	assert.True(t, masked.Organisation.APIKey.IsZero())
	assert.True(t, masked.PublicURL.IsZero())
}

func TestSettingsAreMaskedAsJSONAndSentWhole(t *testing.T) {
	const document = `{"apiKey":"` + leaf + `","tools":[{"name":"find","description":"Finds.","url":"https://tools.example.com/` + leaf + leaf + `/find","token":"` + leaf + `","parameters":[]}]}`
	settings := &ConversationSettings{}
	require.NoError(t, json.Unmarshal([]byte(document), settings))
	masked, err := json.Marshal(settings)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiKey":"[redacted]","tools":[{"name":"find","description":"Finds.","url":"https://tools.example.com/[redacted]/find","token":"[redacted]","parameters":[]}]}`, string(masked))

	tr := newScript(answer(200, ""))
	client := newTestClient(t, memoryURL, tr)
	require.NoError(t, client.ConversationSettings.Replace(t.Context(), testHead, settings))
	assert.Equal(t, `{"conversationSettings":`+document+`}`, tr.since()[0].body)

	again := &ConversationSettings{}
	require.NoError(t, json.Unmarshal(masked, again))
	err = client.ConversationSettings.Replace(t.Context(), testHead, again)
	assert.Equal(t, []string{`tool "find" url`, "apiKey"}, invalidFields(t, err))
	require.ErrorIs(t, again.SetExtra("model", json.RawMessage(`{"a":["[redacted]"]}`)), ErrInvalid)
	assert.Empty(t, tr.since())
}

// What the service itself holds is not refused when something else is changed.
func TestModifyRefusesMaskedSettingsThatAreNew(t *testing.T) {
	document := `{"id":"` + testHead + `","operationMode":"oc","conversationSettings":{"apiKey":"[redacted]","model":"a","tools":[]}}`
	api := newFakeAPI(t, answering(document))
	_, err := api.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
		return cs.SetExtra("model", json.RawMessage(`"b"`))
	})
	require.NoError(t, err)
	assert.Contains(t, api.bodyOf(t, "PUT /head/"+testHead+"/conversation-settings"), `"apiKey":"[redacted]"`)
	_, err = api.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
		return cs.UnmarshalJSON([]byte(`{"apiKey":"[12 bytes]","model":"a"}`))
	})
	assert.Equal(t, []string{"apiKey"}, invalidFields(t, err))
	assert.Equal(t, []string{"GET /head/" + testHead}, api.routes(), "nothing was sent")
}

func TestWhatASecretShowsIsRefused(t *testing.T) {
	head := Head{VoiceflowAPIKey: &Secret{}, PluginOperationalModeConfig: NewRaw([]byte(`{"apiKey":"k"}`))}
	*head.VoiceflowAPIKey = NewSecret("k")
	address := AccessURL{Base: "https://chat.example.com", PublicOrgID: "o", PublicHeadID: "h", APIKey: NewSecret("k")}
	for name, u := range map[string]*HeadUpdate{
		"a Secret as text":       NewHeadUpdate().VoiceflowAPIKey(fmt.Sprint(head.VoiceflowAPIKey)),
		"a Raw as text":          NewHeadUpdate().Greetings(fmt.Sprint(head.PluginOperationalModeConfig)),
		"with space around it":   NewHeadUpdate().Greetings(" [redacted]\n"),
		"an access URL as text":  NewHeadUpdate().PublicURL(address.String()),
		"in a list":              NewHeadUpdate().Phrases("a", "[redacted]"),
		"in a map":               NewHeadUpdate().CustomWords(map[string]string{"a": "[3 bytes]"}),
		"nested":                 NewHeadUpdate().PluginOperationalModeConfig(map[string]any{"a": []any{map[string]any{"b": *head.VoiceflowAPIKey}}}),
		"a Raw nested":           NewHeadUpdate().Set("added", map[string]any{"a": NewRaw([]byte("no JSON"))}),
		"written with an escape": NewHeadUpdate().Set("added", json.RawMessage(`"\u005bredacted\u005d"`)),
	} {
		t.Run(name, func(t *testing.T) {
			faults := invalidErrors(t, u.Validate())
			require.Len(t, faults, 1)
			assert.Regexp(t, `^holds the placeholder "\[(redacted|[0-9]+ bytes)\]"$`, faults[0].Problem)
		})
	}
	for name, u := range map[string]*HeadUpdate{
		"a Secret":                   NewHeadUpdate().Set("voiceflowApiKey", *head.VoiceflowAPIKey),
		"a pointer to one":           NewHeadUpdate().Set("voiceflowApiKey", head.VoiceflowAPIKey),
		"a text about it":            NewHeadUpdate().Greetings("Never say [redacted] or [12 bytes]."),
		"a Raw that holds an object": NewHeadUpdate().PluginOperationalModeConfig(head.PluginOperationalModeConfig),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, u.Validate())
			assert.NotContains(t, string(u.Document().Bytes()), `"[redacted]"`)
		})
	}
	_, err := New("https://api.example.com", "[redacted]")
	require.ErrorIs(t, err, ErrInvalid)
	_, err = ParseAccessURL(address.String())
	require.ErrorIs(t, err, ErrInvalid)

	tr := newScript(answer(200, ""))
	client := newTestClient(t, memoryURL, tr)
	_, err = client.Do(t.Context(), Request{Method: "PUT", Path: "/voice", Body: Webhook{SharedKey: NewSecret("k")}})
	assert.Equal(t, "Secret.Reveal", invalidErrors(t, err)[0].Use)
	_, err = client.Do(t.Context(), Request{Method: "PUT", Path: "/voice", Body: head.PluginOperationalModeConfig})
	require.NoError(t, err)
	assert.Equal(t, `{"apiKey":"k"}`, tr.since()[0].body)
}

func TestCookiesOfTheServiceAreNotShown(t *testing.T) {
	refused := callError[*Error](t, answer(400, "", "Set-Cookie: a="+leaf, "Set-Cookie: b="+leaf, "X-Other: kept"))
	assert.Equal(t, []string{"[redacted]", "[redacted]"}, refused.Header.Values("Set-Cookie"))
	assert.Equal(t, "kept", refused.Header.Get("X-Other"))
	redirected := callError[*Error](t, answer(302, "", "Location: https://me:"+leaf+"@a.example.com/b?key="+leaf))
	assert.Equal(t, "https://[redacted]@a.example.com/b?key=[redacted]", redirected.Header.Get("Location"))
}

// A service that repeats the token of the client must not bring it into a log.
func TestTokenThatAnAnswerRepeatsIsNotShown(t *testing.T) {
	body := `{"message":"bad ` + pathToken + `","escaped":"` + strings.Replace(pathToken, "-", `\u002d`, 1) + `"}`
	refused := callError[*Error](t, answer(400, body, "X-Token: "+pathToken))
	assert.Equal(t, body, string(refused.Body.Bytes()), "as it arrived")
	assert.Equal(t, "[redacted]", refused.Header.Get("X-Token"))
	unread := callError[*DecodeError](t, answer(200, body))
	response, err := newTestClient(t, memoryURL, newScript(answer(200, body))).Do(t.Context(), Request{Method: "GET", Path: "/voice"})
	require.NoError(t, err)
	for _, v := range []any{refused, *refused, unread, *unread, response, ConversionError{Err: refused}} {
		shown, err := json.Marshal(v)
		require.NoError(t, err)
		assert.NotContains(t, string(shown), pathToken)
		assert.NotContains(t, string(shown), "u002d")
		assert.Contains(t, string(shown), "bad [redacted]")
	}
}
