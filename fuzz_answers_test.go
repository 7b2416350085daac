package heads

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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
			if _, err := diffHeads("DiffHeads", head, head); err != nil {
				t.Fatalf("a head differs from itself: %v", err)
			}
			if _, err := json.Marshal(head); err != nil {
				t.Fatal(err)
			}
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
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatal(err)
		}
		if len(again.Tools) != len(cs.Tools) {
			t.Fatalf("%d tools became %d", len(cs.Tools), len(again.Tools))
		}
		before, had := cs.Extra(key)
		after, has := again.Extra(key)
		if had != has || string(before.Bytes()) != string(after.Bytes()) {
			t.Fatalf("key %q: %s became %s", key, before, after)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if wait, ok := parseRetryAfter(value, now); wait < 0 || !ok && wait != 0 {
			t.Fatalf("%q: %v, %t", value, wait, ok)
		}
	})
}

func fuzzClient(t *testing.T, status int, body []byte) *Client {
	t.Helper()
	client, err := New(memoryURL, "secret-token", WithHTTPClient(&http.Client{Transport: newScript(func(r *http.Request) (*http.Response, error) {
		return answer(status, string(body))(r)
	})}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
