package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// In each minute some events are stored, and two thirds of them handled.
func TestLinesOfAnHourAreThoseOfTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "inbox.db"))
		require.NoError(t, err)
		in, err := inbox.Open(t.Context(), db)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		handler, err := New(in, Sample(ctx))
		require.NoError(t, err)
		synctest.Wait()
		page := handler.(*page)
		var stored, handled []float64
		for m := range 60 {
			n := 3 * (1 + m%7)
			for i := range n {
				e, err := heads.ParseEvent(fmt.Appendf(nil, `{"event_type":"x","timestamp":"2026-08-31 06:56:30.%06d","head_id":"a","session_id":"s%d"}`, 1000*m+i, i%3))
				require.NoError(t, err)
				_, err = in.Append(t.Context(), e)
				require.NoError(t, err)
			}
			handle(t, in, 2*n/3)
			stored, handled = append(stored, float64(n)), append(handled, float64(2*n/3))
			<-time.After(time.Minute)
			synctest.Wait()
		}
		var lines [2][]float64
		for _, m := range page.history.minutes(time.Now()) {
			assert.True(t, m.storedKnown && m.handledKnown)
			lines[0], lines[1] = append(lines[0], m.stored), append(lines[1], m.handled)
		}
		// The first sample was taken before the first event.
		assert.Equal(t, stored[1:], lines[0][1:])
		assert.Equal(t, handled[1:], lines[1][1:])
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "localhost"
		handler.ServeHTTP(w, r)
		assert.Contains(t, w.Body.String(), `aria-label="Events per minute in the last hour. Stored: 12 in the last minute, at most 21. Handled: 8 in the last minute, at most 14."`)
		cancel()
		synctest.Wait()
		require.NoError(t, in.Close(t.Context()))
		<-time.After(time.Minute)
	})
}

// handle handles n events.
func handle(t *testing.T, in *inbox.Inbox, n int) {
	ctx, cancel := context.WithCancel(t.Context())
	err := in.Run(ctx, func(context.Context, *inbox.Delivery) error {
		if n--; n == 0 {
			cancel()
		}
		return nil
	}, inbox.Concurrency(1))
	require.NoError(t, err)
}

func TestLinesHaveGapsWhereNothingIsKnown(t *testing.T) {
	begun := time.Now()
	after := func(d time.Duration) time.Time { return begun.Add(d) }
	var h history
	for m := range 10 {
		h.add(sample{after(time.Duration(m) * time.Minute), int64(60 * m), 0, m >= 7})
	}
	all := h.minutes(after(12 * time.Minute))
	var text strings.Builder
	for _, m := range all[45:] {
		fmt.Fprintf(&text, "%v%v ", m.stored, map[bool]string{true: "", false: "?"}[m.handledKnown])
	}
	assert.Equal(t, "0? 0? 0? 60 60 60 60 60 60 60? 60? 60? 0? 0? 0? ", text.String(), "an estimate tells nothing of the handled, and no sample is later than 9 minutes")

	c := drawn(all)
	assert.Len(t, c.Stored, 1)
	assert.Equal(t, 60, c.Most)
	assert.Equal(t, "Stored: 60 in the last minute, at most 60. Handled: 60 in the last minute, at most 60.", c.Words)
	assert.Equal(t, "Stored: not known yet. Handled: not known yet.", drawn(make([]minute, 60)).Words)
}

func TestSamplesAreTenSecondsApart(t *testing.T) {
	begun := time.Now()
	var h history
	for s := range 3 * 3600 {
		h.add(sample{at: begun.Add(time.Duration(s) * time.Second)})
	}
	assert.Len(t, h.kept, 366, "of 61 minutes")
	assert.Equal(t, begun.Add((3*3600-1)*time.Second), h.latest.at)
}
