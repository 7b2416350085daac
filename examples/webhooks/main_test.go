package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// start runs the program and returns what it writes, and its error at the end.
func start(ctx context.Context) io.Reader {
	out, w := io.Pipe()
	go func() { _ = w.CloseWithError(run(ctx, w, nil)) }()
	return out
}

func TestDemoReceivesTheEventsOfASession(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "")
	out, err := io.ReadAll(start(context.Background()))
	require.NoError(t, err)
	text := string(out)
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
	var text strings.Builder
	lines := bufio.NewScanner(io.TeeReader(start(ctx), &text))
	wait := func(text string) {
		for lines.Scan() && !strings.Contains(lines.Text(), text) {
		}
		require.NoError(t, lines.Err())
	}
	wait("until interrupted")
	require.NoError(t, srv.StartSession(headID).UserMessage("Hello"))
	wait(string(heads.EventStartConversation))
	interrupt()
	wait("\n") // which no line has: until the end
	assert.NotContains(t, text.String(), srv.Token)
}
