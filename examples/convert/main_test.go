package main

import (
	"context"
	"net/http"
	"regexp"
	"slices"
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

func TestDemosShowThePlanTheStepsAndWhatToChange(t *testing.T) {
	flaky := []string{"done check", "done voice", "waiting enable", "waiting enable", "waiting enable", "failed enable"}
	for args, row := range map[string]struct {
		err   error
		text  string // of the error
		marks []string
		says  []string
	}{
		"": {nil, "", append(planned, "done check", "done voice", "done enable", "done address"), []string{"No HEADS_BASE_URL is set",
			"Plan for head ", "Joanna of polly becomes pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5 of elevenlabs (recommended for streaming)", "Converting, run 1:",
			"The access URL has changed:", "old: https://chat.", "api_key=[redacted]", "new: https://stream.", "api_key=[redacted]", "-show-key",
			"Embedded integrations must use the new one:", "iframe", "Content-Security-Policy", "kiosks", "QR codes", "monitoring"}},
		"-dry-run": {nil, "", planned, []string{"Plan for head", "Nothing was changed, because of -dry-run."}},
		"-demo flaky": {nil, "", slices.Concat(planned, flaky, []string{"rolled back voice", "done check", "done voice", "done enable", "done address"}),
			[]string{"Converting, run 1:", "503 Service Unavailable: the renderer is being restarted (4 attempts)", "the head has its old voice again", "Converting, run 2:", "The access URL has changed:"}},
		"-demo flaky -no-rollback": {nil, "", slices.Concat(planned, flaky, []string{"done check", "skipped voice", "done enable", "done address"}), nil},
		"-demo two_loops":          {nil, "was not changed", planned, []string{"Plan for head", "What blocks the switch:", `is in mode "two_loops"`, "a new head must be created"}},
		"-demo bad-provider": {nil, "was not changed", []string{"to do check", "to skip voice", "to do enable", "to do address"},
			[]string{"Plan for head", "What blocks the switch:", `provider "polly" is not known to stream`}},
		"-demo bad-provider -any-provider -provider acme -voice loud": {heads.ErrUnprocessable, "", append(planned, "done check", "done voice", "failed enable", "rolled back voice"), nil},

		"-to-legacy":                 {nil, "", []string{"done check", "done disable", "done address"}, []string{"old: https://stream.", "new: https://chat."}},
		"-to-legacy -demo two_loops": {heads.ErrVisualMode, "", []string{"failed check"}, nil},
		"-to-legacy -demo flaky":     {heads.ErrServer, "", []string{"done check", "failed disable"}, nil},

		"-demo none":          {nil, "there are default, two_loops, bad-provider or flaky", nil, nil},
		"-dry-run -to-legacy": {nil, "-dry-run is not for -to-legacy", nil, nil},
		"-voice rachel":       {nil, "both are needed", nil, nil},
	} {
		t.Run(args, func(t *testing.T) {
			out, err := demoOutput(t, strings.Fields(args)...)
			if row.text != "" {
				require.ErrorContains(t, err, row.text)
			} else {
				require.ErrorIs(t, err, row.err)
			}
			assert.Equal(t, row.marks, marks(out))
			assertInOrder(t, out, row.says...)
			if len(row.marks) == len(planned) {
				assert.NotContains(t, out, "Converting")
			}
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
