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
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

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
	client := Must(New(memoryURL, leaf, WithHTTPClient(&http.Client{Transport: newScript(answer(200, `[{"id":7,"headId":"`+testHead+`","sharedKey":"`+leaf+`"}]`))})))(t)
	source := client.Webhooks.KeySource()
	keys := Must(source.Keys(t.Context(), KeyHint{HeadID: testHead}))(t)
	require.Equal(t, []string{leaf}, keys)
	events := Must(NewEventHandler(source, func(context.Context, *Event) error { return nil }))(t)
	tools := Must(NewToolHandler("https://tools.example.com", WithPathToken(leaf)))(t)
	require.NoError(t, AddTool(tools, "find", "Finds.", func(context.Context, struct{}) (string, error) { return "", nil }))
	refused := callError[*Error](t, answer(400, leafDocument, "Set-Cookie: session="+leaf))
	unread := callError[*DecodeError](t, answer(200, leafDocument))
	lost := callError[*transportError](t, fail(&url.Error{Op: "Get", URL: "https://" + leaf + "@a.example.com/?key=" + leaf, Err: errors.New("no")}))
	_, noToken := sourceClient(t, newScript(answer(200, "")), func(context.Context, string) (string, error) { return leaf, errors.New("refused " + leaf) }).Heads.Get(t.Context(), testHead)
	require.Error(t, noToken)
	response := Must(newTestClient(t, memoryURL, newScript(answer(200, leafDocument, "Set-Cookie: session="+leaf))).Do(t.Context(), Request{Method: "GET", Path: "/voice"}))(t)
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
	exported := regexp.MustCompile(`(?m)^heads: type (\w+) `).FindAllStringSubmatch(readFile(t, "api.txt"), -1)
	assert.Greater(t, len(exported), 50)
	for _, m := range exported {
		name := m[1]
		assert.NotEqual(t, held[name] != nil, slices.Contains(noHolders, name), name)
	}
}

// callError returns the error of a call that is answered with the step.
func callError[E error](t *testing.T, s step) E {
	t.Helper()
	e := As[E](t, getHead(t.Context(), newTestClient(t, memoryURL, newScript(s), WithRetryPolicy(RetryPolicy{}))))
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
	ways[walks] = func(v any) string {
		var shown reported
		assert.Equal(&shown, reflect.Zero(reflect.TypeOf(v)).Interface(), v)
		return shown.text
	}
	for _, verb := range leafVerbs {
		ways[verb] = func(v any) string { return fmt.Sprintf(verb, v) }
	}
	return ways
}()

// walks is the way that calls no methods and follows every pointer.
const walks = "diff of testify"

// reported is a test of which only what it reports is used.
type reported struct{ text string }

func (r *reported) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

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
					if way == walks && (name == "Client" || name == "ToolHandler") {
						continue // they send the secret, and no test compares them
					}
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
	document := Must(json.Marshal([]byte(leafDocument)))(t)
	assert.True(t, shows(string(document)), "base64")
}

