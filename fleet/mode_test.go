package fleet_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowToShow is a service that hides switches until hiding is set to false.
type slowToShow struct {
	http.RoundTripper
	hiding atomic.Bool
}

func (s *slowToShow) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err != nil || !s.hiding.Load() || r.Method != http.MethodGet {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	body = bytes.ReplaceAll(body, []byte(`"videoStreaming":true`), []byte(`"videoStreaming":false`))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, err
}

// newSlowToShow returns a service that hides switches, and a client of it.
func newSlowToShow(t *testing.T, e *headstest.Emulator) (*slowToShow, *heads.Client) {
	t.Helper()
	service := &slowToShow{RoundTripper: e.Transport()}
	service.hiding.Store(true)
	client, err := heads.New("https://api.example.com", e.BearerToken(), heads.WithHTTPClient(&http.Client{Transport: service}))
	require.NoError(t, err)
	return service, client
}

func TestSwitchesThatAreNotSeenStopTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		_, client := newSlowToShow(t, e)
		report, err := fleet.Apply(t.Context(), client, converting(e, 3), fleet.Options{Concurrency: 1, StopAfter: 2, Convert: heads.ConvertOptions{ConfirmTimeout: time.Second}})
		require.ErrorIs(t, err, fleet.ErrStopped)
		assert.Equal(t, []fleet.Outcome{"failed", "failed", "skipped"}, outcomesOf(report))
	})
}

func TestAnAcceptedSwitchIsNeverSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		service, client := newSlowToShow(t, e)
		id, path := e.AddHead(headstest.Head{}), journalPath(t)
		noted := false
		run := func() fleet.Result {
			j, err := fleet.OpenJournal(path) // as a new process does
			require.NoError(t, err)
			defer j.Close()
			o := fleet.Options{Journal: j, Convert: heads.ConvertOptions{ConfirmTimeout: 3 * time.Second}, OnStep: func(_ string, step heads.ConversionStep) {
				noted = noted || step.Waiting && strings.Contains(readFile(t, path), `"accepted":true`)
			}}
			report, err := fleet.Apply(t.Context(), client, []fleet.Spec{{ID: id, Streaming: on()}}, o)
			require.NoError(t, err)
			if r := report.Results[0]; r.Outcome != fleet.OutcomeFailed {
				assert.Len(t, report.Moves(), 1)
			}
			return report.Results[0]
		}
		switches := func() (n int) {
			for _, r := range since(e, 0) {
				if strings.Contains(r, "/video-streaming") {
					n++
				}
			}
			return n
		}
		for range 2 {
			result := run()
			assert.Equal(t, heads.ReasonUnknownOutcome, result.Reason, "%v", result.Err)
			assert.Equal(t, 1, switches())
		}
		assert.True(t, noted, "on disk while the head is awaited")

		time.AfterFunc(time.Second, func() { service.hiding.Store(false) })
		assert.Equal(t, fleet.OutcomeChanged, run().Outcome, "it shows up while it is awaited")
		assert.Equal(t, fleet.OutcomeUnchanged, run().Outcome)
		assert.Equal(t, 1, switches())

		require.NoError(t, e.EnableSplitter(id)) // switches the head back
		assert.Equal(t, fleet.OutcomeChanged, run().Outcome)
		assert.Equal(t, 2, switches(), "what was seen in the new mode, and went back, is switched anew")
	})
}

func TestASwitchBackEndsTheWaitForAnAcceptedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		id, path := e.AddHead(headstest.Head{}), journalPath(t)
		record := `{"head_id":"` + id + `","streaming":true,"old":{"base":"https://a","org_public_id":"o","head_public_id":"h"},"accepted":true}` + "\n"
		back := strings.Replace(strings.Replace(record, `"streaming":true`, `"streaming":false`, 1), `,"accepted":true`, "", 1)
		require.NoError(t, os.WriteFile(path, []byte(fleet.JournalHeaderFormat1+record+back), 0o600))
		o := fleet.Options{Journal: openJournal(t, path), Convert: heads.ConvertOptions{ConfirmTimeout: 3 * time.Second}}
		report := apply(t, e, o, fleet.Spec{ID: id, Streaming: on()})
		assert.Equal(t, fleet.OutcomeChanged, report.Results[0].Outcome, "%v", report.Results[0].Err)
	})
}

func TestASwitchThatAProxyAnsweredIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		o := fleet.Options{Journal: openJournal(t, journalPath(t)), Convert: heads.ConvertOptions{ConfirmTimeout: 3 * time.Second}}
		spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
		remove := e.Inject(headstest.Fault{Method: http.MethodPut, Status: 200, Body: "<html>We are back soon</html>"})
		result := apply(t, e, o, spec).Results[0]
		assert.Equal(t, heads.ReasonUnknownOutcome, result.Reason, "%v", result.Err)
		remove()
		assert.Equal(t, fleet.OutcomeChanged, apply(t, e, o, spec).Results[0].Outcome)
	})
}

func TestARefusedSwitchIsSentAgain(t *testing.T) {
	e := newEmulator(t)
	j := openJournal(t, journalPath(t))
	spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
	remove := e.Inject(headstest.Fault{Method: http.MethodPut, Status: 409})
	assert.Equal(t, fleet.OutcomeFailed, apply(t, e, fleet.Options{Journal: j}, spec).Results[0].Outcome)
	remove()
	assert.Equal(t, fleet.OutcomeChanged, apply(t, e, fleet.Options{Journal: j}, spec).Results[0].Outcome)
}
