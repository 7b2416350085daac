package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSetChangesTheGivenFieldsOnly(t *testing.T) {
	c := demo(t)
	c.write("prompt.txt", "Be brief.\nBe kind.\n")
	set := append([]string{"set", c.ids[0]}, `greetings=Hi "you"`, `phrases:=["a","b"]`, "promptConfig.system_prompt=@prompt.txt", "semanticThreshold:=0.5", "ttsVoice=en-US-other")
	want := []string{
		"  ~ greetings: Welcome! I am the Lobby. → Hi \"you\"", `  ~ phrases: [] → ["a","b"]`, "  ~ semanticThreshold: 0.75 → 0.5",
		"  ~ promptConfig.system_prompt: You are the Lobby. Answer in one sentence. → Be brief. Be kind.", "  ~ voice: azure/en-US-plain → azure/en-US-other",
	}
	assert.ElementsMatch(t, want, lines(c.ok(append(set, "--dry-run")...)))
	assert.ElementsMatch(t, want, lines(c.ok(set...)))
	assert.Equal(t, "unchanged\n", c.ok(set...))
	assert.Equal(t, "Be brief.\nBe kind.", c.head(c.ids[0])["promptConfig"].(object)["system_prompt"], "without the newline at the end")
	assert.Equal(t, "Lobby", c.head(c.ids[0])["name"])
	c.fails(1, "404", "set", someID, "name=x")
}