// These values hold a secret in a plain field, or under a key that this package does not
// know. Their JSON shows it, since it is stored and read back.
func TestPrintingShowsNoAddressAndNoUnknownKey(t *testing.T) {
	var settings ConversationSettings
	const parameter = `{"name":"p","type":"string","description":"` + leaf + `","default":"` + leaf + `"}`
	const tool = `{"name":"n","url":"https://t.example.com/` + leaf + `","key":"x-` + leaf + `","parameters":[` + parameter + `]}`
	require.NoError(t, json.Unmarshal([]byte(`{"api_key":"`+leaf+`","tools":[`+tool+`]}`), &settings))
	const address = "https://hooks.example.com/" + leaf + "?k=" + leaf
	known := settings.Tools[0]
	assert.Contains(t, fmt.Sprint(known), "t.example.com")
	unknown := Tool{Name: "n", raw: known.raw}
	webhook := Webhook{ID: 7, HeadID: testHead, URL: address, EndConversation: true}
	assert.Contains(t, fmt.Sprint(webhook), "hooks.example.com")
	for name, each := range map[string]func(func(string, any)){
		"Tool": wrapped(unknown), "ToolParameter": wrapped(ToolParameter{Name: "p", raw: known.Parameters[0].raw}),
	} {
		each(func(wrapping string, v any) {
			for _, verb := range leafVerbs {
				assert.False(t, shows(fmt.Sprintf(verb, v)), "%s, %s by %s", name, wrapping, verb)
			}
		})
	}
	spec := WebhookSpec{HeadID: testHead, URL: address, Events: []EventType{EventEndConversation}}
	for _, v := range []any{known, &known, webhook, &webhook, spec, &spec} {
		assertHides(t, v, leaf)
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
	assert.Equal(t, "[[redacted] ]", fmt.Sprint([]Secret{secret, {}}))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.Equal(t, "[redacted] [redacted]", fmt.Sprintf(verb+" "+verb, secret, &secret), verb)
	}

	read := func(text string) (s Secret) {
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		return s
	}
	assert.Equal(t, secret, read(`"k"`))
	assert.Equal(t, "a\nb", read(`"a\nb"`).Reveal())
	assert.True(t, read(`"[redacted]"`).IsZero(), "what a Secret shows is not its value")
	assert.True(t, read(`null`).IsZero())
	for text, want := range map[string]Secret{`{"s":"[redacted]","p":"[redacted]"}`: secret, `{"s":"","p":""}`: {}} {
		written := Must(json.Marshal(map[string]any{"s": want, "p": &want}))(t)
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

func TestRawShowsItsLengthAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiKey":"k","a":{"b":"c"}}`: `"[28 bytes]"`,
		`12`:                           `"[2 bytes]"`,
		`null`:                         `null`,
		`no JSON`:                      `"[7 bytes]"`,
		``:                             `"[0 bytes]"`,
	} {
		written := Must(json.Marshal(NewRaw([]byte(text))))(t)
		assert.Equal(t, want, string(written))
	}
	written := Must(json.Marshal(Raw{}))(t)
	assert.Equal(t, "null", string(written))

	var read struct{ R, N Raw }
	require.NoError(t, json.Unmarshal([]byte(`{"R": {"apiKey": "k"}, "N": null}`), &read))
	assert.Equal(t, `{"apiKey": "k"}`, string(read.R.Bytes()), "byte for byte")
	assert.Equal(t, `null`, string(read.N.Bytes()))
}

// What a head shows of itself as JSON is no document of a head.
func TestShownHeadIsRefused(t *testing.T) {
	head := new(Head)
	require.NoError(t, json.Unmarshal([]byte(`{"id":"`+testHead+`","name":"Ada","pluginOperationalModeConfig":{"apiKey":"`+leaf+`"},"voiceflowApiKey":"`+leaf+`"}`), head))
	shown := Must(json.Marshal(head))(t)
	assert.Contains(t, string(shown), `"pluginOperationalModeConfig":"[`)
	u, err := HeadUpdateFromJSON(shown)
	if err == nil {
		err = u.Validate()
	}
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "pluginOperationalModeConfig")
}

// A copy of a value, and the memory behind it, hold no text that a tool could show.
func TestMemoryHoldsNoText(t *testing.T) {
	for name, text := range map[string][]byte{"Raw": NewRaw([]byte(leafDocument)).veiled(), "a long Raw": NewRaw([]byte(strings.Repeat(leaf, 100))).veiled(), "Secret": []byte(NewSecret(leaf).value.Value())} {
		for _, c := range text {
			require.GreaterOrEqual(t, c, byte(0x80), name)
		}
	}
	assert.Equal(t, strings.Repeat(leaf, 100), string(NewRaw([]byte(strings.Repeat(leaf, 100))).Bytes()))
	assert.Equal(t, strings.Repeat(leaf, 100), NewSecret(strings.Repeat(leaf, 100)).Reveal())
}

