package headsotel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headsapi/heads-go"
)

// source is an InboxSource whose numbers the test sets.
type source struct {
	waiting, retrying, dead int64
	oldest                  time.Time
	err                     error
	hangs                   bool
	attempt                 func(context.Context, time.Duration, error)
}

func (s *source) Backlog(ctx context.Context) (waiting, retrying, dead int64, oldest time.Time, err error) {
	if s.hangs {
		<-ctx.Done()
		return 0, 0, 0, time.Time{}, ctx.Err()
	}
	return s.waiting, s.retrying, s.dead, s.oldest, s.err
}

func (s *source) OnAttempt(f func(context.Context, time.Duration, error)) { s.attempt = f }

func gauge(t *testing.T, m metricdata.Metrics) any {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		require.Len(t, data.DataPoints, 1)
		assert.Zero(t, data.DataPoints[0].Attributes.Len())
		assert.Equal(t, "{event}", m.Unit)
		return data.DataPoints[0].Value
	case metricdata.Gauge[float64]:
		require.Len(t, data.DataPoints, 1)
		assert.Equal(t, "s", m.Unit)
		return data.DataPoints[0].Value
	}
	return nil
}

func TestInboxReportsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := &source{waiting: 7, retrying: 3, dead: 2, oldest: time.Now()}
		Inbox(s, r.options()...)
		<-time.After(90 * time.Second)
		metrics := r.metrics(t)
		assert.EqualValues(t, 7, gauge(t, metrics["heads.inbox.waiting"]))
		assert.EqualValues(t, 3, gauge(t, metrics["heads.inbox.retrying"]))
		assert.EqualValues(t, 2, gauge(t, metrics["heads.inbox.dead"]))
		assert.InDelta(t, 90, gauge(t, metrics["heads.inbox.oldest_waiting"]), 0)
		assert.NotContains(t, metrics, "heads.inbox.handled")

		s.waiting, s.retrying, s.oldest = 0, 0, time.Time{}
		metrics = r.metrics(t)
		assert.EqualValues(t, 0, gauge(t, metrics["heads.inbox.waiting"]))
		assert.InDelta(t, 0, gauge(t, metrics["heads.inbox.oldest_waiting"]), 0, "nothing waits")

		s.oldest = time.Now().Add(time.Hour)
		assert.InDelta(t, 0, gauge(t, r.metrics(t)["heads.inbox.oldest_waiting"]), 0, "another clock is ahead")
	})
}

func TestInboxThatCannotBeAskedHasNoGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := &source{err: errors.New("canary")}
		Inbox(s, r.options()...)
		assert.Empty(t, r.metrics(t))
		s.err, s.hangs = nil, true
		begun := time.Now()
		assert.Empty(t, r.metrics(t))
		assert.Equal(t, 5*time.Second, time.Since(begun))
	})
}

func TestInboxReportsAttempts(t *testing.T) {
	r := newRecorder()
	s := &source{}
	Inbox(s, r.options()...)
	for range 3 {
		s.attempt(t.Context(), time.Hour, errors.New("canary"))
	}
	s.attempt(t.Context(), 40*time.Second, nil)
	metrics := r.metrics(t)
	for name, want := range map[string]int64{"heads.inbox.handled": 1, "heads.inbox.failed": 3} {
		sum := metrics[name].Data.(metricdata.Sum[int64])
		assert.True(t, sum.IsMonotonic)
		require.Len(t, sum.DataPoints, 1)
		assert.Equal(t, want, sum.DataPoints[0].Value, name)
		assert.Equal(t, attribute.NewSet(), sum.DataPoints[0].Attributes)
	}
	assert.Equal(t, "s", metrics["heads.inbox.lag"].Unit)
	lag := metrics["heads.inbox.lag"].Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, lag, 1)
	assert.EqualValues(t, 1, lag[0].Count)
	assert.InDelta(t, 40, lag[0].Sum, 0)
	assert.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}, lag[0].Bounds)
}

// emulatedInbox is the InboxSource of an hour.
type emulatedInbox struct {
	*hour
	mu       sync.Mutex
	waiting  map[int]time.Time
	retrying map[int]bool
	dead, id int
	attempt  func(context.Context, time.Duration, error)
}

func (in *emulatedInbox) OnAttempt(f func(context.Context, time.Duration, error)) { in.attempt = f }

func (in *emulatedInbox) Backlog(context.Context) (waiting, retrying, dead int64, oldest time.Time, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, at := range in.waiting {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	in.sawGauge("Events in the inbox", "waiting", float64(len(in.waiting)))
	in.sawGauge("Events in the inbox", "retrying", float64(len(in.retrying)))
	in.sawGauge("Events in the inbox", "dead", float64(in.dead))
	in.sawGauge("Age of the oldest waiting event", "oldest", time.Since(oldest).Seconds())
	return int64(len(in.waiting)), int64(len(in.retrying)), int64(in.dead), oldest, nil
}

// handle stores an event and handles it. About one in five needs a second attempt, and one in 50
// dies.
func (in *emulatedInbox) handle() {
	in.mu.Lock()
	in.id++
	id, stored := in.id, time.Now()
	in.waiting[id] = stored
	in.mu.Unlock()
	<-time.After(random(5, 20_000))
	if rand.N(5) == 0 {
		in.mu.Lock()
		in.retrying[id] = true
		in.mu.Unlock()
		in.ended(time.Since(stored), errors.New("the shop does not answer"))
		<-time.After(random(1000, 120_000))
	}
	var err error
	in.mu.Lock()
	delete(in.waiting, id)
	delete(in.retrying, id)
	if rand.N(50) == 0 {
		in.dead++
		err = errors.New("there is no such order")
	}
	in.mu.Unlock()
	in.ended(time.Since(stored), err)
}

func (in *emulatedInbox) ended(lag time.Duration, err error) {
	in.attempt(context.Background(), lag, err)
	if err != nil {
		in.saw("Attempts of the inbox", "failed", lag)
		return
	}
	in.saw("Attempts of the inbox", "handled", lag)
	in.saw("Lag of handled events, 95th percentile", "lag", lag)
}

func TestScopeHasTheVersion(t *testing.T) {
	r := newRecorder()
	require.NoError(t, get(t.Context(), t, "https://api.example.com", answer(200), Client(r.options()...)))
	assert.Equal(t, heads.Version, r.spans.Ended()[0].InstrumentationScope().Version)
	var all metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &all))
	assert.Equal(t, heads.Version, all.ScopeMetrics[0].Scope.Version)
}
