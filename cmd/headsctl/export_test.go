package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExportIsAppliedToBareHeads(t *testing.T) {
	c := demo(t)
	visuals := []object{{"id": "11111111-0000-4000-8000-000000000000", "mode": "default"}, {"id": "22222222-0000-4000-8000-000000000000", "mode": "two_loops"}}
	var bare []object
	for i, id := range c.ids {
		bare = append(bare, object{"id": id, "headVisualId": visuals[0]["id"]})
		if i >= 17 && i < 20 {
			bare[i]["headVisualId"] = visuals[1]["id"]
		}
	}
	c.ok("set", c.ids[0], "greetings=a: b # c\n  - d\n\tend ", "customWords:={\"file\":\"x.txt\",\"yes\":\"1e3\"}", "semanticThreshold:=1e-7",
		`pluginOperationalModeConfig:={"a":{"file":"x"},"b":[1,2.5,null,true,"null"]}`, "promptConfig.system_prompt=One\n\n  two\nthree\n")
	c.write("tool.yaml", toolFile, "about.txt", "Tells where an order is.\n")
	c.ok("tools", "put", c.ids[0], "-f", "tool.yaml")
	c.ok("webhooks", "ensure", c.ids[0], "--url", "https://a.example.com/0123456789abcdef0123?k=v", "--event", "end_conversation")
	r := c.ends(0, "export", "-f", "ids.csv")
	assert.Contains(t, r.stderr, c.ids[22], "the broken tool is left out")
	assert.Contains(t, r.stdout, "https://a.example.com/0123456789abcdef0123?k=v", "whole")
	assert.NotContains(t, r.stdout, "voiceflowApiKey")
	c.write("export.yaml", r.stdout)
	assert.Contains(t, c.ok("plan", "-f", "export.yaml"), "\n0 pending, 25 unchanged, 0 blocked, 0 failed, 0 skipped\n")
	fresh := emulator(t, object{"heads": bare, "visuals": visuals})
	fresh.write("export.yaml", r.stdout, "ids.csv", c.read("ids.csv"))
	fresh.ok("apply", "-f", "export.yaml", "--yes")
	assert.Equal(t, r.stdout, fresh.ok("export", "-f", "ids.csv"))
}

// The order of keys is that of the document, and so are the digits.
func TestExportKeepsTheOrderOfKeys(t *testing.T) {
	full := json.RawMessage(`{"id":"` + someID + `","operationMode":"oc","semanticThreshold":0.10000000000000000001,"customWords":{"zebra":"z","apple":"a","mango":"m"},` +
		`"pluginOperationalModeConfig":{"z":12345678901234567890,"a":{"x":1,"b":[{"k":9007199254740993,"c":0.10}]},"m":null}}`)
	tool := `{"conversationSettings":{"tools":[{"url":"https://a.example.com/t","x_more":{"z":1.10,"a":2},"name":"t","parameters":[{"type":"string","x_z":1,"name":"p","description":"P."}],"description":"D."}]}}`
	c := emulator(t, object{"heads": []json.RawMessage{full}})
	c.ok("call", "PUT", "/head/"+someID+"/conversation-settings", "--data", tool)
	exported := c.ok("export", someID)
	for _, keys := range []string{
		`zebra:.*apple:.*mango:`, `pluginOperationalModeConfig:.*z: 12345678901234567890.*x: 1.*b:.*k: 9007199254740993.*c: 0\.10.*m: null`,
		`url: https://a.example.com/t.*x_more:.*z: 1\.10.*name: t.*parameters:.*type: string.*x_z: 1.*name: p.*description: D\.`,
		`semanticThreshold: 0\.10000000000000000001`,
	} {
		assert.Regexp(t, "(?s)"+keys, exported)
	}
	fresh := emulator(t, object{"heads": []object{{"id": someID}}})
	fresh.write("export.yaml", exported, "near.yaml", strings.Replace(exported, "9007199254740993", "9007199254740992", 1))
	fresh.ok("apply", "-f", "export.yaml", "--yes")
	assert.Equal(t, exported, fresh.ok("export", someID))
	assert.Contains(t, fresh.ok("plan", "-f", "export.yaml"), "0 pending, 1 unchanged")
	assert.Contains(t, fresh.ok("plan", "-f", "near.yaml"), "~ pluginOperationalModeConfig: ")
}

func TestExportHoldsWhatApplyNeedsAndSaysSo(t *testing.T) {
	c := secretive(t)
	r := c.ends(0, "export", someID)
	for _, secret := range []string{accessKey, orgKey, pathToken, queryToken} {
		assert.Contains(t, r.stdout, secret)
		assert.NotContains(t, r.stderr, secret)
	}
	assert.Contains(t, r.stderr, "the file holds keys or tokens as they are, since apply needs them: keep it as you keep a password\n")
	c.write("heads.yaml", r.stdout)
	c.ok("plan", "-f", "heads.yaml", "--exit-code")
	plain := emulator(t, legacyHeads(1))
	assert.NotContains(t, plain.run("export", plain.ids[0]).stderr, "keys or tokens")
}