// A head is stored as its Raw, not as its JSON.
func TestStoredHeadKeepsItsSecrets(t *testing.T) {
	document := `{"id":"` + testHead + `","publicUrl":"https://chat.example.com/o/h?api_key=` + leaf + `","voiceflowApiKey":"` + leaf +
		`","organisation":{"apiKey":"` + leaf + `"},"pluginOperationalModeConfig":{"apiKey":"` + leaf + `"},"conversationSettings":{"apiKey":"` + leaf + `","tools":[]},"added":"` + leaf + `"}`
	head := Must(newTestClient(t, memoryURL, newScript(answer(200, document))).Heads.Get(t.Context(), testHead))(t)

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

	written := Must(json.Marshal(head))(t)
	assert.NotContains(t, string(written), leaf)
	var masked Head
	require.NoError(t, json.Unmarshal(written, &masked))
	assert.True(t, masked.Organisation.APIKey.IsZero())
	assert.True(t, masked.PublicURL.IsZero())
}

func TestSettingsAreHiddenAsJSONAndSentWhole(t *testing.T) {
	const document = `{"apiKey":"` + leaf + `","tools":[{"name":"find","description":"Finds.","url":"https://tools.example.com/` + leaf + leaf + `/find","token":"` + leaf + `","parameters":[]}]}`
	settings := &ConversationSettings{}
	require.NoError(t, json.Unmarshal([]byte(document), settings))
	masked := Must(json.Marshal(settings))(t)
	assert.JSONEq(t, `{"apiKey":"[18 bytes]","tools":[{"name":"find","description":"Finds.","url":"https://tools.example.com/[redacted]/find","token":"[redacted]","parameters":[]}]}`, string(masked))

	tr := newScript(answer(200, ""))
	client := newTestClient(t, memoryURL, tr)
	require.NoError(t, client.ConversationSettings.Replace(t.Context(), testHead, settings))
	assert.Equal(t, `{"conversationSettings":`+document+`}`, tr.since()[0].body)

	again := &ConversationSettings{}
	require.NoError(t, json.Unmarshal(masked, again))
	assert.Equal(t, []string{`tool "find" url`, "apiKey"}, invalidFields(t, client.ConversationSettings.Replace(t.Context(), testHead, again)))
	require.ErrorIs(t, again.SetExtra("model", json.RawMessage(`{"a":["[redacted]"]}`)), ErrInvalid)
	assert.Empty(t, tr.since())
}

// What the service itself holds is not refused when something else is changed.
func TestModifyRefusesMaskedSettingsThatAreNew(t *testing.T) {
	document := `{"id":"` + testHead + `","operationMode":"oc","conversationSettings":{"apiKey":"[redacted]","model":"a","tools":[]}}`
	api := newFakeAPI(t, answering(document))
	Must(api.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
		return cs.SetExtra("model", json.RawMessage(`"b"`))
	}))(t)
	assert.Contains(t, api.bodyOf(t, "PUT /head/"+testHead+"/conversation-settings"), `"apiKey":"[redacted]"`)
	_, err := api.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
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
	require.ErrorIs(t, ErrorOf(New("https://api.example.com", "[redacted]")), ErrInvalid)
	require.ErrorIs(t, ErrorOf(ParseAccessURL(address.String())), ErrInvalid)

	tr := newScript(answer(200, ""))
	client := newTestClient(t, memoryURL, tr)
	_, err := client.Do(t.Context(), Request{Method: "PUT", Path: "/voice", Body: Webhook{SharedKey: NewSecret("k")}})
	assert.Equal(t, "Secret.Reveal", invalidErrors(t, err)[0].Use)
	Must(client.Do(t.Context(), Request{Method: "PUT", Path: "/voice", Body: head.PluginOperationalModeConfig}))(t)
	assert.Equal(t, `{"apiKey":"k"}`, tr.since()[0].body)
}

