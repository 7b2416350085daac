package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

// assertInOrder asserts that an output contains the texts in this order.
func assertInOrder(t *testing.T, out string, texts ...string) {
	t.Helper()
	rest := out
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		require.True(t, found, "in order, %q in\n%s", text, out)
		rest = after
	}
}

func TestQuickstartTellsTheWholeStory(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "")
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, nil))
	assertInOrder(t, out.String(),
		`Head "Ada" greets with "Hello." and speaks with voice Joanna of polly.`,
		`mode "default", so it can stream; it is in legacy mode now.`,
		"Sent greetings, ttsProvider, ttsVoice, and nothing else.",
		`It now greets with "Welcome! Shall we begin?"`,
		"old: https://chat.", "new: https://stream.", "api_key=[redacted]",
		"shared key [redacted]", "/events receives [start_conversation end_conversation]",
		"tool opening_hours",
		"event start_conversation at ",
		`tool call opening_hours, answered with "On Monday the museum is open from 9 to 17."`,
		"event end_conversation at ",
		"What to do next:",
	)
	assert.Equal(t, 2, strings.Count(out.String(), "its signature verified"))
	assert.Less(t, strings.Count(out.String(), "\n"), 35, "it fits a screen")
}

func TestReadmeShowsWhatQuickstartPrints(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "$ go run ./examples/quickstart\n")
	require.True(t, found)
	shown, _, _ := strings.Cut(after, "```")
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, nil))
	var parts []string
	for line := range strings.Lines(shown) {
		parts = append(parts, strings.Split(strings.TrimSpace(line), "…")...)
	}
	assertInOrder(t, out.String(), parts...)
}

// newService returns a service that the environment names.
func newService(t *testing.T) *headstest.Server {
	srv := headstest.NewServer()
	t.Cleanup(srv.Close)
	t.Setenv("HEADS_BASE_URL", srv.URL)
	t.Setenv("HEADS_TOKEN", srv.Token)
	return srv
}

func TestQuickstartWorksOnTheHeadOfTheEnvironment(t *testing.T) {
	srv := newService(t)
	t.Setenv("HEADS_HEAD_ID", srv.AddHead(headstest.Head{Name: "Cleo"}))
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, nil))
	assert.Contains(t, out.String(), `Head "Cleo"`)
	out.Reset()
	require.NoError(t, run(context.Background(), &out, []string{"-head", srv.AddHead(headstest.Head{Name: "Bea"})}))
	assert.Contains(t, out.String(), `Head "Bea"`, "the flag comes first")
}

func TestQuickstartNumbersNoStepThatSaysNothing(t *testing.T) {
	newService(t)
	var out strings.Builder
	require.Error(t, run(context.Background(), &out, []string{"-head", "22222222-2222-4222-8222-222222222222"}))
	assert.Equal(t, "Working on the service at HEADS_BASE_URL.\n", out.String())
	require.ErrorContains(t, run(context.Background(), &out, []string{"-head", "li-28379"}), "is a public id")
}

func TestQuickstartOnlyReadsAServiceUnlessToldToWrite(t *testing.T) {
	srv := newService(t)
	id := srv.AddHead(headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna", OperationMode: "oc"})
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, []string{"-head", id}))
	for _, r := range srv.Requests() {
		assert.Equal(t, http.MethodGet, r.Method)
	}
	assert.Contains(t, out.String(), "again with -write")

	require.NoError(t, run(context.Background(), &out, []string{"-head", id, "-write"}))
	assert.Contains(t, out.String(), "Switched the head to streaming.")
	assert.Contains(t, out.String(), "No -webhook URL given")
	assert.NotContains(t, out.String(), srv.Token)

	args := []string{"-head", id, "-write", "-webhook", "https://app.example.com/events", "-tool", "https://app.example.com/tools"}
	for range 2 {
		out.Reset()
		require.NoError(t, run(context.Background(), &out, args))
		assert.Contains(t, out.String(), "The head streams already. Its access URL stays https://stream.")
		assert.Equal(t, 1, strings.Count(out.String(), "   webhook "), "it may run again")
		assert.Equal(t, 1, strings.Count(out.String(), "   tool "), "it may run again")
	}
}

func TestQuickstartShowsTheConsole(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "")
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out, w := io.Pipe()
	go func() { _ = w.CloseWithError(run(ctx, w, []string{"-console"})) }()
	var text []string
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "until you press Ctrl-C") {
		text = append(text, lines.Text())
	}
	require.Greater(t, len(text), 1, "%v", lines.Err())
	address := regexp.MustCompile(`^The console is at (http://127\.0\.0\.1:\S+)`).FindStringSubmatch(text[1])
	require.Len(t, address, 2, "before all else: %s", text[1])
	resp, err := http.Get(address[1] + "deliveries")
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	interrupt()
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
}
