package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// demoOutput runs the program on its emulator, in a synctest bubble.
func demoOutput(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	t.Setenv("HEADS_BASE_URL", "")
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		err = run(t.Context(), &b, args)
		out = b.String()
	})
	return out, err
}

// assertInOrder asserts that the output contains the texts in this order.
func assertInOrder(t *testing.T, out string, texts ...string) {
	t.Helper()
	rest := out
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !assert.True(t, found, "%q is not in its place in:\n%s", text, out) {
			return
		}
		rest = after
	}
}

// marks returns the marks of an output and their steps, in order.
func marks(out string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^  \[([a-z ]+)\] +([a-z]+) `).FindAllStringSubmatch(out, -1) {
		found = append(found, m[1]+" "+m[2])
	}
	return found
}

var planned = []string{"to do check", "to do voice", "to do enable", "to do address"}

func TestDefaultDemoShowsPlanStepsAndWhatToChange(t *testing.T) {
	out, err := demoOutput(t)
	require.NoError(t, err)
	assert.Equal(t, append(planned, "done check", "done voice", "done enable", "done address"), marks(out))
	assertInOrder(t, out,
		"No HEADS_BASE_URL is set",
		"Plan for head ", "Joanna of polly becomes pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5 of elevenlabs (recommended for streaming)",
		"Converting, run 1:",
		"The access URL has changed:", "old: https://chat.", "api_key=[redacted]", "new: https://stream.", "api_key=[redacted]", "-show-key",
		"Embedded integrations must use the new one:", "iframe", "Content-Security-Policy", "kiosks", "QR codes", "monitoring",
	)
}

func TestDryRunStopsAfterThePlan(t *testing.T) {
	out, err := demoOutput(t, "-dry-run")
	require.NoError(t, err)
	assert.Equal(t, planned, marks(out))
	assertInOrder(t, out, "Plan for head", "Nothing was changed, because of -dry-run.")
	assert.NotContains(t, out, "Converting")
}

func TestFlakyDemoRollsBackAndSucceedsAtTheSecondRun(t *testing.T) {
	out, err := demoOutput(t, "-demo", "flaky")
	require.NoError(t, err)
	assert.Equal(t, append(planned,
		"done check", "done voice", "waiting enable", "waiting enable", "waiting enable", "failed enable", "rolled back voice",
		"done check", "done voice", "done enable", "done address"), marks(out))
	assertInOrder(t, out, "Converting, run 1:", "503 Service Unavailable: the renderer is being restarted (4 attempts)",
		"the head has its old voice again", "Converting, run 2:", "The access URL has changed:")
}

func TestWithoutRollbackTheSecondRunFindsTheVoiceSet(t *testing.T) {
	out, err := demoOutput(t, "-demo", "flaky", "-no-rollback")
	require.NoError(t, err)
	assert.Equal(t, append(planned,
		"done check", "done voice", "waiting enable", "waiting enable", "waiting enable", "failed enable",
		"done check", "skipped voice", "done enable", "done address"), marks(out))
}

func TestBlockedDemosSayWhatIsInTheWay(t *testing.T) {
	tests := []struct {
		demo string
		says []string
	}{
		{"two_loops", []string{`is in mode "two_loops"`, "a new head must be created"}},
		{"bad-provider", []string{`provider "polly" is not known to stream`}},
	}
	for _, tt := range tests {
		t.Run(tt.demo, func(t *testing.T) {
			out, err := demoOutput(t, "-demo", tt.demo)
			require.ErrorContains(t, err, "was not changed")
			assertInOrder(t, out, append([]string{"Plan for head", "What blocks the switch:"}, tt.says...)...)
			assert.NotContains(t, out, "Converting")
		})
	}
}

func TestProviderThatTheServiceRefusesIsRolledBack(t *testing.T) {
	out, err := demoOutput(t, "-demo", "bad-provider", "-any-provider", "-provider", "acme", "-voice", "loud")
	require.ErrorIs(t, err, heads.ErrUnprocessable)
	assert.Equal(t, []string{"failed enable", "rolled back voice"}, marks(out)[len(planned)+2:])
}

func TestWayBackToLegacy(t *testing.T) {
	out, err := demoOutput(t, "-to-legacy")
	require.NoError(t, err)
	assert.Equal(t, []string{"done check", "done disable", "done address"}, marks(out))
	assertInOrder(t, out, "old: https://stream.", "new: https://chat.")

	out, err = demoOutput(t, "-to-legacy", "-demo", "two_loops")
	require.ErrorIs(t, err, heads.ErrVisualMode)
	assert.Equal(t, []string{"failed check"}, marks(out))

	out, err = demoOutput(t, "-to-legacy", "-demo", "flaky")
	require.ErrorIs(t, err, heads.ErrServer)
	assert.Equal(t, []string{"done check", "failed disable"}, marks(out))
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"demo", []string{"-demo", "none"}, "there are default, two_loops, bad-provider or flaky"},
		{"dry run of ConvertToLegacy", []string{"-dry-run", "-to-legacy"}, "-dry-run is not for -to-legacy"},
		{"voice without provider", []string{"-voice", "rachel"}, "both are needed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := demoOutput(t, tt.args...)
			assert.ErrorContains(t, err, tt.says)
		})
	}
}

// serviceOutput runs the program on a service.
func serviceOutput(t *testing.T, srv *headstest.Server, args ...string) (string, error) {
	t.Helper()
	t.Setenv("HEADS_BASE_URL", srv.URL)
	t.Setenv("HEADS_TOKEN", srv.Token)
	var out strings.Builder
	err := run(context.Background(), &out, args)
	assert.NotContains(t, out.String(), srv.Token)
	return out.String(), err
}

func TestServiceIsUsedWhereOneIsSet(t *testing.T) {
	srv := headstest.NewServer()
	defer srv.Close()
	const key = "canary0123456789"
	id := srv.AddHead(headstest.Head{Fields: map[string]any{"publicUrl": "https://chat.example.test/MyOrg-1/li-1?api_key=" + key, "publicId": "li-1", "orgPublicId": "MyOrg-1"}})

	out, err := serviceOutput(t, srv, "-head", id, "-dry-run")
	require.NoError(t, err)
	assert.NotContains(t, out, key)
	for _, r := range srv.Requests() {
		assert.Equal(t, http.MethodGet, r.Method)
	}

	out, err = serviceOutput(t, srv, "-head", id, "-show-key")
	require.NoError(t, err)
	assert.Equal(t, []string{"done check", "skipped voice", "done enable", "done address"}, marks(out)[len(planned):])
	assertInOrder(t, out, "old: https://chat.example.test/MyOrg-1/li-1?api_key="+key, "new: https://stream.example.test/MyOrg-1/li-1?api_key="+key)

	t.Setenv("HEADS_HEAD_ID", id)
	out, err = serviceOutput(t, srv)
	require.NoError(t, err)
	assert.Equal(t, []string{"done check", "skipped voice", "skipped enable", "skipped address"}, marks(out)[len(planned):])
	assertInOrder(t, out, "Nothing had to be changed.", "https://stream.example.test/MyOrg-1/li-1?api_key=[redacted]")

	_, err = serviceOutput(t, srv, "-head", "li-1")
	assert.ErrorContains(t, err, "is a public id")
}

func TestAddressThatIsNotKnownIsToldBesideTheConversion(t *testing.T) {
	srv := headstest.NewServer(headstest.WithStaleAddresses())
	defer srv.Close()
	out, err := serviceOutput(t, srv, "-head", srv.AddHead(headstest.Head{}))
	require.ErrorContains(t, err, "HEADS_STREAM_URL")
	assert.Equal(t, []string{"done check", "skipped voice", "done enable", "failed address"}, marks(out)[len(planned):])
	assertInOrder(t, out, "its new access URL is not known", "The old one no longer works: https://chat.example.test/")
}

func TestRollbackThatFailsIsShown(t *testing.T) {
	srv := headstest.NewServer()
	defer srv.Close()
	id := srv.AddHead(headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna"})
	srv.Inject(headstest.Fault{Method: http.MethodPut, Route: "/head/{headId}/video-streaming", Status: http.StatusConflict, After: true})
	out, err := serviceOutput(t, srv, "-head", id, "-provider", "azure", "-voice", "loud")
	require.ErrorIs(t, err, heads.ErrConflict)
	assert.Equal(t, []string{"done check", "done voice", "failed enable", "not rolled back voice"}, marks(out)[len(planned):])
}