func TestEnsuredIsReadBack(t *testing.T) {
	written := Must(json.Marshal(Ensured{Webhook: Webhook{ID: 7, HeadID: testHead}, Created: true, Duplicates: []int64{8}}))(t)
	assert.Contains(t, string(written), `"created":true,"duplicates":[8]`)
	var read Ensured
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, int64(7), read.ID)
	assert.True(t, read.Created)
	assert.Equal(t, []int64{8}, read.Duplicates)
}

func TestEventWithoutATimeShowsNone(t *testing.T) {
	assert.Equal(t, "a, head b, session c", Event{Type: "a", HeadID: "b", SessionID: "c"}.String())
}

// An answer of twice the size takes at most three times as long, so no answer keeps a call
// long after its context. Each time is the shortest of several, since other programs may run.
func TestHostileAnswersTakeLinearTime(t *testing.T) {
	for name, body := range map[string]func(n int) string{
		"lists in lists":  func(n int) string { return `{"message":` + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + `}` },
		"objects":         func(n int) string { return strings.Repeat(`{"error":`, n/10) + `1` + strings.Repeat("}", n/10) },
		"percent signs":   func(n int) string { return strings.Repeat("%", n) },
		"one quoted text": func(n int) string { return `{"message":"` + strings.Repeat("%", n) + `"}` },
		"escapes of JSON": func(n int) string { return `["` + strings.Repeat(`\u0025`, n/6) + `"]` },
	} {
		for _, status := range []int{200, 400} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				const first, steps = 64 << 10, 4
				var clients [steps]*Client
				var fastest [steps]time.Duration
				for i := range clients {
					clients[i] = newTestClient(t, memoryURL, newScript(answer(status, body(first<<i))), WithRetryPolicy(RetryPolicy{}))
					fastest[i] = time.Hour
				}
				linear := func() bool {
					allowed := float64(max(fastest[0], time.Millisecond)) // a short time says little
					for _, took := range fastest {
						if float64(took) > allowed {
							return false
						}
						allowed *= 3
					}
					return true
				}
				for round := 0; round < 2 || round < 40 && !linear(); round++ {
					for i, client := range clients {
						start := time.Now()
						_, _ = client.Do(t.Context(), Request{Method: "GET", Path: "/voice"})
						fastest[i] = min(fastest[i], time.Since(start))
					}
				}
				assert.True(t, linear(), "%v", fastest)
			})
		}
	}
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
	response := Must(newTestClient(t, memoryURL, newScript(answer(200, body))).Do(t.Context(), Request{Method: "GET", Path: "/voice"}))(t)
	for _, v := range []any{refused, *refused, unread, *unread, response, ConversionError{Err: refused}} {
		shown := Must(json.Marshal(v))(t)
		assert.NotContains(t, string(shown), pathToken)
		assert.NotContains(t, string(shown), "u002d")
	}
}

// The tests put these secrets wherever a secret can be. Each holds the leaf.
const (
	canaryToken     = leaf + "-token"
	canaryVoiceflow = leaf + "-voiceflow"
	canaryOrg       = leaf + "-organisation"
	canaryAddress   = leaf + "-address"
	canarySettings  = leaf + "-settings"
	canaryToolPath  = leaf + "-toolpath"
	canaryToolKey   = leaf + "-toolkey"
	canaryShared    = leaf + "-shared"
	canaryHookPath  = leaf + "-hookpath"
	canaryHookQuery = leaf + "-hookquery"
	canaryBody      = leaf + "-body"
	canaryHeader    = leaf + "-header"
	canaryPassword  = leaf + "-password"
)

