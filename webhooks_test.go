package heads

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hookSpec() WebhookSpec {
	return WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com/heads?a=1&b=2", Events: []EventType{EventStartConversation, EventTimeoutConversation}}
}

func TestCreateTakesEventTypesInAnyCaseAndOnce(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"POST /head-events": `{"sharedKey":"k"}`})
	spec := hookSpec()
	spec.Events = []EventType{"START_CONVERSATION", "Timeout_Conversation", EventStartConversation}
	hook := Must(service.Webhooks.Create(t.Context(), spec))(t)
	assert.Equal(t, golden(t, "webhook_create.json"), service.bodyOf(t, "POST /head-events"))
	assert.Equal(t, []EventType{EventStartConversation, EventTimeoutConversation}, hook.Events())
}

func TestCreateRequiresOnlyTheSharedKey(t *testing.T) {
	asked := Webhook{
		HeadID: testHead, URL: "https://hooks.example.com/heads?a=1&b=2", SharedKey: NewSecret("canary"),
		StartConversation: true, TimeoutConversation: true,
	}
	for _, tt := range []struct {
		name, answer string
		want         func(Webhook) Webhook
	}{
		{"nothing else", `{"sharedKey":"canary"}`, func(w Webhook) Webhook { return w }},
		{"the whole record", `{"id":9007199254740993,"createdAt":"2026-08-31T06:56:30Z","updatedAt":"2026-08-31 06:56:31","orgId":"org","headId":"` + strings.ToUpper(testHead) + `",
			"webhookUrl":"https://hooks.example.com/stored","sharedKey":"canary","startConversation":false,"endConversation":true,"timeoutConversation":true,"inactivityWarning":true}`,
			func(Webhook) Webhook {
				return Webhook{
					ID: 9007199254740993, OrgID: "org", HeadID: strings.ToUpper(testHead), URL: "https://hooks.example.com/stored", SharedKey: NewSecret("canary"),
					CreatedAt:       Time{time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC), "2026-08-31T06:56:30Z"},
					UpdatedAt:       Time{time.Date(2026, 8, 31, 6, 56, 31, 0, time.UTC), "2026-08-31 06:56:31"},
					EndConversation: true, TimeoutConversation: true, InactivityWarning: true,
				}
			}},
		{"null for all else", `{"id":null,"createdAt":null,"orgId":null,"headId":null,"webhookUrl":null,"sharedKey":"canary","startConversation":null}`,
			func(w Webhook) Webhook { return w }},
		{"a string of digits", `{"id":"9007199254740993","sharedKey":"canary"}`, func(w Webhook) Webhook { w.ID = 9007199254740993; return w }},
		{"wrong types in all else", `{"id":"seven","updatedAt":{},"orgId":5,"headId":[],"webhookUrl":false,"sharedKey":"canary",
			"startConversation":"yes","endConversation":1,"timeoutConversation":{},"inactivityWarning":[]}`,
			func(w Webhook) Webhook { w.UpdatedAt.Text = "{}"; return w }},
		{"one wrong type", `{"id":7,"sharedKey":"canary","headId":17}`, func(w Webhook) Webhook { w.ID = 7; return w }},
		{"an id that is no integer", `{"id":7.5,"sharedKey":"canary"}`, func(w Webhook) Webhook { return w }},
		{"unknown fields", `{"sharedKey":"canary","added":{"a":[1]}}`, func(w Webhook) Webhook { return w }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"POST /head-events": tt.answer})
			hook := Must(service.Webhooks.Create(t.Context(), hookSpec()))(t)
			assert.Equal(t, tt.want(asked), *hook)
		})
	}
}

