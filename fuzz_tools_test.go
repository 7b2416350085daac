package heads_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzToolBody checks that every body is answered with one line of valid JSON, and
// that the status is 200 unless the body is too large.
func FuzzToolBody(f *testing.F) {
	for _, name := range []string{"call_flat.json", "call_parameters.json", "call_arguments.json"} {
		f.Add([]byte(toolDocument(f, name)))
	}
	h := newToolHandler(f)
	addTool[toolKinds](f, h, "all_kinds")
	addTool[struct {
		Kinds *toolKinds        `json:"kinds" jsonschema:"All of them"`
		Wait  time.Duration     `json:"wait,omitempty" jsonschema:"How long"`
		Maybe map[string]string `json:"maybe,omitempty" jsonschema:"Maybe"`
	}](f, h, "nested")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/all_kinds", "/nested"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
			if len(body) > 64<<10 {
				if rec.Code != http.StatusRequestEntityTooLarge {
					t.Fatalf("status %d for %d bytes", rec.Code, len(body))
				}
				continue
			}
			message := toolReply(t, rec)
			if !utf8.Valid(rec.Body.Bytes()) || bytes.ContainsAny(rec.Body.Bytes(), "\r\n") {
				t.Fatalf("reply %q", rec.Body.Bytes())
			}
			if message == toolFailed {
				t.Fatal("a panic or an unnamed error")
			}
		}
	})
}