const (
	canaryHookURL   = "https://hooks.example.com/" + canaryHookPath + "?key=" + canaryHookQuery
	canaryPublicURL = "https://chat.example.com/MyOrg-1234/li-28379?api_key=" + canaryAddress

	canaryHook = `{"id":7,"headId":"` + testHead + `","webhookUrl":"` + canaryHookURL + `","sharedKey":"` + canaryShared + `","startConversation":true}`
	canaryHead = `{"id":"` + testHead + `","name":"Ada","voiceflowApiKey":"` + canaryVoiceflow + `","publicUrl":"` + canaryPublicURL + `",
		"organisation":{"id":"o","name":"Acme","apiKey":"` + canaryOrg + `"},"futureField":"` + canaryBody + `","headVisualId":"v","ttsProvider":"azure","ttsVoice":"a",
		"documentJsonDto":{"x":"` + canaryBody + `"},"iconConfig":"` + canaryBody + `","pluginOperationalModeConfig":{"key":"` + canaryBody + `"},
		"promptConfig":{"id":"p","system_prompt":"Be kind."},
		"conversationSettings":{"llm":{"api_key":"` + canarySettings + `"},"tools":[{"name":"find","description":"Finds.","auth":"` + canaryToolKey + `",
			"url":"https://tools.example.com/` + canaryToolPath + `/find","parameters":[{"name":"q","type":"string","description":"What.","x":"` + canaryToolKey + `"}]}]}}`
)

// assertShowsNoLeaf writes a value, alone and inside others, in all ways but the one
// that calls no methods.
func assertShowsNoLeaf(t testing.TB, v any) {
	t.Helper()
	for _, held := range []any{v, []any{v}, map[string]any{"k": v}, exportedAny{v}} {
		for way, write := range ways {
			if way == walks {
				continue
			}
			if text := write(held); shows(text) {
				assert.Fail(t, "a secret shows", "%T by %s: %.300s", held, way, text)
				return
			}
		}
	}
}

// canaryOf reads a resource from a document that holds all canaries.
func canaryOf[T any, P document[T]](t testing.TB, document string) *T {
	v := new(T)
	require.NoError(t, decodeAnswer([]byte(document), P(v)))
	return v
}

func canaryClient(t testing.TB, transport http.RoundTripper, opts ...Option) *Client {
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(RetryPolicy{MaxRetries: 1})}
	client := Must(New(memoryURL, canaryToken, append(all, opts...)...))(t)
	return client
}

