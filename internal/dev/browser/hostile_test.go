package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whatever anyone sends is shown as text, everywhere.
func TestHostileTextStaysText(t *testing.T) {
	const script = `<script>window.hacked=1</script>`
	const evil = script + `<img src=x onerror="window.hacked=1"><a href="javascript:window.hacked=1">` + "${window.hacked=1}"
	hook := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("X-Signature-256") != "" {
			w.WriteHeader(500)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"message": evil})
	})
	seed := map[string]any{
		"visuals": []any{map[string]any{"id": "v", "mode": "default"}},
		"heads": []any{map[string]any{
			"id": bea, "name": evil, "operationMode": "oc", "enableEvents": true, "greetings": evil, "ttsVoice": evil, "phrases": []string{evil}, "alias": evil,
			"fileUrl": "javascript:window.hacked=1", "headVisualVideoUrl": "data:text/html," + evil, "publicUrl": "javascript:window.hacked=1",
			"customWords": map[string]string{evil: evil}, "extra": map[string]any{evil: evil}, "publicId": evil,
		}},
		"tools": []any{map[string]any{
			"headId": bea, "name": evil, "description": evil, "url": hook,
			"parameters": []any{map[string]string{"name": evil, "type": evil, "description": evil}},
		}},
		"registrations": []any{map[string]any{"headId": bea, "webhookUrl": hook, "startConversation": true}},
	}
	p := start(t, "-retry", "none", "-seed-file", seedFile(t, asJSON(t, seed)))
	b := open(t, p.at("heads/"+bea+"/conversation?session="+strings.ReplaceAll(script, "<", "%3C")))
	calm := func(shows ...string) {
		for _, text := range append(shows, script) {
			b.until(text, func() bool { return strings.Contains(eval[string](b, shown), text) })
		}
		assert.Equal(t, "undefined", eval[string](b, "typeof window.hacked"))
		assert.Equal(t, 0, eval[int](b, `document.querySelectorAll("#app script, #app img, a[href^='javascript:'], a[href^='data:']").length`))
	}
	calm("There is no session “<script>")
	b.goTo("heads/" + bea + "/conversation")
	b.say(evil)
	b.get("list", "Transcript").shows("✕ webhook 1: 500")
	b.get("combobox", "As the model").choose(evil)
	b.press("Call tool")
	b.get("list", "Transcript").shows("✓ " + script)
	calm()
	for _, mark := range []string{"message", "tool call", "attempt"} {
		b.region("Timeline").beginning("button", mark).click()
		b.count(".panel", 1)
		calm()
		b.press("Close")
	}
	p.call("PUT", "/head/update", `{"id":"`+bea+`","greetings":"<script>window.hacked=2</script>","publicId":"`+script+`"}`)
	for place, says := range map[string]string{
		"configuration": "Text that the head greets with.", "deliveries?open=d1": "signature right", "deliveries?event=" + script: "", "tools": "Call tool",
		"requests?open=r1": "Changes of the head", "faults": "Armed",
	} {
		b.goTo("heads/" + bea + "/" + place)
		calm(says)
	}
	b.goTo("heads/" + bea + "/configuration")
	b.get("textbox", "greetings")
	b.script(`document.querySelectorAll("summary").forEach((s) => s.click())`)
	b.get("textbox", "JSON").fill(`{"greetings":5,"` + script + `":"string"}`)
	b.press("Send")
	b.get("alert", "").shows("<script>")
	calm("data:text/html")
	b.get("searchbox", "Search heads").fill(script)
	p.control("POST", "faults/requests", `{"status":500,"body":"`+script+`"}`)
	b.goTo("faults")
	b.region("Armed").shows("Answer every request with 500 and with another body.")
	b.goTo(script)
	calm("There is nothing at")
}

// shown has the text of the page with that of its fields.
const shown = `document.body.innerText + [...document.querySelectorAll("input, textarea")].map((i) => i.value).join(" ")`

func TestRevealIsTheOnlyWayToAKey(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.at("heads/"+ada+"/configuration"))
	b.get("button", "Reveal")
	found, err := b.query(0, "button", "Reveal")
	assert.NoError(t, err)
	assert.Len(t, found, 1, "one at a time")
	for _, place := range []string{"conversation", "configuration", "deliveries", "tools", "requests", "faults"} {
		b.part(strings.ToUpper(place[:1]) + place[1:])
		text := eval[string](b, "document.documentElement.outerHTML") + eval[string](b, shown)
		assert.NotContains(t, text, "api_key=", place)
		assert.NotContains(t, text, "canary", place)
		assert.NotContains(t, text, p.Token, place)
	}
	b.part("Configuration")
	b.press("Reveal")
	b.main("api_key=")
}
