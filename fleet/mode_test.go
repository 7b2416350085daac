package fleet_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hideSwitches makes the service show a head as it is now, until the returned function is called.
func hideSwitches(t *testing.T, e *headstest.Emulator, id string) (show func()) {
	return e.Inject(headstest.Fault{Method: http.MethodGet, Route: "/head/" + id, Body: string(get(t, e, id).Raw.Bytes())})
}

func TestSwitchesThatAreNotSeenStopTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		specs := converting(e, 3)
		for _, spec := range specs {
			hideSwitches(t, e, spec.ID)
		}
		report, err := fleet.Apply(t.Context(), e.Client(), specs, fleet.Options{Concurrency: 1, StopAfter: 2, Convert: heads.ConvertOptions{ConfirmTimeout: time.Second}})
		require.ErrorIs(t, err, fleet.ErrStopped)
		assert.Equal(t, []fleet.Outcome{"failed", "failed", "skipped"}, outcomesOf(report))
	})
}

func TestAnAcceptedSwitchIsNeverSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		id, path := e.AddHead(headstest.Head{}), journalPath(t)
		show := hideSwitches(t, e, id)
		noted := false
		run := func() fleet.Result {
			j, err := fleet.OpenJournal(path) // as a new process does
			require.NoError(t, err)
			defer j.Close()
			o := fleet.Options{Journal: j, Convert: heads.ConvertOptions{ConfirmTimeout: 3 * time.Second}, OnStep: func(_ string, step heads.ConversionStep) {
				noted = noted || step.Waiting && strings.Contains(readFile(t, path), `"accepted":true`)
			}}
			report := apply(t, e, o, fleet.Spec{ID: id, Streaming: on()})
			if r := report.Results[0]; r.Outcome != fleet.OutcomeFailed {
				assert.Len(t, report.Moves(), 1)
			}
			return report.Results[0]
		}
		switches := func() int { return len(writes(since(e, 0))) }
		for range 2 {
			result := run()
			assert.Equal(t, heads.ReasonUnknownOutcome, result.Reason, "%v", result.Err)
			assert.Equal(t, 1, switches())
		}
		assert.True(t, noted, "on disk while the head is awaited")

		time.AfterFunc(time.Second, show)
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

func TestASwitchThatTheServiceDidNotAcceptIsSentAgain(t *testing.T) {
	for reason, fault := range map[heads.Reason]headstest.Fault{
		heads.ReasonUnknownOutcome: {Method: http.MethodPut, Status: 200, Body: "<html>We are back soon</html>"},
		heads.ReasonRefused:        {Method: http.MethodPut, Status: 409},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEmulator(t)
			o := fleet.Options{Journal: openJournal(t, journalPath(t)), Convert: heads.ConvertOptions{ConfirmTimeout: 3 * time.Second}}
			spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
			remove := e.Inject(fault)
			result := apply(t, e, o, spec).Results[0]
			assert.Equal(t, []any{fleet.OutcomeFailed, reason}, []any{result.Outcome, result.Reason}, "%v", result.Err)
			remove()
			assert.Equal(t, fleet.OutcomeChanged, apply(t, e, o, spec).Results[0].Outcome)
		})
	}
}