// refusals returns the errors of requests that are refused before they are sent.
// Each was given a canary.
func refusals(t testing.TB) map[string]error {
	client := canaryClient(t, newScript(answer(200, canaryHead)))
	ctx := t.Context()
	tool := func(address string) error {
		return Tool{Name: "find", Description: "Finds.", URL: address}.Validate()
	}
	hook := func(address string) error {
		return ErrorOf(client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: address, Events: []EventType{EventStartConversation}}))
	}
	update := func(u *HeadUpdate) error { err := client.Heads.Update(ctx, testHead, u); return err }
	address := func(raw string) error { _, err := ParseAccessURL(raw); return err }
	base := func(raw, token string) error { _, err := New(raw, token); return err }
	_, badHeadID := client.Heads.Get(ctx, canaryPublicURL)
	_, badDocument := HeadUpdateFromJSON([]byte(`{"id":"` + testHead + `","voiceflowApiKey":["` + canaryVoiceflow + `"],"name":5}`))
	_, badBase := AccessURL{}.WithBase("https://x.example.com?key=" + canaryHookQuery)
	badExtra := new(ConversationSettings).SetExtra("llm", json.RawMessage(`{"api_key":"`+canarySettings))
	return map[string]error{
		"token with a line feed":       base(memoryURL, canaryToken+"\n"),
		"token with Bearer":            base(memoryURL, "Bearer "+canaryToken),
		"base URL with password":       base("https://me:"+canaryPassword+"@api.example.com", canaryToken),
		"base URL with odd password":   base("https://me:a/"+canaryPassword+"@api.example.com", canaryToken),
		"base URL with query":          base("https://api.example.com?key="+canaryHookQuery, canaryToken),
		"base URL that does not parse": base("https://me:"+canaryPassword+"@api.example.com:x", canaryToken),
		"base URL and token swapped":   base(canaryToken, memoryURL),
		"http tool":                    tool("http://tools.example.com/" + canaryToolPath),
		"tool with password":           tool("https://me:" + canaryPassword + "@tools.example.com/"),
		"tool without host":            tool("https:///" + canaryToolPath),
		"tool with placeholder":        tool("https://tools.example.com/" + canaryToolPath + "/<TOKEN>"),
		"tool that does not parse":     tool("https://tools.example.com/" + canaryToolPath + "/%zz"),
		"tool with fragment":           tool("https://tools.example.com/" + canaryToolPath + "#x"),
		"http webhook":                 hook(strings.Replace(canaryHookURL, "https", "http", 1)),
		"webhook with fragment":        hook(canaryHookURL + "#x"),
		"webhook that does not parse":  hook(canaryHookURL + "\x00"),
		"webhook with password":        hook("https://me:" + canaryPassword + "@hooks.example.com"),
		"placeholder beside a key":     update(NewHeadUpdate().PublicURL("https://chat.example.com/a/b?x=" + canaryAddress + "&api_key=<PUBLIC_API_KEY>")),
		"key of the wrong type":        update(NewHeadUpdate().Set("voiceflowApiKey", []string{canaryVoiceflow})),
		"read-only key":                update(NewHeadUpdate().Set("organisation", map[string]string{"apiKey": canaryOrg})),
		"not JSON":                     update(NewHeadUpdate().Set("x", map[string]any{canaryBody: func() {}})),
		"address as a head id":         badHeadID,
		"document with a wrong type":   badDocument,
		"settings that are no JSON":    badExtra,
		"base with query":              badBase,
		"address of one part":          address("https://chat.example.com/MyOrg-1?api_key=" + canaryAddress),
		"address with password":        address("https://me:" + canaryPassword + "@chat.example.com/MyOrg-1/li-2?api_key=" + canaryAddress),
		"address of ftp":               address("ftp://chat.example.com/MyOrg-1/li-2?api_key=" + canaryAddress),
		"address that does not parse":  address("https://chat.example.com/%zz?api_key=" + canaryAddress),
	}
}

func TestNoRefusalShowsASecret(t *testing.T) {
	for name, err := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, err, ErrInvalid)
			assertShowsNoLeaf(t, err)
		})
	}
}

// Whatever goes wrong, no error, log or observer shows a secret.
func TestNoFailingCallShowsASecret(t *testing.T) {
	headers := []string{"Set-Cookie: s=" + canaryHeader, "X-Request-Id: " + canaryToken, "X-Correlation-Id: " + canaryToken}
	leaky := &url.Error{Op: "Post", URL: memoryURL + "/head-events?key=" + canaryHookQuery + "#" + canaryPassword, Err: fmt.Errorf("bearer %s at https://me:%s@proxy.example.com", canaryToken, canaryPassword)}
	for name, script := range map[string][]step{
		"transport":      {fail(leaky)},
		"wrapped":        {fail(fmt.Errorf("proxy: %w", leaky))},
		"plain value":    {fail(textError(canaryToken))},
		"server error":   {answer(500, `{"message":"`+canaryToken+`","key":"`+canaryBody+`"}`, headers...)},
		"unauthorized":   {answer(401, canaryToken, headers...)},
		"redirect":       {answer(302, canaryBody, append(headers, "Location: https://me:"+canaryPassword+"@other.example.com/elsewhere?key="+canaryHookQuery)...)},
		"success":        {answer(200, canaryHook, headers...)},
		"head":           {answer(200, canaryHead, headers...)},
		"wrong types":    {answer(200, `{"id":["`+canaryBody+`"],"sharedKey":{"a":"`+canaryShared+`"},"name":{"`+canaryBody+`":1}}`, headers...)},
		"no shared key":  {answer(200, `{"key":"`+canaryBody+`"}`, headers...)},
		"text":           {answer(200, canaryBody, headers...)},
		"broken":         {answer(200, `{"sharedKey":"`+canaryShared, headers...)},
		"cut off":        {cutOff(503)},
		"503 then error": {answer(503, `{"message":"`+canaryToken+`","key":"`+canaryBody+`"}`, headers...), fail(leaky)},
	} {
		for methodName, call := range canaryCalls {
			t.Run(name+" "+methodName, func(t *testing.T) {
				var logged bytes.Buffer
				var attempts []Attempt
				client := canaryClient(t, newScript(script...), WithLogger(slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))),
					WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { attempts = append(attempts, a) }}))
				if err := call(t.Context(), client); err != nil {
					assertShowsNoLeaf(t, err)
					assertShowsNoLeaf(t, fmt.Errorf("wrapped: %w", errors.Join(err, io.EOF)))
				}
				require.NotEmpty(t, attempts)
				for _, a := range attempts {
					assertShowsNoLeaf(t, a)
					if a.Err != nil {
						assertShowsNoLeaf(t, a.Err)
					}
				}
				require.NotEmpty(t, logged.String())
				assert.False(t, shows(logged.String()), logged.String())
			})
		}
	}
}

