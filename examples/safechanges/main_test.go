package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSafeChangesTellsTheWholeStory(t *testing.T) {
	t.Setenv("HEADS_BASE_URL", "http://127.0.0.1:1") // it must be ignored
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, nil))
	rest := out.String()
	for _, want := range []string{
		"1. Change a greeting",
		"   GET /head/HEAD\n",
		`   PUT /head/update {"id":"HEAD","greetings":"Welcome back!","phrases":["hello","goodbye"]}` + "\n",
		"2. Change what an update can't change",
		"Heads.Modify: videoStreaming ", "use Heads.SetVideoStreaming",
		"Heads.Modify: ttsDisplayName ", "it is read-only",
		"   GET /head/HEAD\n\n3. GET, edit, PUT",
		"PUT /head/update with 18 fields and the id: name, alias, ",
		`The head is called "Grace" now, and still greets with "Welcome back!".`,
		"4. Register a webhook at every start",
		"The first start:",
		"PUT /head/HEAD/enable-events?enableEvents=true\n   GET /head-events?headId=HEAD\n   POST /head-events {",
		"Webhook 1, whose events are signed with [redacted].",
		"The second start:",
		"PUT /head/HEAD/enable-events?enableEvents=true\n   GET /head-events?headId=HEAD\n   Webhook 1, ",
		"registrations:\n   webhook 1: https://app.example.com/events receives [start_conversation end_conversation]\n\n",
		"5. Register one",
		"POST /head-events {", "(answer lost)\n   GET /head-events?headId=HEAD\n   Webhook 2, ",
		"registrations:\n   webhook 1: https://app.example.com/events",
		"\n   webhook 2: https://backup.example.com/events receives [start_conversation end_conversation]\n",
	} {
		_, after, found := strings.Cut(rest, want)
		require.True(t, found, "in order, %q in\n%s", want, rest)
		rest = after
	}
	assert.Empty(t, rest)
	assert.Equal(t, 2, strings.Count(out.String(), "POST "), "one create a registration")
}

func TestSafeChangesSendsTheGreetingThatIsGiven(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, []string{"-greeting", "Good evening."}))
	assert.Contains(t, out.String(), `"greetings":"Good evening."`)
	assert.Contains(t, out.String(), `still greets with "Good evening."`)
}

func TestSafeChangesReturnsWhatGoesWrong(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(context.Background(), &out, []string{"-no-such-flag"}), "no-such-flag")
	assert.NotContains(t, out.String(), "emulator")

	out.Reset()
	require.ErrorContains(t, run(context.Background(), &out, []string{"-greeting", "string"}), "placeholder")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, run(ctx, &out, nil), context.Canceled)
}
