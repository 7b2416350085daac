package headstest

import (
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	c := newConfig(nil)
	goldens.Defaults(t, map[string]any{
		"answers: style":                          c.responses,
		"answers: wait":                           c.latency,
		"answers: limited to so many a second":    c.rateLimit != nil,
		"requests: bytes of a body":               maxBody,
		"webhooks: plain http to loopback":        c.loopbackHTTP,
		"webhooks: registered before enabled":     !c.strictOrder,
		"heads: legacy access URLs":               c.chatURL,
		"heads: streaming access URLs":            c.streamURL,
		"heads: publicUrl follows the mode":       !c.staleAddresses,
		"heads: providers that stream":            c.providers,
		"heads: voices of these that do not":      c.mutedVoices,
		"deliveries: timeout":                     c.deliveryTimeout,
		"deliveries: waits before the next":       c.retrySchedule,
		"deliveries: events that wait":            c.backlog,
		"deliveries: encoding of the signature":   c.encoding,
		"deliveries: form of a time":              c.timestampLayout,
		"deliveries: bytes of a reply":            maxReply,
		"tool calls: timeout":                     c.toolTimeout,
		"tool calls: bytes of a reply":            maxToolReply,
		"journal: entries of each kind":           c.journalSize,
		"journal: bytes of the bodies":            journalBytes,
		"journal: least length of a hidden token": minToken,
		"console":                          c.console,
		"control API: bytes of a body":     maxControlBody,
		"control API: longest wait":        maxWait,
		"control API: sessions":            maxSessions,
		"control API: entries of a batch":  maxBatch,
		"control API: pause of its stream": streamPause,
		"control API: pause in a flood":    floodPause,
	})
}
