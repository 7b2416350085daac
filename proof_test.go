package heads

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notTheHead are answers that are not the head that was asked for.
var notTheHead = map[string]string{
	"an empty object":        `{}`,
	"a maintenance page":     `{"message":"canary: we are back soon"}`,
	"a wrapped head":         `{"data":{"id":"` + testHead + `","name":"canary"}}`,
	"another head":           `{"id":"` + otherID + `","name":"canary","voiceflowApiKey":"canary"}`,
	"an id of null":          `{"id":null,"name":"canary"}`,
	"an empty id":            `{"id":"","name":"canary"}`,
	"a longer id":            `{"id":"` + testHead + `0","name":"canary"}`,
	"an id twice":            `{"id":"` + testHead + `","name":"canary","id":"` + testHead + `"}`,
	"two ids":                `{"id":"` + otherID + `","name":"canary","id":"` + testHead + `"}`,
	"an id in an inner part": `{"name":"canary","organisation":{"id":"` + testHead + `"}}`,
}

func TestReadOfAHeadProvesThatItIsTheHead(t *testing.T) {
	for name, document := range notTheHead {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(document))
			head, err := service.Heads.Get(t.Context(), testHead)
			assert.Nil(t, head)
			var wrong *DecodeError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, "Heads.Get", wrong.Operation)
			assert.Equal(t, document, string(wrong.Body.Bytes()))
			if !strings.Contains(err.Error(), `field "id" occurs twice`) {
				assert.ErrorContains(t, err, "the head that was asked for")
			}
			assertHides(t, err, "canary", otherID)
		})
	}
}

func TestNothingIsWrittenAfterAReadOfSomethingElse(t *testing.T) {
	calls := map[string]func(*fakeAPI) error{
		"Heads.Modify": func(f *fakeAPI) error {
			_, err := f.Heads.Modify(t.Context(), testHead, func(h *Head) error {
				h.Phrases = append(h.Phrases, "hello")
				return nil
			})
			return err
		},
		"ConvertToStreaming": func(f *fakeAPI) error {
			_, err := f.Heads.ConvertToStreaming(t.Context(), testHead, ConvertOptions{Voice: &Voice{"azure", "v"}})
			return err
		},
	}
	for name, call := range map[string]settingsCall{
		"PutTool": putting(weatherTool()), "SetTools": setting(weatherTool()), "RemoveTool": removing("weather"),
		"ConversationSettings.Modify": modifying(func(cs *ConversationSettings) error {
			return cs.SetExtra("model", []byte(`1`))
		}),
	} {
		calls[name] = func(f *fakeAPI) error {
			_, err := call(t.Context(), f.ConversationSettings)
			return err
		}
	}
	for name, call := range calls {
		for document, body := range notTheHead {
			t.Run(name+" "+document, func(t *testing.T) {
				service := newFakeAPI(t, answering(body))
				assert.ErrorAs(t, call(service), new(*DecodeError))
				assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
			})
		}
	}
}

