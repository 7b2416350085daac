package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestDemoReceivesTheEventsOfASession(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "")
	out := newOutput()
	require.NoError(t, run(context.Background(), out, nil))
	text := out.text()
	for _, event := range []string{"start_conversation", "inactivity_warning", "timeout_conversation", "end_conversation"} {
		assert.Contains(t, text, ": "+event+"\n")
		assert.Contains(t, text, "Delivered "+event+", attempt 1: answered 200")
	}
	assert.Contains(t, text, "shared key [redacted]")
	assert.True(t, strings.HasSuffix(text, "Shut down; no delivery was cut off.\n"))
}

func TestServesUntilInterrupted(t *testing.T) {
	srv := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{})
	t.Setenv("HEADS_BASE_URL", srv.URL)
	t.Setenv("HEADS_TOKEN", srv.Token)
	t.Setenv("HEADS_HEAD_ID", headID)

	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out := newOutput()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, nil) }()
	out.wait(t, "until interrupted")

	require.NoError(t, srv.StartSession(headID).UserMessage("Hello"))
	out.wait(t, string(heads.EventStartConversation))
	interrupt()
	require.NoError(t, <-ended)
	assert.NotContains(t, out.text(), srv.Token)
}

// output is a buffer. A test can wait until it contains a text.
type output struct {
	lines chan string
	seen  chan string // has everything written so far
}

func newOutput() *output {
	o := &output{seen: make(chan string, 1), lines: make(chan string, 1000)}
	o.seen <- ""
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.seen <- <-o.seen + string(p)
	o.lines <- string(p)
	return len(p), nil
}

func (o *output) text() string {
	text := <-o.seen
	o.seen <- text
	return text
}

func (o *output) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !strings.Contains(o.text(), text) {
		select {
		case <-o.lines:
		case <-limit:
			t.Fatalf("%q was not written", text)
		}
	}
}