func TestCreateWithoutASharedKeyIsADecodeError(t *testing.T) {
	for _, answer := range []string{`{}`, `{"id":7}`, `{"sharedKey":""}`, `{"sharedKey":null}`, `{"sharedKey":5}`, `{"sharedKey":["k"]}`, `{"id":"7","sharedKey":5}`} {
		t.Run(answer, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"POST /head-events": answer})
			hook, err := service.Webhooks.Create(t.Context(), hookSpec())
			assert.Nil(t, hook)
			wrong := As[*DecodeError](t, err)
			assert.Equal(t, answer, string(wrong.Body.Bytes()))
			assert.Contains(t, err.Error(), "sharedKey")
			assert.Len(t, service.since(), 1, "a create is not retried")
		})
	}
}

func TestWebhookSpecIsCheckedBeforeAnythingIsSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*WebhookSpec)
		fields []string
	}{
		{"fine", func(*WebhookSpec) {}, nil},
		{"plain http", func(s *WebhookSpec) { s.URL = "http://hooks.example.com/canary" }, []string{"webhookUrl"}},
		{"no URL", func(s *WebhookSpec) { s.URL = "" }, []string{"webhookUrl"}},
		{"a placeholder", func(s *WebhookSpec) { s.URL = "string" }, []string{"webhookUrl"}},
		{"no events", func(s *WebhookSpec) { s.Events = nil }, []string{"events"}},
		{"empty events", func(s *WebhookSpec) { s.Events = []EventType{} }, []string{"events"}},
		{"an unknown event", func(s *WebhookSpec) { s.Events = append(s.Events, "message_sent") }, []string{"events"}},
		{"an event without a name", func(s *WebhookSpec) { s.Events = append(s.Events, "") }, []string{"events"}},
		{"an event with a space", func(s *WebhookSpec) { s.Events = []EventType{" start_conversation"} }, []string{"events"}},
		{"two unknown events", func(s *WebhookSpec) { s.Events = []EventType{"a", EventEndConversation, "b"} }, []string{"events", "events"}},
		{"a public id", func(s *WebhookSpec) { s.HeadID = "li-28379" }, []string{"head id"}},
		{"all of it", func(s *WebhookSpec) { *s = WebhookSpec{} }, []string{"head id", "webhookUrl", "events"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"POST /head-events": `{"sharedKey":"k"}`})
			spec := hookSpec()
			tt.change(&spec)
			_, err := service.Webhooks.Create(t.Context(), spec)
			if tt.fields == nil {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, tt.fields, invalidFields(t, err))
			for _, fault := range invalidErrors(t, err) {
				assert.Equal(t, "Webhooks.Create", fault.Operation)
			}
			assert.NotContains(t, err.Error(), "canary")
			assert.Empty(t, service.since())
		})
	}
}

func TestListReadsRecords(t *testing.T) {
	const record = `{"id":7,"createdAt":"2026-08-31T06:56:30Z","updatedAt":"2026-08-31 06:56:31","orgId":"org","headId":"` + testHead + `","webhookUrl":"https://hooks.example.com/a",
		"sharedKey":"key","startConversation":true,"endConversation":false,"timeoutConversation":false,"inactivityWarning":true,"added":1}`
	hook := Webhook{
		ID: 7, OrgID: "org", HeadID: testHead, URL: "https://hooks.example.com/a", SharedKey: NewSecret("key"), StartConversation: true, InactivityWarning: true,
		CreatedAt: Time{time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC), "2026-08-31T06:56:30Z"},
		UpdatedAt: Time{time.Date(2026, 8, 31, 6, 56, 31, 0, time.UTC), "2026-08-31 06:56:31"},
	}
	for _, tt := range []struct {
		name, answer string
		want         []Webhook
	}{
		{"none", `[]`, []Webhook{}},
		{"one", `[` + record + `]`, []Webhook{hook}},
		{"two, in the order of the service", `[{"id":9,"headId":"` + testHead + `"},` + record + ` ]`, []Webhook{{ID: 9, HeadID: testHead}, hook}},
		{"null", ` null `, []Webhook{}},
		{"an id of digits", `[` + record + `,` + strings.Replace(record, `"id":7`, `"id":"7"`, 1) + `]`, []Webhook{hook, hook}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"GET /head-events": tt.answer, "GET /head-events/7": record})
			hooks := Must(service.Webhooks.List(t.Context(), testHead))(t)
			assert.Equal(t, tt.want, hooks)
			assert.Equal(t, "headId="+testHead, service.since()[0].query)

			one := Must(service.Webhooks.Get(t.Context(), 7))(t)
			assert.Equal(t, hook, *one)
		})
	}
}