func TestReadOfAVisualProvesThatItIsTheVisual(t *testing.T) {
	for name, document := range map[string]string{
		"nothing": `{}`, "a page": `{"message":"canary"}`, "wrapped": `{"data":{"id":"v-1","mode":"default"}}`,
		"another one": `{"id":"v-2","mode":"default"}`, "a number": `{"id":17,"mode":"default"}`, "an object": `{"id":{"id":"v-1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			visual, err := newFakeAPI(t, map[string]string{"GET /head_visual/v-1": document}).HeadVisuals.Get(t.Context(), "v-1")
			assert.Nil(t, visual)
			assert.ErrorAs(t, err, new(*DecodeError))
			assert.ErrorContains(t, err, "the head visual that was asked for")
			assertHides(t, err, "canary")
		})
	}
}

func TestReadOfAWebhookProvesThatItIsTheWebhook(t *testing.T) {
	for name, document := range map[string]string{
		"nothing": `{}`, "a page": `{"message":"canary"}`, "wrapped": `{"data":{"id":7}}`, "null": `{"id":null}`,
		"another one": `{"id":8,"sharedKey":"canary"}`, "another one in digits": `{"id":"70"}`,
	} {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"GET /head-events/7": document, "PATCH /head-events/7": ""})
			hook, err := service.Webhooks.Get(t.Context(), 7)
			assert.Nil(t, hook)
			assert.ErrorAs(t, err, new(*DecodeError))
			assert.ErrorContains(t, err, "the webhook that was asked for")
			assertHides(t, err, "canary")
			_, err = service.Webhooks.Modify(t.Context(), 7, func(w *Webhook) error {
				w.EndConversation = true
				return nil
			})
			assert.ErrorAs(t, err, new(*DecodeError))
			assert.NotContains(t, service.routes(), "PATCH /head-events/7")
		})
	}
	hook, err := newFakeAPI(t, map[string]string{"GET /head-events/7": `{"id":"7","sharedKey":"k"}`}).Webhooks.Get(t.Context(), 7)
	require.NoError(t, err, "an id of digits")
	assert.EqualValues(t, 7, hook.ID)
	assert.Equal(t, "k", hook.SharedKey.Reveal())
}

func TestEveryRecordOfAListMustBeOfTheHead(t *testing.T) {
	const mine = `{"id":7,"headId":"` + testHead + `","sharedKey":"canary"}`
	for name, document := range map[string]string{
		"a page": `[{"message":"canary"}]`, "no head": `[` + mine + `,{"id":8}]`, "null": `[` + mine + `,{"id":8,"headId":null}]`,
		"another head": `[` + mine + `,{"id":8,"headId":"` + otherID + `","sharedKey":"canary"}]`, "null for a record": `[` + mine + `,null]`,
	} {
		t.Run(name, func(t *testing.T) {
			hooks, err := newFakeAPI(t, map[string]string{"GET /head-events": document}).Webhooks.List(t.Context(), testHead)
			assert.Nil(t, hooks)
			assert.ErrorAs(t, err, new(*DecodeError))
			assert.ErrorContains(t, err, "a record in it does not belong to the head that was asked for")
			assertHides(t, err, "canary", otherID)
		})
	}
}

func TestCreatedWebhookOfAnotherHeadIsADecodeError(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"POST /head-events": `{"id":7,"headId":"` + otherID + `","sharedKey":"canary"}`})
	_, err := service.Webhooks.Create(t.Context(), hookSpec())
	assert.ErrorAs(t, err, new(*DecodeError))
	assert.ErrorContains(t, err, "another head")
	assertHides(t, err, "canary", otherID)
}

func TestPromptConfigMayBeAString(t *testing.T) {
	const document = `{"id":"` + testHead + `","isActive":"yes","promptConfig":"Be \u0062rief.","name":"n"}`
	service := newFakeAPI(t, answering(document))
	head, err := service.Heads.Get(t.Context(), testHead)
	require.NoError(t, err)
	assert.Equal(t, &PromptConfig{SystemPrompt: "Be brief."}, head.PromptConfig)
	assert.Equal(t, "n", head.Name)
	assert.Equal(t, document, string(head.Raw.Bytes()))

	_, err = service.Heads.Modify(t.Context(), testHead, func(h *Head) error {
		h.Name = "m"
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, `{"id":"`+testHead+`","name":"m"}`, service.bodyOf(t, "PUT /head/update"))
	_, err = service.Heads.Modify(t.Context(), testHead, func(h *Head) error {
		h.PromptConfig.SystemPrompt = "Be kind."
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, `{"id":"`+testHead+`","promptConfig":{"system_prompt":"Be kind."}}`, service.bodyOf(t, "PUT /head/update"))

	for name, update := range map[string]func() (*HeadUpdate, error){
		"HeadUpdateFromJSON": func() (*HeadUpdate, error) { return HeadUpdateFromJSON(head.Raw.Bytes()) },
	} {
		u, err := update()
		require.NoError(t, err, name)
		sent := parseObject(t, string(u.document(testHead)))
		assert.JSONEq(t, `{"system_prompt":"Be brief."}`, string(sent["promptConfig"]), name)
	}
}

func TestRecordProvesAChangeOnlyIfItIsWhole(t *testing.T) {
	for body, proves := range map[string]bool{
		`{"id":"` + testHead + `"}`:                              true,
		`{"id":"` + strings.ToUpper(testHead) + `"}`:             true,
		`{"id":"` + testHead + `"`:                               false,
		`{"id":"` + testHead + `"} <!-- of a page -->`:           false,
		`{"id":"` + otherID + `"}`:                               false,
		`{"id":"` + otherID + `","id":"` + testHead + `"}`:       false,
		`{"id":"` + testHead + `","\u0069d":"` + testHead + `"}`: false,
		`{"ID":"` + testHead + `"}`:                              false,
		`{"id":"` + testHead + `","ID":"` + otherID + `"}`:       true,
	} {
		assert.Equal(t, proves, (&Response{Body: NewRaw([]byte(body))}).proves(testHead), body)
	}
}

func TestEmptiedListIsShownByNullToo(t *testing.T) {
	for _, shown := range []string{"[]", "null"} {
		tr := newScript(answer(200, `{"id":"`+testHead+`","phrases":["a"]}`), answer(200, `{"status":"done"}`), answer(200, `{"id":"`+testHead+`","phrases":`+shown+`}`))
		_, err := newTestClient(t, memoryURL, tr).Heads.Modify(t.Context(), testHead, func(h *Head) error {
			h.Phrases = nil
			return nil
		})
		require.NoError(t, err, shown)
		assert.Equal(t, 3, tr.sent())
	}
}
