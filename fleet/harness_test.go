package fleet_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

const streamingVoice = "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"

func on() *bool  { v := true; return &v }
func off() *bool { v := false; return &v }

// newEmulator returns an emulator that is closed at the end of the test.
func newEmulator(t testing.TB, opts ...headstest.Option) *headstest.Emulator {
	e := headstest.NewEmulator(append([]headstest.Option{headstest.WithSeed(1), headstest.WithJournalSize(1 << 17)}, opts...)...)
	t.Cleanup(e.Close)
	return e
}

// withHead returns an emulator with one head.
func withHead(t testing.TB, head headstest.Head) (e *headstest.Emulator, id string) {
	e = newEmulator(t)
	return e, e.AddHead(head)
}

// apply runs Apply and requires that it is not cut short.
func apply(t testing.TB, e *headstest.Emulator, o fleet.Options, specs ...fleet.Spec) *fleet.Report {
	t.Helper()
	report := need(fleet.Apply(context.Background(), e.Client(), specs, o))(t)
	require.Len(t, report.Results, len(specs))
	return report
}

// since returns the requests after the first n, as "METHOD path?query".
func since(e *headstest.Emulator, n int) []string {
	var texts []string
	for _, r := range e.Requests()[n:] {
		text := r.Method + " " + r.Path
		if r.Query != "" {
			text += "?" + r.Query
		}
		texts = append(texts, text)
	}
	return texts
}

// writes returns the requests other than GET.
func writes(requests []string) []string {
	var all []string
	for _, r := range requests {
		if !strings.HasPrefix(r, http.MethodGet+" ") {
			all = append(all, r)
		}
	}
	return all
}

func get(t testing.TB, e *headstest.Emulator, id string) *heads.Head {
	t.Helper()
	head := need(e.Client().Heads.Get(context.Background(), id))(t)
	return head
}

func outcomesOf(r *fleet.Report) []fleet.Outcome {
	var all []fleet.Outcome
	for _, result := range r.Results {
		all = append(all, result.Outcome)
	}
	return all
}

// need returns what a function has returned, if it was no error.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
