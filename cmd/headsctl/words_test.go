package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goName matches what a program in Go would call.
const goName = `\b(Heads|Webhooks|ConversationSettings|Client|HeadUpdate|fleet)\.[A-Z]|\bWith[A-Z]|\bAllow[A-Z]|RemoveDuplicates|PathEscape|Query\b|Voice\(|specs\[`

func TestRemediesAreCommands(t *testing.T) {
	t.Parallel()
	id := func(n string) string { return strings.Replace(someID, "0b9d6c1a", n, 1) }
	hook := func(head string) object {
		return object{"headId": id(head), "webhookUrl": "https://a.example.com/x", "endConversation": true}
	}
	c := emulator(t, object{
		"visuals": []object{{"id": "11111111-0000-4000-8000-000000000000", "mode": "default"}, {"id": "22222222-0000-4000-8000-000000000000"}},
		"heads": []object{
			{"id": id("00000001"), "enableEvents": true, "publicUrl": "nowhere"},
			{"id": id("00000002"), "headVisualId": "22222222-0000-4000-8000-000000000000", "operationMode": "ttt"},
			{"id": id("00000003"), "headVisualId": "11111111-0000-4000-8000-000000000000", "ttsProvider": "polly", "ttsVoice": "x", "splitter": true, "videoStreaming": true},
			{"id": id("00000004"), "publicUrl": "https://stream.example.test/MyOrg-1/li-28379?api_key=0123"},
		},
		"registrations": []object{hook("00000002"), hook("00000002")},
		"tools":         []object{{"headId": id("00000003"), "name": "order", "description": "x", "url": "https://a.example.com/order", "parameters": object{}}},
	}).with("HEADS_STREAM_URL=https://stream.example.test")
	all := []string{id("00000001"), id("00000002"), id("00000003"), id("00000004")}
	doctor := c.run(append([]string{"doctor"}, all...)...).stdout
	for _, remedy := range []string{
		"Register one with headsctl webhooks ensure " + id("00000001") + " --url URL --event EVENT.",
		"Turn delivery on with headsctl delivery on " + id("00000002") + ".",
		"Delete webhook 2 with headsctl webhooks delete.",
		"Switch streaming on again with headsctl call PUT /head/" + id("00000003") + "/video-streaming --query videoStreaming=true, which turns the splitter off.",
		"Correct it with headsctl tools put " + id("00000003") + " -f TOOL.yaml, or remove it with headsctl tools remove " + id("00000003") + " NAME.",
		"if it stays so, put its path below the base URL of its mode.",
	} {
		assert.Contains(t, doctor, "→ ")
		assert.Contains(t, doctor, remedy)
	}
	c.write("tool.yaml", toolFile)
	c.write("about.txt", "About.")
	c.write("bad.yaml", "heads:\n  - {id: "+id("00000001")+", set: {nam: x, splitter: true}, voice: {provider: azure}}\n")
	outputs := []string{doctor}
	for _, args := range [][]string{
		append([]string{"convert", "--dry-run"}, all...),
		append([]string{"doctor", "-o", "json"}, all...),
		{"tools", "check", id("00000003")},
		{"tools", "put", id("00000002"), "-f", "tool.yaml"},
		{"plan", "-f", "bad.yaml"},
		{"call", "GET", "/a b"}, {"call", "GET", "/a?b=c"}, {"call", "GET", "/a", "--data", "{}"},
	} {
		r := c.run(args...)
		assert.NotZero(t, r.code, "%v", args)
		outputs = append(outputs, r.stdout+r.stderr)
	}
	none := newTerminal(t)
	outputs = append(outputs, none.at("http://a.example.com", "token").run("get", someID).stderr, none.at("https://a.example.com", " ").run("get", someID).stderr)
	m := c.mcp()
	for _, head := range all {
		text, _ := m.call("heads_examine", object{"id": head})
		checked, _ := m.call("tools_check", object{"id": head})
		outputs = append(outputs, text, checked)
	}
	for _, text := range outputs {
		require.NotEmpty(t, text)
		assert.NotRegexp(t, goName, text)
	}
	assert.Equal(t, "its mode is not known; look at the head where it was created",
		plainError(errors.New("heads: Heads.ConvertToLegacy: its mode is not known; SetVideoStreaming lets the service decide")))
}
