package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	ada = "11111111-1111-4111-8111-111111111111"
	bea = "22222222-2222-4222-8222-222222222222"
)

// seedFile writes a seed.
func seedFile(t testing.TB, seed string) string {
	name := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(name, []byte(seed), 0o600))
	return name
}

func asJSON(t testing.TB, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// scene has two heads. The first has a tool and a receiver.
func scene(t testing.TB, address string) string { return seedFile(t, scenery(address)) }

func scenery(address string) string {
	return fmt.Sprintf(`{
		"visuals": [{"id": "expressive", "mode": "two_loops"}],
		"heads": [
			{"id": %q, "name": "Ada", "operationMode": "oc", "greetings": "Hello.", "voiceflowApiKey": "canary"},
			{"id": %q, "name": "Bea", "headVisualId": "expressive"}],
		"tools": [{"headId": %[1]q, "name": "opening_hours", "description": "Tells the hours.", "url": %[3]q,
			"parameters": [{"name": "day", "type": "string", "description": "Day of the week."}, {"name": "count", "type": "number"}]}],
		"registrations": [{"headId": %[1]q, "webhookUrl": %[3]q, "startConversation": true, "endConversation": true,
			"timeoutConversation": true, "inactivityWarning": true}]}`, ada, bea, address)
}

// names are those of the heads of a large emulator.
var names = strings.Fields("Museum Library Clinic Bakery Station Airport Theatre School Garden Harbour")

// crowd is the scene with more heads.
func crowd(t testing.TB, address string, heads int) string {
	var seed map[string]any
	require.NoError(t, json.Unmarshal([]byte(scenery(address)), &seed))
	list := seed["heads"].([]any)
	for n := len(list); n < heads; n++ {
		list = append(list, map[string]any{
			"id": fmt.Sprintf("33333333-3333-4333-8333-%012d", n), "name": fmt.Sprintf("%s %d", names[n%len(names)], n/len(names)+1),
			"enableEvents": n%3 == 0, "ttsProvider": []string{"azure", "elevenlabs"}[n%2],
		})
	}
	seed["heads"] = list
	return seedFile(t, asJSON(t, seed))
}

// talk starts the emulator and plays a session of Ada with redeliveries and a tool call. The
// receiver answers the first attempts with the statuses.
func talk(t testing.TB, heads int, statuses []int, args ...string) *program {
	hook := receiver(t, statuses...)
	p := start(t, append(args, "-seed-file", crowd(t, hook, heads))...)
	p.call("PUT", "/head/"+ada+"/enable-events?enableEvents=true", "")
	p.call("DELETE", "/head-events/1", "") // made before delivery was enabled
	p.call("POST", "/head-events", `{"headId":"`+ada+`","webhookUrl":"`+hook+`","startConversation":true,"endConversation":true}`)
	p.call("PUT", "/head/"+ada+"/video-streaming?videoStreaming=true", "")
	p.call("PUT", "/head/update", `{"id":"`+ada+`","greetings":"Welcome to the museum!","publicId":"li-1"}`)
	session := p.session(ada)
	p.control("POST", "sessions/"+session+"/message", `{"text":"When are you open?"}`)
	p.control("GET", "deliveries?wait=30s&final=true", "")
	p.control("POST", "sessions/"+session+"/tool-calls", `{"tool":"opening_hours","arguments":{"day":"Monday"}}`)
	p.control("POST", "sessions/"+session+"/message", `{"text":"Thank you."}`)
	p.control("POST", "sessions/"+session+"/close", "")
	p.control("GET", "deliveries?wait=30s&event=end_conversation", "")
	return p
}

func (p *program) session(head string) string {
	var s struct{ ID string }
	require.NoError(p.t, json.Unmarshal([]byte(p.control("POST", "sessions", `{"headId":"`+head+`"}`)), &s))
	return s.ID
}

// idle plays events of a visitor who does nothing.
func (p *program) idle(session string, events int) {
	for range events {
		p.control("POST", "sessions/"+session+"/inactive", "")
	}
}

// at returns the address of a part of the console.
func (p *program) at(place string) string { return p.ConsoleURL + "#/" + place }
