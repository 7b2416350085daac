package heads

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/goldens"
	"github.com/headsapi/heads-go/internal/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The requests as they are on the socket. HOST and VERSION stand for what differs
// from run to run and from release to release.
func TestGoldenRequests(t *testing.T) {
	sent := map[string]string{}
	for _, op := range operations() {
		server := serveWire(t, http.StatusOK, op.answer)
		client := Must(New(server.url+prefix, pathToken, WithHTTPClient(&http.Client{Transport: server.transport})))(t)
		require.NoError(t, op.run(t.Context(), client), op.name)
		request := strings.NewReplacer(server.addr, "HOST", "heads-go/"+Version, "heads-go/VERSION").Replace((<-server.requests).bytes)
		assert.Empty(t, server.requests, "one call is one request")
		name := op.operation()
		if sent[name] != "" {
			request = "\n\n" + request // the next form of the same operation
		}
		sent[name] += request
	}
	require.ElementsMatch(t, declaredOperations(t), slices.Collect(maps.Keys(sent)))
	var files []string
	for name, text := range sent {
		goldens.Compare(t, "requests/"+name+".txt", text+"\n")
		files = append(files, name+".txt")
	}
	goldens.Only(t, "requests", files...)
}

// How often a request is sent, by fault and method, and how long its retries wait at
// most.
func TestGoldenRetries(t *testing.T) {
	policy := DefaultRetryPolicy()
	var text strings.Builder
	for _, row := range requestFaults {
		fmt.Fprintf(&text, "%s:", row.name)
		for _, call := range calls {
			server := row.server(t)
			attempts := 0
			client := newTestClient(t, server.url+prefix, server.transport, WithRetryPolicy(RetryPolicy{MaxRetries: policy.MaxRetries}),
				WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { attempts++ }}))
			require.Error(t, call.run(t.Context(), client))
			if server.unreachable {
				assert.Zero(t, server.seen.Load(), "requests that the service saw")
				assert.EqualValues(t, attempts, server.dials.Load(), "connections tried")
			} else {
				assert.EqualValues(t, attempts, server.seen.Load(), "requests that the service saw")
			}
			fmt.Fprintf(&text, " %s %d", call.method, attempts)
		}
		text.WriteByte('\n')
	}
	text.WriteString("longest waits:")
	for retry := range policy.MaxRetries {
		fmt.Fprintf(&text, " %v", transport.RetryPolicy(policy).Longest(retry))
	}
	goldens.Compare(t, "retries.txt", text.String()+"\n")
}

func TestGoldenDefaults(t *testing.T) {
	cfg := Must(newConfig(nil))(t)
	events := Must(NewEventHandler(SharedKeys("k"), func(context.Context, *Event) error { return nil }))(t)
	tools := Must(NewToolHandler("https://tools.example.com"))(t)
	goldens.Defaults(t, map[string]any{
		"client: retries": cfg.retry.MaxRetries,
		"client: longest wait before the first retry":        cfg.retry.MinWait,
		"client: longest wait before any retry":              cfg.retry.MaxWait,
		"client: timeout of an attempt":                      defaultAttemptTimeout,
		"client: attempts a second (0: no limit)":            cfg.rateLimit,
		"client: bytes of an answer":                         transport.MaxAnswer,
		"client: bytes of Error.Body":                        maxErrorBody,
		"client: levels of an error answer that are read":    maxErrorDepth,
		"client: bytes of DecodeError.Body":                  maxDecodeBody,
		"client: bytes of a token":                           check.MaxToken,
		"client: providers that stream":                      slices.Sorted(maps.Keys(cfg.streamingProvider)),
		"client: plain http to other machines":               cfg.insecureHTTP,
		"conversion: ConfirmTimeout":                         defaultConfirmTimeout,
		"conversion: SettleTimeout":                          defaultSettleTimeout,
		"conversion: first wait before reading again":        firstReadWait,
		"conversion: longest wait before reading again":      maxReadWait,
		"conversion: timeout of a read":                      maxReadTime,
		"conversion: least time of the last read":            lastReadTime,
		"conversion: lost reads in a row":                    lostReads,
		"events: bytes of a body":                            maxEventBody,
		"events: time for a body":                            events.bodyTimeout,
		"events: oldest":                                     events.maxAge,
		"events: furthest in the future":                     events.futureSkew,
		"events: timeout of the function":                    events.timeout,
		"events: lease of a claim":                           events.lease(),
		"events: margin of a lease":                          leaseMargin,
		"events: margin of the memory":                       memoryMargin,
		"events: time for a claim":                           claimTime,
		"events: time for the answer":                        answerTime,
		"events: timeout of a call of the deduplicator":      storeTimeout,
		"events: grace of a call of the deduplicator":        storeGrace,
		"events: first wait before the deduplicator again":   minStoreWait,
		"events: longest wait before the deduplicator again": maxStoreWait,
		"events: keys that the deduplicator remembers":       events.dedup.(*MemoryDeduplicator).size,
		"events: keys of NewMemoryDeduplicator(0)":           NewMemoryDeduplicator(0).size,
		"tools: bytes of a call":                             maxToolBody,
		"tools: time for a body":                             toolBodyTimeout,
		"tools: timeout of the function":                     tools.server.timeout,
		"tools: characters of a reply":                       tools.server.replyLimit,
		"tools: calls at once":                               cap(tools.server.running),
		"tools: least characters of a path token":            check.MinPathToken,
	})
}