// textError is an error without fields, since fmt prints fields as well.
type textError string

func (e textError) Error() string { return string(e) }

// canaryCalls are the operations, with canaries wherever a call can send one.
var canaryCalls = func() map[string]callOf {
	calls := map[string]callOf{}
	for _, op := range operations() {
		calls[op.operation()] = op.run
	}
	calls["Heads.Update"] = func(ctx context.Context, c *Client) error {
		u := NewHeadUpdate().VoiceflowAPIKey(canaryVoiceflow).PublicURL(canaryPublicURL)
		return c.Heads.Update(ctx, testHead, u)
	}
	calls["Webhooks.Create"] = func(ctx context.Context, c *Client) error {
		spec := WebhookSpec{HeadID: testHead, URL: canaryHookURL, Events: []EventType{EventStartConversation}}
		return ErrorOf(c.Webhooks.Create(ctx, spec))
	}
	calls["Webhooks.Update"] = func(ctx context.Context, c *Client) error {
		return c.Webhooks.Update(ctx, 7, NewWebhookUpdate().URL(canaryHookURL))
	}
	calls["ConversationSettings.Replace"] = func(ctx context.Context, c *Client) error {
		tool := Tool{Name: "find", Description: "Finds.", URL: "https://tools.example.com/" + canaryToolPath}
		settings := &ConversationSettings{Tools: []Tool{tool}}
		if err := settings.SetExtra("llm", json.RawMessage(`{"api_key":"`+canarySettings+`"}`)); err != nil {
			return err
		}
		return c.ConversationSettings.Replace(ctx, testHead, settings)
	}
	return calls
}()

// The error of a token source may contain the token that was refused.
func TestErrorsOfATokenSourceAreRedacted(t *testing.T) {
	client := sourceClient(t, newScript(answer(401, canaryToken)), func(_ context.Context, rejected string) (string, error) {
		if rejected == "" {
			return canaryToken, nil
		}
		return "", fmt.Errorf("token %s was revoked, see https://login.example.com?code=%s", rejected, canaryPassword)
	})
	err := getHead(t.Context(), client)
	require.ErrorIs(t, err, ErrUnauthorized)
	require.ErrorContains(t, err, "token [redacted] was revoked, see https://login.example.com")
	assertShowsNoLeaf(t, err)
}

// countingServer is a service that counts its connections, open ones and all.
func countingServer(t testing.TB, h http.HandlerFunc) (server *httptest.Server, open, made *atomic.Int64) {
	open, made = new(atomic.Int64), new(atomic.Int64)
	server = httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			made.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, open, made
}

