package heads

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allRefusals returns an error of every exported function and method that checks
// its arguments.
func allRefusals(t *testing.T) map[string]error {
	ctx := t.Context()
	client := newTestClient(t, memoryURL, newScript(answer(200, `{"id":"`+testHead+`","operationMode":"ttt","conversationSettings":null}`)))
	var none *Client
	errs := map[string]error{}
	for name, err := range refusals(t) {
		errs["canary, "+name] = err
	}
	add := func(name string, err error) { errs[name] = err }
	of := func(_ any, err error) error { return err }
	for name, id := range map[string]string{"blank": " ", "empty": "", "public": "li-28379", "address": "https://a/b?c", "spaces": " " + testHead, "other": "x"} {
		add("Heads.Get "+name, of(client.Heads.Get(ctx, id)))
		add("Webhooks.List "+name, of(client.Webhooks.List(ctx, id)))
		add("Heads.ConvertToLegacy "+name, of(client.Heads.ConvertToLegacy(ctx, id, ConvertOptions{})))
	}
	add("nil client", of(none.AccessURL(&Head{})))
	add("nil context", of(client.Heads.Get(nil, testHead))) //nolint:staticcheck // what it is refused for
	add("AccessURL, nil head", of(client.AccessURL(nil)))
	add("AccessURL, no address", of(client.AccessURL(&Head{ID: testHead})))
	add("HeadVisuals.Get", of(client.HeadVisuals.Get(ctx, " ")))
	add("HeadVisuals.Get, dots", of(client.HeadVisuals.Get(ctx, "..")))
	for name, u := range map[string]*HeadUpdate{
		"nil": nil, "empty": NewHeadUpdate(), "half a voice": NewHeadUpdate().Voice("azure", " "), "voice alone": NewHeadUpdate().Set("ttsVoice", "v"),
		"language": NewHeadUpdate().Language("german"), "speech": NewHeadUpdate().LanguageSpeechRecognition("de_DE"),
		"placeholder": NewHeadUpdate().Name("string"), "read-only": NewHeadUpdate().Set("publicId", "x"), "own operation": NewHeadUpdate().Set("splitter", true),
		"letter case": NewHeadUpdate().Set("Name", "x"), "no name": NewHeadUpdate().Set(" ", 1), "type": NewHeadUpdate().Set("name", 1),
		"null": NewHeadUpdate().Set("name", nil), "no JSON": NewHeadUpdate().Set("x", func() {}),
	} {
		add("Heads.Update "+name, client.Heads.Update(ctx, testHead, u))
	}
	add("Heads.Modify", of(client.Heads.Modify(ctx, testHead, nil)))
	add("Heads.Modify, read-only", of(client.Heads.Modify(ctx, testHead, func(h *Head) error { h.VideoStreaming, h.PublicID = true, "x"; return nil })))
	add("DiffHeads, prompt", of(diffHeads("DiffHeads", &Head{PromptConfig: &PromptConfig{SystemPrompt: "x"}}, &Head{})))
	add("HeadUpdateFromJSON", of(HeadUpdateFromJSON([]byte("x"))))
	add("voice", of(client.Heads.ConvertToStreaming(ctx, testHead, ConvertOptions{Voice: &Voice{" ", "v"}})))
	add("voice, placeholder", of(client.Heads.PlanStreaming(ctx, testHead, ConvertOptions{Voice: &Voice{"azure", "<VOICE>"}})))
	add("webhook", of(client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: " "})))
	add("webhook, event", of(client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "x", Events: []EventType{"x"}})))
	add("webhook, nil", client.Webhooks.Update(ctx, 1, nil))
	add("webhook, nothing", client.Webhooks.Update(ctx, 0, NewWebhookUpdate()))
	add("webhook, no event", client.Webhooks.Update(ctx, 1, NewWebhookUpdate().Events()))
	add("webhook, change", of(client.Webhooks.Modify(ctx, 1, nil)))
	add("webhook id", client.Webhooks.Delete(ctx, -1))
	add("settings", client.ConversationSettings.Replace(ctx, testHead, nil))
	add("settings, change", of(client.ConversationSettings.Modify(ctx, testHead, nil)))
	tool := Tool{Name: "find", Description: "Finds.", URL: "https://a.example.com"}
	add("tool twice", of(client.ConversationSettings.SetTools(ctx, testHead, tool, tool)))
	add("tool name", of(client.ConversationSettings.RemoveTool(ctx, testHead, " ")))
	add("extra, blank", new(ConversationSettings).SetExtra(" ", nil))
	add("extra, tools", new(ConversationSettings).SetExtra("tools", nil))
	add("extra, no JSON", new(ConversationSettings).SetExtra("x", json.RawMessage("x")))
	add("tool", Tool{Name: "a b", URL: "x", Parameters: []ToolParameter{{Name: "c d", Type: "x"}, {Name: "c d"}}}.Validate())
	add("ParseAccessURL", of(ParseAccessURL(" ")))
	for _, raw := range []string{"x", "https://a.example.com/b", "https://a.example.com/b/c", "https://a.example.com/b/c?api_key=<KEY>"} {
		add("ParseAccessURL "+raw, of(ParseAccessURL(raw)))
	}
	add("New", of(New(" ", " ", nil, WithHTTPClient(nil), WithTokenSource(nil), WithRetryPolicy(RetryPolicy{MaxRetries: -1}), WithAttemptTimeout(0), WithLogger(nil),
		WithObserver(Observer[Attempt]{}), WithApplication("", ""), WithAccessBases("", ""), WithStreamingProviders())))
	add("New, others", of(New("http://x.localhost", "Bearer x", WithAccessBases(" ", "ftp://x"), WithStreamingProviders(" "))))
	add("New, token source", of(New("https://me@a.example.com", "x", WithTokenSource(fixedSource("x")))))
	t.Setenv("HEADS_BASE_URL", "")
	t.Setenv("HEADS_TOKEN", "")
	add("NewFromEnv", of(NewFromEnv()))
	add("NewEventHandler", of(NewEventHandler(nil, nil, nil, WithEventLogger(nil), WithDeliveryObserver(Observer[DeliveryInfo]{}), WithDeduplicator(nil), WithMaxAge(0, 0), WithHandlerTimeout(0), WithQueue(0, 0))))
	add("KeySource", of(NewEventHandler(client.Webhooks.KeySource(nil, WithKeyTTL(0), WithHeads("", "li-28379", " "+testHead)), func(context.Context, *Event) error { return nil })))
	add("NewToolHandler", of(NewToolHandler(" ", nil, WithPathToken(""), WithToolAuth(nil), WithToolTimeout(-time.Second), WithToolReplyLimit(0))))
	for _, base := range []string{"x", "http://tools.example.com", "ftp://a/?b", "https://me@a.example.com"} {
		add("NewToolHandler "+base, of(NewToolHandler(base)))
	}
	h, err := NewToolHandler("https://tools.example.com")
	require.NoError(t, err)
	add("AddTool", AddTool[struct{ A chan int }](h, " ", " ", nil))
	add("AddTool, no handler", AddTool[struct{}](nil, "find", "Finds.", nil))
	return errs
}

