package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func TestDemoCallsTheTools(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "")
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, nil))
	for _, want := range []string{
		"Registered get_weather(city string, days integer)",
		"Registered order_status(order_number integer)",
		"told: Sunny in Lisbon today, 22 degrees.",
		"told: Sunny in Oslo in 2 days, 22 degrees.",
		"told: city is missing; ask the user for it",
		"told: The order left the warehouse this morning. (Asked in session ",
		"told: There is no order with that number",
		"told: The tool failed; tell the user",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "The prompt needs work")
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "told:") {
			assert.NotContains(t, line, "shop_rw", "the model must not be told")
		}
	}
}

func TestServesUntilInterrupted(t *testing.T) {
	srv := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{OperationMode: "oc"})
	t.Setenv("HEADS_BASE_URL", srv.URL)
	t.Setenv("HEADS_TOKEN", srv.Token)
	t.Setenv("HEADS_HEAD_ID", headID)

	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out := &lockedBuffer{written: make(chan struct{}, 100)}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, nil) }()
	out.wait(t, "until interrupted")

	call, err := srv.CallTool(ctx, headID, "get_weather", map[string]any{"city": "Lisbon"})
	require.NoError(t, err)
	assert.Equal(t, "Sunny in Lisbon today, 22 degrees.", call.Message)
	interrupt()
	require.NoError(t, <-ended)
}

// lockedBuffer is a buffer. A test can wait until it contains a text.
type lockedBuffer struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	written chan struct{}
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	select {
	case b.written <- struct{}{}:
	default:
	}
	return n, err
}

func (b *lockedBuffer) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		b.mu.Lock()
		found := strings.Contains(b.buf.String(), text)
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-b.written:
		case <-limit:
			t.Fatalf("%q was not written", text)
		}
	}
}
