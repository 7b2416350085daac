package heads

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// No answer of the service or of a proxy may cause a panic or break a promise of
// the library. The seeds are in testdata/fuzz.

func FuzzErrorBody(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fuzzClient(t, http.StatusBadRequest, body)
		_, err := client.Heads.Get(t.Context(), testHead)
		e, ok := err.(*Error) //nolint:errorlint // not wrapped
		if !ok || e.StatusCode != http.StatusBadRequest {
			t.Fatalf("%T %v", err, err)
		}
		if strings.Contains(err.Error(), "secret-token") || strings.ContainsAny(e.Message, "\r\n") || utf8.RuneCountInString(e.Message) > maxMessage {
			t.Fatalf("message %q", e.Message)
		}
	})
}

// FuzzAnswers reads one document as an answer of every kind.
func FuzzAnswers(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fuzzClient(t, http.StatusOK, body)
		head, err := client.Heads.Get(t.Context(), testHead)
		if err == nil {
			if string(head.Raw.Bytes()) != string(body) {
				t.Fatal("Raw is not what was received")
			}
			Must(diffHeads("DiffHeads", head, head))(t)
			Must(json.Marshal(head))(t)
			if u, err := HeadUpdateFromJSON(head.Raw.Bytes()); err == nil {
				_ = u.Validate()
			}
			_, _ = client.AccessURL(head)
		}
		_, _ = client.HeadVisuals.Get(t.Context(), "v")
		_, _ = client.Webhooks.List(t.Context(), testHead)
		_, _ = client.Webhooks.Get(t.Context(), 1)
		if hook, err := client.Webhooks.Create(t.Context(), WebhookSpec{HeadID: testHead, URL: "https://a.example", Events: []EventType{EventEndConversation}}); err == nil && hook.SharedKey.IsZero() {
			t.Fatal("a webhook without its key")
		}
		_, _ = HeadUpdateFromJSON(body)
	})
}

func FuzzSettings(f *testing.F) {
	f.Fuzz(func(t *testing.T, document []byte, key string) {
		var cs ConversationSettings
		if json.Unmarshal(document, &cs) != nil {
			return
		}
		cs.Tools = append(cs.Tools, Tool{Name: "added"})
		written := cs.document()
		if !json.Valid(written) {
			t.Fatalf("not JSON: %s", written)
		}
		var again ConversationSettings
		require.NoError(t, json.Unmarshal(written, &again))
		require.Len(t, again.Tools, len(cs.Tools))
		before, had := cs.Extra(key)
		after, has := again.Extra(key)
		if had != has || string(before.Bytes()) != string(after.Bytes()) {
			t.Fatalf("key %q: %s became %s", key, before, after)
		}
	})
}

func fuzzClient(t *testing.T, status int, body []byte) *Client {
	t.Helper()
	return Must(New(memoryURL, "secret-token", WithHTTPClient(&http.Client{Transport: newScript(answer(status, string(body)))})))(t)
}

// A header verifies only if it is the sum that package hmac computes, in one of
// the documented encodings.
func FuzzSignatureHeader(f *testing.F) {
	body := []byte(eventBody(testHeadA, "session", "start_conversation", "2026-08-31 06:56:30"))
	good := Sign(body, testKeyA)
	sum := Must(hex.DecodeString(good))(f)
	for _, seed := range []string{"", good, "sha256=" + good, strings.ToUpper(good), good[1:], good + good,
		base64.StdEncoding.EncodeToString(sum), base64.RawURLEncoding.EncodeToString(sum), "sha256=", "<SIGNATURE>"} {
		f.Add(seed, testKeyA)
	}
	f.Fuzz(func(t *testing.T, header, key string) {
		m := hmac.New(sha256.New, []byte(key))
		m.Write(body)
		want := m.Sum(nil)
		text := strings.TrimPrefix(header, "sha256=")
		matches := key != "" && (strings.EqualFold(text, hex.EncodeToString(want)) && len(text) == 64 ||
			text == base64.StdEncoding.EncodeToString(want) || text == base64.RawStdEncoding.EncodeToString(want) ||
			text == base64.URLEncoding.EncodeToString(want) || text == base64.RawURLEncoding.EncodeToString(want))
		if err := VerifySignature(body, header, key); (err == nil) != matches {
			t.Errorf("VerifySignature(%q, %q): %v, want a match: %v", header, key, err, matches)
		}
		if err := VerifySignature([]byte(header), Sign([]byte(header), key), key); (err == nil) != (key != "") {
			t.Errorf("the signature of %q with %q: %v", header, key, err)
		}
		if DiagnoseSignature(body, header, key) == "" {
			t.Error("no diagnosis")
		}
	})
}