// eachInvalid walks the tree of joined errors.
func eachInvalid(err error, visit func(*InvalidError)) {
	switch e := err.(type) { //nolint:errorlint // it unwraps step by step
	case *InvalidError:
		visit(e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			eachInvalid(one, visit)
		}
	case interface{ Unwrap() error }:
		eachInvalid(e.Unwrap(), visit)
	}
}

// The reason continues the sentence after the field: with the value, a verb, or
// the part of the field that is wrong.
func TestInvalidErrorsReadAsOneSentence(t *testing.T) {
	begins := regexp.MustCompile(`^(".*" |-?[0-9]+ |of head \S+ |on host \S+ |(name|type|parameter|description) .*)?` +
		`(is|are|has|have|hold|holds|can|can't|was|carries|lacks|sets|starts|must|says|and ttsProvider ".*" must) `)
	for name, err := range allRefusals(t) {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, err, ErrInvalid)
			eachInvalid(err, func(e *InvalidError) {
				t.Log(e)
				assert.Equal(t, "heads: "+e.Operation+": "+e.Field+" "+e.Problem+"; "+e.Remedy, e.Error())
				assert.NotContains(t, e.Field, ":")
				assert.Regexp(t, begins, e.Problem+"; "+e.Remedy)
				assert.NotContains(t, e.Error(), "\n")
				assert.NotRegexp(t, `[.;,: ]$`, e.Problem+"; "+e.Remedy)
				assert.LessOrEqual(t, strings.Count(err.Error(), testHead), strings.Count(err.Error(), "heads: "), "the id of the head is said once")
			})
		})
	}
}

