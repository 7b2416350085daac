package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

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
	out, w := io.Pipe()
	go func() { _ = w.CloseWithError(run(ctx, w, nil)) }()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "until interrupted") {
	}
	require.NoError(t, lines.Err())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, out)
		ended <- err
	}()
	call, err := srv.CallTool(ctx, headID, "get_weather", map[string]any{"city": "Lisbon"})
	require.NoError(t, err)
	assert.Equal(t, "Sunny in Lisbon today, 22 degrees.", call.Message)
	interrupt()
	require.NoError(t, <-ended)
}
