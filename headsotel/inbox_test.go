package headsotel

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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

// gauges returns the values of the gauges, which are all that is reported.
func (r *recorder) gauges(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for name, m := range r.metrics(t) {
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			assert.Equal(t, "{event}", m.Unit)
			require.Len(t, data.DataPoints, 1)
			assert.Zero(t, data.DataPoints[0].Attributes.Len())
			all[strings.TrimPrefix(name, "heads.inbox.")] = int(data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			assert.Equal(t, "s", m.Unit)
			require.Len(t, data.DataPoints, 1)
			all[strings.TrimPrefix(name, "heads.inbox.")] = data.DataPoints[0].Value
		default:
			assert.Fail(t, "not a gauge", name)
		}
	}
	return all
}

func TestInboxReportsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := &source{waiting: 7, retrying: 3, dead: 2, oldest: time.Now()}
		Inbox(s, r.options()...)
		<-time.After(90 * time.Second)
		assert.Equal(t, map[string]any{"waiting": 7, "retrying": 3, "dead": 2, "oldest_waiting": 90.0}, r.gauges(t))
		s.waiting, s.retrying, s.oldest = 0, 0, time.Time{}
		assert.Equal(t, map[string]any{"waiting": 0, "retrying": 0, "dead": 2, "oldest_waiting": 0.0}, r.gauges(t))
		s.oldest = time.Now().Add(time.Hour)
		assert.InDelta(t, 0, r.gauges(t)["oldest_waiting"], 0, "another clock is ahead")
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
	_, count, lag := r.durations(t, "heads.inbox.lag")
	assert.EqualValues(t, 1, count)
	assert.InDelta(t, 40, lag, 0)
}