func TestBlankTextsAreRefused(t *testing.T) {
	for name, blank := range map[string]string{"empty": "", "space": " ", "line": "\n\t"} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(answer(200, "{}")))
			ctx := t.Context()
			of := func(_ any, err error) error { return err }
			for what, err := range map[string]error{
				"head id":    of(client.Heads.Get(ctx, blank)),
				"visual id":  of(client.HeadVisuals.Get(ctx, blank)),
				"base URL":   of(New(blank, "x")),
				"token":      of(New(memoryURL, blank)),
				"access URL": of(ParseAccessURL(blank)),
				"base":       of(AccessURL{}.WithBase(blank)),
				"webhook":    WebhookSpec{HeadID: testHead, URL: blank, Events: []EventType{EventEndConversation}}.validate("x"),
				"tool URL":   Tool{Name: "find", Description: "Finds.", URL: blank}.Validate(),
				"tool name":  of(client.ConversationSettings.RemoveTool(ctx, testHead, blank)),
				"key":        new(ConversationSettings).SetExtra(blank, nil),
				"field":      NewHeadUpdate().Set(blank, 1).Validate(),
				"provider":   NewHeadUpdate().Voice(blank, "v").Validate(),
				"voice":      NewHeadUpdate().Voice("azure", blank).Validate(),
				"tools":      of(NewToolHandler(blank)),
			} {
				require.ErrorIs(t, err, ErrInvalid, what)
				assert.Contains(t, err.Error(), "is blank; give", what)
			}
		})
	}
}

func TestLanguageMustBeATag(t *testing.T) {
	for _, tag := range []string{"", "de", "de-DE", "en-us", "yue", "zh-Hans-CN", "es-419", "sr-Latn", "sl-rozaj-biske", "de-CH-1996", "zh-cmn-Hans", "en-a-bbb-x-a", "en-x-private"} {
		require.NoError(t, NewHeadUpdate().Language(tag).LanguageSpeechRecognition(tag).Validate(), tag)
	}
	for _, text := range []string{"german", "German", "d", "de_DE", "de-", "-DE", " ", "de DE", "de-DE ", "english (US)", "12", "dé-DE", "de--DE", "german-DE"} {
		for field, u := range map[string]*HeadUpdate{
			"language": NewHeadUpdate().Language(text), "languageSpeechRecognition": NewHeadUpdate().LanguageSpeechRecognition(text),
		} {
			var one *InvalidError
			require.ErrorAs(t, u.Validate(), &one, text)
			assert.Equal(t, field, one.Field)
			assert.Contains(t, one.Problem+"; "+one.Remedy, "is not a language tag; give a BCP 47 tag such as en-US")
		}
	}
	// A value that the service already stores is written back unchanged.
	head := canaryOf[Head](t, `{"id":"`+testHead+`","language":"german"}`)
	u, err := HeadUpdateFromJSON(head.Raw.Bytes())
	require.NoError(t, err)
	require.NoError(t, u.Validate())
}

func TestSentinelsDoNotContradictTheirErrors(t *testing.T) {
	for name, row := range map[string]struct {
		head, visual string
		sentinel     error
	}{
		"no visual": {`"x":1`, ``, ErrVisualMode},
		"two loops": {`"headVisualId":"v"`, `{"id":"v","mode":"two_loops"}`, ErrVisualMode},
		"no mode":   {`"headVisualId":"v"`, `{"id":"v"}`, ErrVisualMode},
		"provider":  {`"headVisualId":"v","ttsProvider":"acme"`, `{"id":"v","mode":"default"}`, ErrProviderNotStreaming},
	} {
		t.Run(name, func(t *testing.T) {
			head := `{"id":"` + testHead + `","publicUrl":"` + canaryPublicURL + `",` + row.head + `}`
			client := newTestClient(t, memoryURL, newScript(answer(200, head), answer(200, row.visual)))
			_, err := client.Heads.ConvertToStreaming(t.Context(), testHead, ConvertOptions{})
			require.ErrorIs(t, err, row.sentinel)
			assert.NotContains(t, err.Error(), strings.TrimPrefix(row.sentinel.Error(), "heads: "))
			assert.Equal(t, 1, strings.Count(err.Error(), testHead), err.Error())
		})
	}
}

func TestConversionErrorShowsTheIDOnce(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(404, "")))
	_, err := client.Heads.ConvertToStreaming(t.Context(), testHead, ConvertOptions{})
	require.ErrorIs(t, err, ErrNotFound)
	assert.Equal(t, 1, strings.Count(err.Error(), testHead), err.Error())
}