// A malformed list must not be read as an empty one, since Ensure would then
// create a second registration.
func TestListOfAnotherShapeIsADecodeError(t *testing.T) {
	for _, answer := range []string{``, `{}`, `{"items":[]}`, `["x"]`, `[null]`, `[{"webhookUrl":5}]`, `[{"endConversation":"no"}]`,
		`[{"id":"seven","headId":"` + testHead + `"}]`, `[{"id":"","headId":"` + testHead + `"}]`, `[{"id":"7.0","headId":"` + testHead + `"}]`,
		`[{"id":"7","headId":"` + testHead + `","webhookUrl":5}]`} {
		t.Run(answer, func(t *testing.T) {
			hooks, err := newFakeAPI(t, map[string]string{"GET /head-events": answer}).Webhooks.List(t.Context(), testHead)
			assert.Nil(t, hooks)
			assert.ErrorAs(t, err, new(*DecodeError))
		})
	}
}

func TestRecordOfTheWrongTypeIsADecodeError(t *testing.T) {
	for field, kind := range map[string]string{
		"id": "number", "orgId": "string", "headId": "string", "webhookUrl": "string", "sharedKey": "string",
		"startConversation": "boolean", "endConversation": "boolean", "timeoutConversation": "boolean", "inactivityWarning": "boolean",
	} {
		for given, value := range ofEachType {
			if given == kind && field != "id" { // 17.5 is no integer
				continue
			}
			t.Run(field+" "+given, func(t *testing.T) {
				_, err := newFakeAPI(t, map[string]string{"GET /head-events/7": `{"` + field + `":` + value + `}`}).Webhooks.Get(t.Context(), 7)
				require.ErrorAs(t, err, new(*DecodeError))
				assert.Contains(t, err.Error(), `"`+field+`"`)
				assert.NotContains(t, err.Error(), "canary")
			})
		}
	}
}

func TestWebhookIDBelowOneIsRefused(t *testing.T) {
	service := newFakeAPI(t, nil)
	for _, id := range []int64{0, -1, math.MinInt64} {
		_, err := service.Webhooks.Get(t.Context(), id)
		assert.Equal(t, []string{"webhook id"}, invalidFields(t, err))
		assert.ErrorContains(t, err, fmt.Sprint(id))
		assert.Equal(t, []string{"webhook id"}, invalidFields(t, service.Webhooks.Delete(t.Context(), id)))
	}
	assert.Empty(t, service.since())
}

func TestWebhookUpdateSendsWhatWasSetAndNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		update     *WebhookUpdate
	}{
		{"the URL", golden(t, "webhook_update_url.json"), NewWebhookUpdate().URL("https://hooks.example.com/new")},
		{"head and events", golden(t, "webhook_update_events.json"), NewWebhookUpdate().HeadID(testHead).Events(EventInactivityWarning, EventEndConversation)},
		{"one flag", golden(t, "webhook_update_one_flag.json"), NewWebhookUpdate().Event(EventEndConversation, false)},
		{"events, then one flag", `{"startConversation":true,"endConversation":true,"timeoutConversation":false,"inactivityWarning":false}`,
			NewWebhookUpdate().Events(EventStartConversation).Event(EventEndConversation, true)},
		{"one flag, then events", `{"startConversation":true,"endConversation":false,"timeoutConversation":false,"inactivityWarning":false}`,
			NewWebhookUpdate().Event(EventEndConversation, true).Events("START_CONVERSATION")},
		{"a flag in upper case", `{"timeoutConversation":true}`, NewWebhookUpdate().Event("TIMEOUT_CONVERSATION", true)},
		{"the last call counts", `{"webhookUrl":"https://b.example.com/?x=1&y=<z>","endConversation":true}`,
			NewWebhookUpdate().URL("https://a.example.com").URL("https://b.example.com/?x=1&y=<z>").Event(EventEndConversation, false).Event(EventEndConversation, true)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"PATCH /head-events/7": ""})
			require.NoError(t, service.Webhooks.Update(t.Context(), 7, tt.update))
			assert.Equal(t, tt.body, service.bodyOf(t, "PATCH /head-events/7"))
		})
	}
}