// An event is read as package json alone reads it, or refused.
func FuzzParseEvent(f *testing.F) {
	for _, form := range eventForms {
		if len(form.body) < 1000 {
			f.Add([]byte(form.body))
		}
	}
	f.Add([]byte(eventBody(testHeadA, "session", "start_conversation", "2026-08-31 06:56:30")))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkPlainAgrees(t, body)
		e, err := ParseEvent(body)
		if err != nil {
			if e != nil {
				t.Error("an event and an error")
			}
			return
		}
		var loose struct {
			Timestamp    json.RawMessage `json:"timestamp"`
			HeadID       *string         `json:"head_id"`
			SessionID    textOrNumber    `json:"session_id"`
			PublicHeadID textOrNumber    `json:"public_head_id"`
			PublicOrgID  textOrNumber    `json:"public_org_id"`
			Type         *string         `json:"event_type"`
		}
		require.NoError(t, json.Unmarshal(body, &loose), "ParseEvent read what is not JSON")
		for name, pair := range map[string]struct {
			got  string
			want *string
		}{
			"head_id":        {e.HeadID, loose.HeadID},
			"session_id":     {e.SessionID, loose.SessionID.text},
			"public_head_id": {e.PublicHeadID, loose.PublicHeadID.text},
			"public_org_id":  {e.PublicOrgID, loose.PublicOrgID.text},
		} {
			if pair.want == nil && pair.got != "" || pair.want != nil && pair.got != *pair.want {
				t.Errorf("%s: got %q, want %v", name, pair.got, pair.want)
			}
		}
		if loose.Type == nil || string(e.Type) != strings.ToLower(*loose.Type) {
			t.Errorf("event_type: got %q", e.Type)
		}
		again, err := ParseEvent(e.Raw.Bytes())
		if err != nil || again.Key() != e.Key() {
			t.Errorf("the event's own body gives another key: %v", err)
		}
		if string(e.Raw.Bytes()) != string(body) {
			t.Error("Raw is not the body")
		}
		_ = e.String()
	})
}

// textOrNumber is a string, or a number as its text.
type textOrNumber struct{ text *string }

func (v *textOrNumber) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &v.text)
	}
	number := json.Number("")
	if err := json.Unmarshal(data, &number); err != nil || data[0] == 'n' {
		return err
	}
	text := number.String()
	v.text = &text
	return nil
}

// No time makes an event unreadable. A time that can be read is the one that was
// sent.
func FuzzEventTimestamp(f *testing.F) {
	for _, seed := range []string{"", "2026-08-31 06:56:30", "2026-08-31T06:56:30Z", "2026-08-31T06:56:30.125+02:00", "2026-08-31T06:56:30",
		"2026-02-30 06:56:30", "9999-12-31 23:59:60", "0000-01-01 00:00:00", "1788159390", "tomorrow"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := Must(json.Marshal(text))(t)
		e := Must(ParseEvent([]byte(`{"event_type":"x","timestamp":` + string(quoted) + `}`)))(t)
		if utf8.ValidString(text) && e.Timestamp.Text != text {
			t.Errorf("got %q, want %q", e.Timestamp.Text, text)
		}
		if e.Timestamp.IsZero() {
			return
		}
		iso := strings.Replace(e.Timestamp.Text, " ", "T", 1)
		parsed, err := time.Parse(time.RFC3339, iso)
		if err != nil {
			parsed, err = time.Parse("2006-01-02T15:04:05", iso)
		}
		if err != nil || !parsed.Equal(e.Timestamp.Time) {
			t.Errorf("%q was read as %v, want %v (%v)", text, e.Timestamp, parsed, err)
		}
	})
}

// Whatever body is signed with head B's key, no event of another head is handled,
// and the handler answers with one of its documented statuses.
func FuzzEventHandler(f *testing.F) {
	now := time.Now().UTC().Format(time.RFC3339)
	f.Add([]byte(eventBody(testHeadA, "s", "x", now)))
	f.Add([]byte(eventBody(testHeadB, "s", "x", now)))
	f.Add([]byte(`{"event_type":"x","head_id":"` + testHeadB + `","HEAD_ID":"` + testHeadA + `"}`))
	f.Add([]byte(`{"event_type":"x","head_id":"` + testHeadA + `","head\u005fid":"` + testHeadB + `"}`))
	f.Add([]byte(`{"event_type":"x","detail":{"head_id":"` + testHeadA + `"},"head_id":"` + testHeadB + `"}`))
	var handed *Event
	h := Must(NewEventHandler(HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}),
		func(_ context.Context, e *Event) error {
			handed = e
			return nil
		}, WithoutDeduplicator()))(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		handed = nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, signedEvent(string(body), testKeyB))
		switch w.Code {
		case http.StatusOK:
			if handed == nil || handed.HeadID != testHeadB {
				t.Errorf("answered 200 for %v", handed)
			}
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestEntityTooLarge:
			if handed != nil {
				t.Errorf("answered %d for an event that was handed on", w.Code)
			}
		default:
			t.Errorf("answered %d", w.Code)
		}
	})
}
