package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
)

func converting(e *headstest.Emulator, n int) []fleet.Spec {
	var specs []fleet.Spec
	for range n {
		specs = append(specs, fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()})
	}
	return specs
}

func TestTheRunStopsAfterTemporaryFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			stopAfter, healthyAt int // healthyAt: the head that does not fail, -1 for none
			failed               int
		}{{0, -1, 10}, {3, -1, 3}, {3, 1, 4}, {-1, 0, 14}} {
			e := newEmulator(t)
			specs := converting(e, 15)
			for i, spec := range specs {
				if i != tt.healthyAt {
					e.Inject(headstest.Fault{Route: "/head/" + spec.ID, Status: 503})
				}
			}
			report, err := fleet.Apply(t.Context(), e.Client(), specs, fleet.Options{Concurrency: 1, StopAfter: tt.stopAfter})
			require.NotNil(t, report)
			assert.Equal(t, tt.failed, report.Count(fleet.OutcomeFailed), "%+v", tt)
			if tt.stopAfter < 0 {
				assert.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, fleet.ErrStopped)
			for _, r := range report.Results[len(report.Results)-3:] {
				assert.Equal(t, fleet.OutcomeSkipped, r.Outcome)
				assert.Zero(t, r.Started)
			}
		}
	})
}

func TestLastingFailuresDoNotStopTheRun(t *testing.T) {
	e := newEmulator(t)
	var specs []fleet.Spec
	for i := range 20 {
		specs = append(specs, fleet.Spec{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", i)})
	}
	report := apply(t, e, fleet.Options{StopAfter: 1}, specs...)
	assert.Equal(t, 20, report.Count(fleet.OutcomeFailed))
}

func TestStartedHeadsAreFinishedWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t, headstest.WithLatency(time.Second))
		specs := converting(e, 10)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel) // after the first reads and before the first switch
		began := time.Now()
		report, err := fleet.Apply(ctx, e.Client(), specs, fleet.Options{Concurrency: 2, Convert: heads.ConvertOptions{SettleTimeout: 20 * time.Second}})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 2, report.Count(fleet.OutcomeChanged), "%v", report)
		assert.Equal(t, 8, report.Count(fleet.OutcomeSkipped))
		assert.Less(t, time.Since(began), 10*time.Second)
	})
}

func TestAHeadThatHangsIsGivenUpWithinSettleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		specs := converting(e, 1)
		e.Inject(headstest.Fault{Method: http.MethodPut, Latency: time.Hour})
		e.Inject(headstest.Fault{Method: http.MethodGet, Latency: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		report, err := fleet.Apply(ctx, e.Client(), specs, fleet.Options{Convert: heads.ConvertOptions{SettleTimeout: 6 * time.Second}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
		assert.LessOrEqual(t, time.Since(began), 11*time.Second)
	})
}

func TestARunThatWasFinishedIsNotCutShort(t *testing.T) {
	e := newEmulator(t)
	ctx, cancel := context.WithCancel(context.Background())
	report := need(fleet.Apply(ctx, e.Client(), converting(e, 1), fleet.Options{OnResult: func(fleet.Result) { cancel() }}))(t)
	assert.Equal(t, 1, report.Count(fleet.OutcomeChanged))
}

func TestAHeadThatWasLeftMayBeRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		specs := converting(e, 1)
		e.Inject(headstest.Fault{Method: http.MethodGet, Latency: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		report, err := fleet.Apply(ctx, e.Client(), specs, fleet.Options{})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, heads.ReasonTemporary, report.Results[0].Reason)
	})
}

func TestEveryHeadEndsAsReportedWhenRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst = 200, 20
		fleetSize := exhaustive.Count(250, 1000)
		e := newEmulator(t, headstest.WithRateLimit(perSecond, burst))
		specs := converting(e, fleetSize)
		for _, fault := range []headstest.Fault{{Status: 500}, {Status: 503}, {Cut: headstest.CutBefore}, {Cut: headstest.CutAfter}, {Status: 429, RetryAfter: time.Second}} {
			fault.Share = 0.0438 // five in a row have a share of a fifth
			e.Inject(fault)
		}
		client := e.Client(heads.WithRateLimit(perSecond, burst))
		o := fleet.Options{Concurrency: 16, StopAfter: -1, Journal: openJournal(t, journalPath(t))}
		report := need(fleet.Apply(t.Context(), client, specs, o))(t)

		requests := e.Requests()
		bad := 0
		for _, r := range requests {
			if r.Status != http.StatusOK {
				bad++
			}
		}
		assert.InDelta(t, 0.2, float64(bad)/float64(len(requests)), 0.05)
		for i := range requests {
			j := max(0, i-5*burst)
			window := requests[i].At.Sub(requests[j].At).Seconds()
			assert.LessOrEqual(t, float64(i-j), perSecond*window+burst+1e-6)
		}
		e.RemoveFaults()
		t.Logf("%v, %d requests, %d of them bad, in %v", report, len(requests), bad, report.Ended.Sub(report.Started))
		for i, r := range report.Results {
			streams := get(t, e, specs[i].ID).VideoStreaming
			switch {
			case r.Outcome == fleet.OutcomeChanged:
				assert.True(t, streams)
				assert.NotZero(t, r.After)
			case r.Outcome == fleet.OutcomeFailed && r.Reason == heads.ReasonTemporary:
				assert.False(t, streams, "%v", r.Err)
			default:
				assert.Equal(t, heads.ReasonUnknownOutcome, r.Reason, "%v", r.Err)
			}
		}
		<-time.After(time.Second) // the reads above have no limit
		report = need(fleet.Apply(t.Context(), client, specs, o))(t)
		assert.Equal(t, fleetSize, report.Count(fleet.OutcomeChanged)+report.Count(fleet.OutcomeUnchanged), "%v", report)
		assert.Len(t, report.Moves(), fleetSize)
	})
}

func TestTheSecondApplyOfAnySpecChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	failed := 0
	for range exhaustive.Count(60, 240) {
		e, id := withHead(t, headstest.Head{VideoStreaming: random.IntN(2) == 0})
		a, b := randomSpec(random, id), randomSpec(random, id)
		apply(t, e, fleet.Options{}, a)
		second := apply(t, e, fleet.Options{}, b).Results[0]
		document, before := get(t, e, id), len(e.Requests())
		third := apply(t, e, fleet.Options{}, b).Results[0]
		sent := since(e, before)
		text := need(json.Marshal([]fleet.Spec{a, b}))(t)
		assert.JSONEq(t, string(document.Raw.Bytes()), string(get(t, e, id).Raw.Bytes()), "%s", text)
		if second.Outcome == fleet.OutcomeBlocked || second.Outcome == fleet.OutcomeFailed {
			assert.Equal(t, second.Outcome, third.Outcome, "%s: %v", text, third.Err)
			failed++
			continue
		}
		assert.Equal(t, fleet.OutcomeUnchanged, third.Outcome, "%s: %v %v", text, third.Changes, third.Err)
		assert.Empty(t, writes(sent), "%s", text)
		assert.LessOrEqual(t, len(sent), 2, "%s", text)
	}
	t.Logf("%d of the specs can't be had", failed)
}

// randomSpec returns a random spec.
func randomSpec(random *rand.Rand, id string) fleet.Spec {
	s := fleet.Spec{ID: id, Set: map[string]any{}, PruneWebhooks: random.IntN(2) == 0}
	one := func(values ...any) any { return values[random.IntN(len(values))] }
	some := func(part func()) {
		if random.IntN(2) == 0 {
			part()
		}
	}
	for name, values := range map[string][]any{
		"name": {"Lobby", "Bar", "a & <b>"}, "phrases": {[]string{}, []string{"a"}, []any{"b", "a"}}, "customWords": {map[string]string{}, map[string]string{"a": "b"}, map[string]any{"c": "d"}},
		"fileUrl": {nil, "https://files.example.com/a"}, "pluginOperationalModeConfig": {nil, map[string]any{}, map[string]any{"b": 1.5, "a": []any{nil, true}}, json.RawMessage(`{ "b":1, "a":2 }`)},
		"semanticThreshold": {0, 1, 0.25}, "promptConfig": {map[string]any{"system_prompt": ""}, map[string]string{"system_prompt": "x"}}, "voiceflowApiKey": {nil, "", "k"},
		"operationMode": {"oc", "ttt"}, "isRandomSuggestions": {true, false},
	} {
		some(func() { s.Set[name] = one(values...) })
	}
	some(func() {
		s.Voice = &heads.Voice{Provider: one("azure", "ElevenLabs", "polly").(string), ID: one("a", "b").(string)}
	})
	some(func() { s.Streaming = one(on(), off()).(*bool) })
	some(func() { s.Delivery = one(on(), off()).(*bool) })
	some(func() {
		s.Webhooks = []fleet.WebhookSpec{}
		for _, url := range []string{"https://hooks.example.com/a", "https://hooks.example.com/b?x=1", "https://HOOKS.example.com:443/c/"} {
			some(func() {
				s.Webhooks = append(s.Webhooks, fleet.WebhookSpec{URL: url, Events: one([]heads.EventType{"START_CONVERSATION"}, []heads.EventType{"timeout_conversation", "end_conversation"}).([]heads.EventType)})
			})
		}
	})
	some(func() {
		s.Tools = &[]heads.Tool{}
		for _, name := range []string{"find", "book"} {
			some(func() {
				*s.Tools = append(*s.Tools, one(
					heads.Tool{Name: name, Description: "x", URL: "https://t.example.com/" + name},
					heads.Tool{Name: name, Description: "y", URL: "https://t.example.com/" + name, Parameters: []heads.ToolParameter{{Name: "q", Type: "string", Description: "Q."}}},
				).(heads.Tool))
			})
		}
	})
	return s
}

func TestARefusedTokenEndsARun(t *testing.T) {
	e := newEmulator(t)
	specs := converting(e, 20)
	e.Inject(headstest.Fault{Status: http.StatusUnauthorized})
	for name, run := range map[string]func(context.Context, *heads.Client, []fleet.Spec, fleet.Options) (*fleet.Report, error){"plan": fleet.Plan, "apply": fleet.Apply} {
		before := len(e.Requests())
		report, err := run(t.Context(), e.Client(), specs, fleet.Options{Concurrency: 1, StopAfter: -1})
		require.ErrorIs(t, err, heads.ErrUnauthorized, name)
		assert.Equal(t, []int{1, 19}, []int{report.Count(fleet.OutcomeFailed), report.Count(fleet.OutcomeSkipped)}, name)
		assert.Len(t, since(e, before), 1, name)
	}
}