// failures are the ways in which a call on a socket can fail.
var failures = map[string]struct {
	handler http.HandlerFunc
	call    func(context.Context, *Client) error // getHead when nil
	opts    []Option
	keeps   bool // the answer is read to its end, so its connection is used again
}{
	"long refusal": {keeps: true, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<20))
	}},
	"too long": {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, 9<<20)) }},
	"cut off": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "{")
	}},
	"hung up":           {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"hung up on a POST": {call: postHook, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"cancelled in an attempt": {
		handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		call:    withTimeout(time.Millisecond),
	},
	"cancelled in an answer": {
		handler: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		call: withTimeout(time.Millisecond),
	},
	"cancelled in a wait": {
		handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		call: func(ctx context.Context, c *Client) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return getHead(context.WithValue(ctx, cancelKey{}, cancel), c)
		},
		opts: []Option{
			WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: time.Hour, MaxWait: time.Hour}),
			WithObserver(Observer[Attempt]{End: func(ctx context.Context, _ Attempt) {
				if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
					time.AfterFunc(time.Microsecond, cancel)
				}
			}}),
		},
	},
	"attempt took too long": {
		handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		opts:    []Option{WithAttemptTimeout(time.Millisecond), WithRetryPolicy(RetryPolicy{MaxRetries: 1})},
	},
}

type cancelKey struct{}

func withTimeout(d time.Duration) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return getHead(ctx, c)
	}
}

func TestFailingCallsLeaveNothingBehind(t *testing.T) {
	for name, row := range failures {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			server, open, made := countingServer(t, row.handler)
			transport := &http.Transport{}
			client := newTestClient(t, server.URL+prefix, transport, row.opts...)
			call := row.call
			if call == nil {
				call = getHead
			}
			for range 5 {
				require.Error(t, call(t.Context(), client))
			}
			// net/http gives up a connection that is not idle again within 50 ms.
			assert.True(t, !row.keeps || made.Load() <= 10, "%d connections for 20 requests", made.Load())
			// An attempt that timed out may have opened a second connection.
			settles(t, func() bool { return open.Load() <= http.DefaultMaxIdleConnsPerHost }, "only idle connections are open")
			transport.CloseIdleConnections()
			settles(t, func() bool { return open.Load() == 0 }, "no connection is open")
			server.Close()
			settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
		})
	}
}

func TestUnreachableServiceLeavesNothingBehind(t *testing.T) {
	for name, make := range map[string]func(testing.TB) *wire{
		"refused": refusing, "reset": resetting(true), "unknown host": unknownHost, "untrusted": untrusted,
	} {
		t.Run(name, func(t *testing.T) {
			server := make(t)
			client := newTestClient(t, server.url+prefix, server.transport)
			require.Error(t, getHead(t.Context(), client))
			before := runtime.NumGoroutine()
			for range 20 {
				require.Error(t, getHead(t.Context(), client))
			}
			settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
		})
	}
}

func TestFailuresBeforeSendingLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	tr := newScript(answer(200, ""))
	client := sourceClient(t, tr, func(context.Context, string) (string, error) { return "", errors.New("no token") })
	for range 20 {
		require.Error(t, getHead(t.Context(), client))
		require.ErrorIs(t, withTimeout(-1)(t.Context(), client), context.DeadlineExceeded)
		require.ErrorIs(t, ErrorOf(client.Heads.Get(t.Context(), "li-28379")), ErrInvalid)
	}
	assert.Equal(t, 0, tr.sent())
	settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
}

// settles waits for a condition that the server or the transport meets after a
// call has returned.
func settles(t testing.TB, done func() bool, says string) {
	t.Helper()
	timeout, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			stacks := make([]byte, 1<<20)
			require.Fail(t, says, string(stacks[:runtime.Stack(stacks, true)]))
		}
	}
}
