package heads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eventBody is a body as the service sends it.
func eventBody(headID, sessionID, eventType, timestamp string) string {
	return fmt.Sprintf(`{"timestamp":%q,"head_id":%q,"session_id":%q,"public_head_id":"li-28379","public_org_id":"MyOrg-1234","event_type":%q}`,
		timestamp, headID, sessionID, eventType)
}

func TestParseEventReadsEveryField(t *testing.T) {
	body := []byte(eventBody(testHeadA, "session-1", "start_conversation", "2026-08-31 06:56:30"))
	e := Must(ParseEvent(body))(t)
	assert.Equal(t, &Event{
		Type:         EventStartConversation,
		Timestamp:    Time{Time: time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC), Text: "2026-08-31 06:56:30"},
		HeadID:       testHeadA,
		SessionID:    "session-1",
		PublicHeadID: "li-28379",
		PublicOrgID:  "MyOrg-1234",
		Raw:          NewRaw(body),
	}, e)
}

func TestParseEventKeepsACopyOfTheBody(t *testing.T) {
	body := []byte(eventBody(testHeadA, "session-1", "start_conversation", "2026-08-31 06:56:30"))
	want := string(body)
	e := Must(ParseEvent(body))(t)
	clear(body)
	assert.Equal(t, want, string(e.Raw.Bytes()))
	assert.Equal(t, testHeadA, e.HeadID)
}