func TestWebhookUpdateIsCheckedBeforeAnythingIsSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		update *WebhookUpdate
		fields []string
	}{
		{"nil", nil, []string{"update"}},
		{"nothing set", NewWebhookUpdate(), []string{"update"}},
		{"an empty head id", NewWebhookUpdate().HeadID(""), []string{"head id"}},
		{"an empty URL", NewWebhookUpdate().URL(""), []string{"webhookUrl"}},
		{"plain http", NewWebhookUpdate().URL("http://hooks.example.com"), []string{"webhookUrl"}},
		{"an unknown event", NewWebhookUpdate().Event("message_sent", false), []string{"events"}},
		{"an unknown event among others", NewWebhookUpdate().Events(EventEndConversation, "message_sent"), []string{"events"}},
		{"all of it", NewWebhookUpdate().HeadID("li-28379").URL("http://hooks.example.com").Event("message_sent", true), []string{"head id", "webhookUrl", "events"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, map[string]string{"PATCH /head-events/7": ""})
			assert.Equal(t, tt.fields, invalidFields(t, service.Webhooks.Update(t.Context(), 7, tt.update)))
			err := service.Webhooks.Update(t.Context(), 0, tt.update)
			assert.Equal(t, append([]string{"webhook id"}, tt.fields...), invalidFields(t, err), "together with the id")
			assert.Empty(t, service.since())
		})
	}
}

func TestEventsOfAWebhook(t *testing.T) {
	assert.Empty(t, new(Webhook).Events())
	all := &Webhook{StartConversation: true, EndConversation: true, TimeoutConversation: true, InactivityWarning: true}
	assert.ElementsMatch(t, []EventType{"start_conversation", "end_conversation", "inactivity_warning", "timeout_conversation"}, all.Events())
	for event, hook := range map[EventType]Webhook{
		"start_conversation": {StartConversation: true}, "end_conversation": {EndConversation: true},
		"timeout_conversation": {TimeoutConversation: true}, "inactivity_warning": {InactivityWarning: true},
	} {
		assert.Equal(t, []EventType{event}, hook.Events())
		service := newFakeAPI(t, map[string]string{"POST /head-events": `{"sharedKey":"k"}`})
		created := Must(service.Webhooks.Create(t.Context(), WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com", Events: []EventType{event}}))(t)
		assert.Equal(t, []EventType{event}, created.Events())
	}
}

func TestWebhookAsJSONHasAllButItsKey(t *testing.T) {
	hook := Webhook{ID: 7, CreatedAt: Time{Text: "2026-08-31 06:56:30"}, HeadID: testHead, URL: "https://hooks.example.com/?a=1&b=2", SharedKey: NewSecret("key"), EndConversation: true}
	stored := Must(json.Marshal(hook))(t)
	assert.Contains(t, string(stored), `"sharedKey":"[redacted]"`)
	var read Webhook
	require.NoError(t, json.Unmarshal(stored, &read))
	read.CreatedAt.Time = time.Time{}
	hook.SharedKey = Secret{}
	assert.Equal(t, hook, read)
}
