package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// world is a staging and a production with the same heads, and somebody at a terminal
// with the tokens of both.
type world struct {
	*terminal

	staging, production *terminal
	requests            atomic.Int64 // of both
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	w := &world{terminal: newTerminal(t)}
	seed := func(digit string) object {
		s := legacyHeads(n)
		for _, h := range s["heads"].([]object) {
			h["id"] = digit + h["id"].(string)[1:]
		}
		return s
	}
	counted := func(rw http.ResponseWriter, r *http.Request, service http.Handler) {
		w.requests.Add(1)
		service.ServeHTTP(rw, r)
	}
	w.staging, w.production = emulator(t, seed("a")).behind(counted), emulator(t, seed("b")).behind(counted)
	w.env = append(w.env, "HEADS_STAGING_TOKEN="+w.staging.token, "HEADS_PROD_TOKEN="+w.production.token, "PROD_URL="+w.production.url,
		"HEADS_BASE_URL=http://127.0.0.1:1", "HEADS_TOKEN=of-nobody-here") // no environment names them
	return w
}

// environments is the part of a file that describes both.
func (w *world) environments() string {
	return `environments:
  staging: {base_url: "` + w.staging.url + `", token: {env: HEADS_STAGING_TOKEN}, chat_url: "https://chat.example.test", stream_url: "https://stream.staging.example.com", values: {app: "https://staging.example.com", greeting: Hi}}
  production:
    base_url: {env: PROD_URL}
    token: {env: HEADS_PROD_TOKEN}
    chat_url: https://chat.example.test
    stream_url: https://stream.example.com
    values: {app: "https://app.example.com", greeting: Welcome}
    protect: true
`
}

// file writes a heads.yaml for both.
func (w *world) file() string {
	text := w.environments() + "defaults:\n  set: {greetings: \"${greeting} from ${env}, it costs $${5}\"}\nheads:\n"
	for i := range w.staging.ids {
		text += fmt.Sprintf(`  - id: {staging: %s, production: %s}
    label: Head %d
    set: {promptConfig: {system_prompt: {file: "prompts/${env}.txt"}}}
    webhooks: [{url: "${app}/heads/events", events: [start_conversation]}]
`, w.staging.ids[i], w.production.ids[i], i+1)
	}
	w.write("prompts/staging.txt", "You are a test of ${app}.\n")
	w.write("prompts/production.txt", "You are real.\n")
	w.write("heads.yaml", text)
	return text
}

// silent requires that nothing is sent meanwhile.
func (w *world) silent(f func()) {
	w.t.Helper()
	before := w.requests.Load()
	f()
	assert.Equal(w.t, before, w.requests.Load(), "nothing is sent")
}

func (w *world) head(c *terminal, i int) object {
	w.t.Helper()
	return parse[object](w.t, c.ok("get", c.ids[i], "-o", "json"))
}

func (w *world) hooks(c *terminal, i int) string {
	w.t.Helper()
	return c.ok("webhooks", "list", c.ids[i], "-o", "json", "--show-secrets")
}