// eventForms are bodies with their event, or nil. Each is read by package json
// and, if it has a plain form, by readPlain.
var eventForms = []struct {
	name, body string
	want       *Event // nil: refused
}{
	{"without ids", `{"event_type":"x"}`, &Event{Type: "x"}},
	{"unknown string", `{"event_type":"x","reason":"y"}`, &Event{Type: "x"}},
	{"unknown object", `{"event_type":"x","detail":{"head_id":"inner","event_type":["z"]}}`, &Event{Type: "x"}},
	{"unknown given twice", `{"event_type":"x","n":"1","n":"2"}`, &Event{Type: "x"}},
	{"unknown name beyond ASCII", `{"event_type":"x","ħead_id":"1"}`, &Event{Type: "x"}},
	{"null ids", `{"event_type":"x","head_id":null,"timestamp":null}`, &Event{Type: "x"}},
	{"space everywhere", " \r\n{ \"event_type\"\t:\n\"x\" , \"head_id\" : \"a\" }\n ", &Event{Type: "x", HeadID: "a"}},
	{"escapes", `{"event_type":"\u0078","head_id":"a\"\\\/\n\u00e9\ud83d\ude42"}`, &Event{Type: "x", HeadID: "a\"\\/\né🙂"}},
	{"escaped name", `{"event_type":"x","head\u005fid":"a"}`, &Event{Type: "x", HeadID: "a"}},
	{"beyond ASCII", `{"event_type":"x","session_id":"é🙂"}`, &Event{Type: "x", SessionID: "é🙂"}},
	{"invalid UTF-8", "{\"event_type\":\"x\",\"session_id\":\"a\xffb\"}", &Event{Type: "x", SessionID: "a\ufffdb"}},
	{"lone surrogate", `{"event_type":"x","session_id":"\ud800"}`, &Event{Type: "x", SessionID: "\ufffd"}},
	{"NUL", `{"event_type":"x","session_id":"a\u0000b"}`, &Event{Type: "x", SessionID: "a\x00b"}},
	{"upper-case name", `{"EVENT_TYPE":"x","HEAD_ID":"a"}`, &Event{Type: "x", HeadID: "a"}},
	{"upper-case type", `{"event_type":"START_CONVERSATION"}`, &Event{Type: EventStartConversation}},
	{"time as a number", `{"event_type":"x","timestamp":1788159390}`, &Event{Type: "x", Timestamp: Time{Text: "1788159390"}}},
	{"time as an object", `{"event_type":"x","timestamp":{"at":1}}`, &Event{Type: "x", Timestamp: Time{Text: `{"at":1}`}}},
	{"deep nesting", `{"event_type":"x","deep":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, &Event{Type: "x"}},

	{"nothing", ``, nil},
	{"space", ` `, nil},
	{"null", `null`, nil},
	{"no type", `{"head_id":"a"}`, nil},
	{"empty type", `{"event_type":""}`, nil},
	{"null type", `{"event_type":null}`, nil},
	{"no members", `{}`, nil},
	{"array", `[{"event_type":"x"}]`, nil},
	{"text", `"event_type"`, nil},
	{"number", `5`, nil},
	{"form", `event_type=x`, nil},
	{"two objects", `{"event_type":"x"}{"event_type":"x"}`, nil},
	{"something after it", `{"event_type":"x"}x`, nil},
	{"cut off", `{"event_type":"x"`, nil},
	{"cut off in a string", `{"event_type":"x`, nil},
	{"cut off after a comma", `{"event_type":"x",`, nil},
	{"trailing comma", `{"event_type":"x",}`, nil},
	{"no colon", `{"event_type" "x"}`, nil},
	{"name without quotes", `{event_type:"x"}`, nil},
	{"line end in a string", "{\"event_type\":\"x\ny\"}", nil},
	{"byte order mark", "\ufeff{\"event_type\":\"x\"}", nil},
	{"type as a number", `{"event_type":5}`, nil},
	{"head id as a number", `{"event_type":"x","head_id":5}`, nil},
	{"other ids as numbers", `{"event_type":"x","session_id":12345678901234567890,"public_head_id":-1.50,"public_org_id":7}`,
		&Event{Type: "x", SessionID: "12345678901234567890", PublicHeadID: "-1.50", PublicOrgID: "7"}},
	{"session id as a truth", `{"event_type":"x","session_id":true}`, nil},
	{"session id twice, a number first", `{"event_type":"x","session_id":5,"session_id":"5"}`, nil},
	{"head id as an array", `{"event_type":"x","head_id":["a"]}`, nil},
	{"head id as an object", `{"event_type":"x","head_id":{"id":"a"}}`, nil},
	{"head id as a truth", `{"event_type":"x","head_id":true}`, nil},
	{"head id twice", `{"event_type":"x","head_id":"a","head_id":"b"}`, nil},
	{"same head id twice", `{"event_type":"x","head_id":"a","head_id":"a"}`, nil},
	{"head id in two cases", `{"event_type":"x","head_id":"a","HEAD_ID":"b"}`, nil},
	{"head id in two other cases", `{"event_type":"x","Head_Id":"a","hEAD_iD":"b"}`, nil},
	{"head id null, then given", `{"event_type":"x","head_id":null,"head_id":"b"}`, nil},
	{"head id given, then null", `{"event_type":"x","head_id":"b","head_id":null}`, nil},
	{"head id escaped the second time", `{"event_type":"x","head_id":"a","\u0068ead_id":"b"}`, nil},
	{"session id with a long s", `{"event_type":"x","session_id":"a","ſession_id":"b"}`, nil},
	{"type twice", `{"event_type":"x","event_type":"y"}`, nil},
	{"time twice", `{"event_type":"x","timestamp":"a","timestamp":"b"}`, nil},
	{"time twice, a number first", `{"event_type":"x","timestamp":1,"timestamp":"b"}`, nil},
	{"nesting without end", strings.Repeat(`{"a":`, 13000), nil},
	{"nesting beyond reason", `{"event_type":"x","deep":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, nil},
}

func TestParseEventAcceptsWhatItUnderstands(t *testing.T) {
	for _, form := range eventForms {
		t.Run(form.name, func(t *testing.T) {
			e, err := ParseEvent([]byte(form.body))
			if form.want == nil {
				require.Error(t, err)
				assert.Nil(t, e)
				return
			}
			require.NoError(t, err)
			want := *form.want
			want.Raw = NewRaw([]byte(form.body))
			assert.Equal(t, &want, e)
		})
	}
}

// readPlain must read an event as package json does, or refuse it.
func TestPlainReadingAgreesWithJSON(t *testing.T) {
	plain := 0
	for _, form := range eventForms {
		if checkPlainAgrees(t, []byte(form.body)) {
			plain++
		}
	}
	assert.Greater(t, plain, 2, "the forms exercise readPlain")
	assert.True(t, checkPlainAgrees(t, []byte(eventBody(testHeadA, "s", "start_conversation", "2026-08-31 06:56:30"))),
		"the usual form of an event is read plainly")
}

// checkPlainAgrees reports whether readPlain read the body.
func checkPlainAgrees(t *testing.T, body []byte) bool {
	t.Helper()
	var plain, full wireEvent
	if !plain.readPlain(body) {
		return false
	}
	require.NoError(t, json.Unmarshal(body, &full), "%q", body)
	require.Equal(t, full, plain, "%q", body)
	return true
}

func TestEventTimeForms(t *testing.T) {
	want := time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC)
	for _, row := range []struct {
		name, text string
		want       time.Time
	}{
		{"RFC 3339", "2026-08-31T06:56:30Z", want},
		{"with an offset", "2026-08-31T08:56:30+02:00", want},
		{"with a fraction", "2026-08-31T06:56:30.125Z", want.Add(125 * time.Millisecond)},
		{"with a space", "2026-08-31 06:56:30Z", want},
		{"with a space and an offset", "2026-08-31 01:56:30-05:00", want},
		{"without a zone", "2026-08-31T06:56:30", want},
		{"as the service sends it", "2026-08-31 06:56:30", want},
		{"as the service sends it, with a fraction", "2026-08-31 06:56:30.5", want.Add(500 * time.Millisecond)},
		{"empty", "", time.Time{}},
		{"a date", "2026-08-31", time.Time{}},
		{"the 30th of February", "2026-02-30 06:56:30", time.Time{}},
		{"words", "yesterday, at about noon", time.Time{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := Must(ParseEvent([]byte(eventBody(testHeadA, "s", "start_conversation", row.text))))(t)
			assert.True(t, row.want.Equal(e.Timestamp.Time), "got %v, want %v", e.Timestamp, row.want)
			assert.Equal(t, row.text, e.Timestamp.Text)
		})
	}
}

func TestEventTypesAreReadInLowerCase(t *testing.T) {
	for sent, want := range map[string]EventType{
		"start_conversation":   EventStartConversation,
		"END_CONVERSATION":     EventEndConversation,
		"Inactivity_Warning":   EventInactivityWarning,
		"TIMEOUT_conversation": EventTimeoutConversation,
		"HEAD_REPAINTED":       "head_repainted",
	} {
		e := Must(ParseEvent([]byte(eventBody(testHeadA, "s", sent, ""))))(t)
		assert.Equal(t, want, e.Type)
	}
}

func TestEventKeyIsTheSameForEveryDelivery(t *testing.T) {
	one := Must(ParseEvent([]byte(eventBody(testHeadA, "s", "start_conversation", "2026-08-31 06:56:30"))))(t)
	other := Must(ParseEvent([]byte(`{"event_type":"START_CONVERSATION","session_id":"s","timestamp":"2026-08-31 06:56:30","head_id":"` + testHeadA + `","attempt":2}`)))(t)
	assert.Equal(t, one.Key(), other.Key())
	assert.Regexp(t, "^[0-9a-f]{64}$", one.Key())
	assert.Equal(t, one.Key(), (&Event{Type: "START_CONVERSATION", HeadID: testHeadA, SessionID: "s", Timestamp: Time{Text: "2026-08-31 06:56:30"}}).Key())
}

func TestEventKeyDiffersBetweenEvents(t *testing.T) {
	events := []Event{
		{HeadID: "head", SessionID: "session", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "head2", SessionID: "session", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "head", SessionID: "session2", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "head", SessionID: "session", Type: "type2", Timestamp: Time{Text: "time"}},
		{HeadID: "head", SessionID: "session", Type: "type", Timestamp: Time{Text: "time2"}},
		{HeadID: "heads", SessionID: "ession", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "head\x07session", SessionID: "", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "", SessionID: "headsession", Type: "type", Timestamp: Time{Text: "time"}},
		{HeadID: "head", SessionID: "session", Type: "", Timestamp: Time{Text: "typetime"}},
		{HeadID: strings.Repeat("h", 300), SessionID: "session", Type: "type", Timestamp: Time{Text: "time"}},
	}
	seen := map[string]int{}
	for i, e := range events {
		if other, ok := seen[e.Key()]; ok {
			t.Errorf("events %d and %d have one key", other, i)
		}
		seen[e.Key()] = i
	}
}

// inexactIDs are texts in JSON that package json reads as U+FFFD, each another text.
var inexactIDs = []string{
	"\xff\xfe", "\xfe\xff", "\xff\\n\xfe", "\xff\xfe\ufffd", "\ufffd\xff\xfe", "\ufffd\ufffd",
	`\ud800`, `\ud801`, `\udc00`, `\udc00\ud800`, `\ud800\ud800`, `\ud800x`, "\xed\xa0\x80\xff", "\xc3", "\xc3\x28",
}

// Package json reads all that is not UTF-8 as U+FFFD. Events of two sessions would
// have one key, and the second would never be handled.
func TestIDsThatAreNotUTF8EnterTheKeyAsBytes(t *testing.T) {
	for _, field := range []string{"session_id", "head_id", "event_type"} {
		seen := map[string]string{}
		for _, id := range inexactIDs {
			other := map[string]string{"session_id": "s", "head_id": testHeadA, "event_type": "x"}
			other[field] = id
			body := fmt.Sprintf(`{"timestamp":"2026-08-31 06:56:30","session_id":"%s","head_id":"%s","event_type":"%s"}`,
				other["session_id"], other["head_id"], other["event_type"])
			e, err := ParseEvent([]byte(body))
			require.NoError(t, err, "%q", id)
			if before, ok := seen[e.Key()]; ok {
				t.Errorf("%s: %q and %q have one key", field, before, id)
			}
			seen[e.Key()] = id
			again := Must(ParseEvent([]byte(strings.Replace(body, "{", `{ "attempt":2,`, 1))))(t)
			assert.Equal(t, e.Key(), again.Key(), "the key is that of every delivery")
			assert.True(t, utf8.ValidString(e.SessionID+e.HeadID+string(e.Type)), "the fields are texts")
		}
	}
}

// U+FFFD itself is UTF-8. However it is written, such an event keeps its key.
func TestReplacementCharacterKeepsItsKey(t *testing.T) {
	want := (&Event{Type: "é\ufffd", HeadID: "h\ufffd", SessionID: "a\ufffd\n🙂", Timestamp: Time{Text: "2026-08-31 06:56:30"}}).Key()
	assert.Equal(t, "8225633f70aae3bed59be71891c979b00c26b1803a8927e7df0d113e24c47696", want, "stores keep keys across releases")
	for _, body := range []string{
		"{\"event_type\":\"\u00c9\ufffd\",\"head_id\":\"h\ufffd\",\"session_id\":\"a\ufffd\\n\U0001f642\",\"timestamp\":\"2026-08-31 06:56:30\"}",
		`{"event_type":"\u00e9\uFFFD","head_id":"h\ufffd","session_id":"a\ufffd\n\ud83d\ude42","timestamp":"2026-08-31 06:56:30"}`,
	} {
		e := Must(ParseEvent([]byte(body)))(t)
		assert.Equal(t, want, e.Key(), body)
		e.SessionID = "another"
		assert.NotEqual(t, want, e.Key(), "a field that the program has changed is taken as it is")
	}
}

// Such events differ in nothing but the body, and a redelivery has the same body.
func TestKeyOfAnEventWithoutAReadableTimeIncludesItsBody(t *testing.T) {
	for name, timestamp := range map[string]string{
		"absent": ``, "null": `"timestamp":null,`, "empty": `"timestamp":"",`, "words": `"timestamp":"about noon",`, "a number": `"timestamp":1788159390,`,
	} {
		t.Run(name, func(t *testing.T) {
			keys := map[string]bool{}
			for n := range 3 {
				body := []byte(fmt.Sprintf(`{%s"event_type":"x","head_id":"%s","session_id":"s","n":%d}`, timestamp, testHeadA, n))
				first := Must(ParseEvent(body))(t)
				again := Must(ParseEvent(body))(t)
				assert.Equal(t, first.Key(), again.Key())
				keys[first.Key()] = true
			}
			assert.Len(t, keys, 3)
		})
	}
}

// Stores keep keys across releases.
func TestEventKeyNeverChanges(t *testing.T) {
	e := Event{HeadID: testHeadA, SessionID: "session", Type: EventEndConversation, Timestamp: Time{Text: "2026-08-31 06:56:30"}}
	assert.Equal(t, "3c74710be56221af3cd215aa98e9b329900f36abc89a51d2f55663266f8be461", e.Key())
	e.Timestamp.Text, e.Raw = "yesterday", NewRaw([]byte(`{"event_type":"end_conversation"}`))
	assert.Equal(t, "59ab186e8bf596abb8fb3553649e4363deeb02cf40fd2af1156e801e71c975a0", e.Key(), "with its body")
}

func TestPrintedEventNamesItsHeadAndSession(t *testing.T) {
	e := Must(ParseEvent([]byte(`{"event_type":"x","head_id":"` + testHeadA + `","session_id":"s","timestamp":"2026-08-31 06:56:30","text":"what the user said"}`)))(t)
	assert.Equal(t, "x at 2026-08-31 06:56:30, head "+testHeadA+", session s", fmt.Sprint(e))
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("event", "pointer", e, "value", *e)
	assert.Equal(t, 2, strings.Count(out.String(), "session s"))
}
