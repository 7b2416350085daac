package fleet_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowdown returns the duration of a run divided by the duration of its requests.
func slowdown(e *headstest.Emulator, r *fleet.Report, latency time.Duration, concurrency int) float64 {
	ideal := time.Duration(len(e.Requests())) * latency / time.Duration(concurrency)
	return float64(r.Ended.Sub(r.Started)) / float64(ideal)
}

func TestApplyTakesLittleMoreThanItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency, concurrency = 50 * time.Millisecond, 16
		e := newEmulator(t, headstest.WithLatency(latency))
		specs := converting(e, exhaustive.Count(200, 1000))
		report := apply(t, e, fleet.Options{Concurrency: concurrency}, specs...)
		assert.Equal(t, len(specs), report.Count(fleet.OutcomeChanged))
		assert.LessOrEqual(t, slowdown(e, report, latency, concurrency), 1.15)
	})
}

// This measures real time, including that of client, journal and emulator.
func BenchmarkApply1000HeadsAt50ms(b *testing.B) {
	const latency, concurrency = 50 * time.Millisecond, 16
	for b.Loop() {
		e := newEmulator(b, headstest.WithLatency(latency))
		j := need(fleet.OpenJournal(journalPath(b)))(b)
		report := apply(b, e, fleet.Options{Concurrency: concurrency, Journal: j}, converting(e, 1000)...)
		require.NoError(b, j.Close())
		require.Equal(b, 1000, report.Count(fleet.OutcomeChanged))
		ratio := slowdown(e, report, latency, concurrency)
		b.ReportMetric(ratio, "x-ideal")
		b.ReportMetric(float64(len(e.Requests()))/1000, "requests/head")
		assert.LessOrEqual(b, ratio, 1.15)
	}
}

// service has no state: it returns a head for every id.
type service struct{}

func (service) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := `{"id":"visual","mode":"default"}`
	if id, ok := strings.CutPrefix(r.URL.Path, "/head/"); ok {
		answer = fmt.Sprintf(`{"id":%q,"name":"Lobby","ttsProvider":"azure","ttsVoice":"a","headVisualId":"visual","videoStreaming":false,"greetings":"Hello",
			"promptConfig":{"system_prompt":%q},"publicUrl":"https://chat.example.com/MyOrg-1/li-%s?api_key=k","conversationSettings":{"tools":[]}}`, id, strings.Repeat("Be kind. ", 500), id)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func BenchmarkMemoryOf10000Specs(b *testing.B) {
	client := need(heads.New("https://api.example.com", "token", heads.WithHTTPClient(&http.Client{Transport: service{}})))(b)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse) / (1 << 20)
	}
	for b.Loop() {
		runtime.GC()
		base, peak, done := heap(), 0.0, 0
		var specs []fleet.Spec
		for i := range 10000 {
			specs = append(specs, fleet.Spec{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", i), Label: "Lobby", Streaming: on(), Set: map[string]any{"greetings": "Good evening", "phrases": []string{"a", "b"}}})
		}
		report, err := fleet.Plan(context.Background(), client, specs, fleet.Options{OnResult: func(fleet.Result) {
			if done++; done%100 == 0 {
				peak = max(peak, heap()-base)
			}
		}})
		require.NoError(b, err)
		require.Equal(b, 10000, report.Count(fleet.OutcomePending))
		require.NoError(b, report.WriteHTML(io.Discard))
		peak = max(peak, heap()-base)
		b.ReportMetric(peak, "peak-MB")
		assert.LessOrEqual(b, peak, 64.0)
	}
}
