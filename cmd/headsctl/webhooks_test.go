package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWebhooksAreEnsuredListedAndDeleted(t *testing.T) {
	c := demo(t)
	const url = "https://a.example.com/hooks/0123456789abcdef0123"
	id := c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "start_conversation", "--event", "end_conversation")
	assert.Regexp(t, `^[0-9]+\n$`, id)
	assert.Equal(t, id, c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "end_conversation"))
	assert.Regexp(t, `^[0-9]+ \S{16,}\n$`, c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "end_conversation", "--show-secrets"))
	assert.Contains(t, c.ok("webhooks", "list", c.ids[0]), "end_conversation  https://a.example.com/hooks/[redacted]")
	list := parse[[]object](t, c.ok("webhooks", "list", c.ids[0], "-o", "json"))
	require.Len(t, list, 1)
	assert.Equal(t, "[redacted]", list[0]["sharedKey"])
	assert.Equal(t, url, c.hooks(c.ids[0])[0]["webhookUrl"])
	assert.Equal(t, "[]\n", c.ok("webhooks", "list", c.ids[1], "-o", "json"), "never null")
	id = strings.TrimSpace(id)
	assert.Empty(t, c.run("webhooks", "list", c.ids[0]).stderr)
	c.ok("delivery", "off", c.ids[0])
	assert.Equal(t, "delivery is off, so no webhook receives an event; turn it on with: headsctl delivery on "+c.ids[0]+"\n", c.run("webhooks", "list", c.ids[0], "-o", "json").stderr)
	assert.Equal(t, "deleted "+id+"\n", c.ok("webhooks", "delete", id))
	c.fails(1, "404", "webhooks", "delete", id)
}

func TestDeliveryIsTurnedOnAndOff(t *testing.T) {
	c := demo(t)
	assert.Equal(t, "on "+c.ids[0]+"\non "+c.ids[1]+"\n", c.ok("delivery", "on", c.ids[0], c.ids[1]))
	assert.Contains(t, c.ok("get", c.ids[1]), "DELIVERY        on")
	c.ok("delivery", "off", c.ids[1])
	assert.Contains(t, c.ok("get", c.ids[1]), "DELIVERY        off")
	assert.Equal(t, "on "+c.ids[2]+"\n", c.fails(1, "404", "delivery", "on", someID, c.ids[2]).stdout, "the others are done")
}
