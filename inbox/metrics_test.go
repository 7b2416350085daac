package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

func TestFunctionsOfOnAttemptAddUp(t *testing.T) {
	in := newStore(t, "sqlite").open(t, inbox.WithObserver(func(context.Context, inbox.Observation) {}))
	var first []string // an attempt after the other
	second := 0
	in.OnAttempt(func(context.Context, time.Duration, error) { panic("survived") })
	in.OnAttempt(func(_ context.Context, lag time.Duration, err error) {
		assert.GreaterOrEqual(t, lag, time.Duration(0))
		text := "handled"
		if err != nil {
			text = err.Error()
		}
		first = append(first, text)
	})
	in.OnAttempt(func(context.Context, time.Duration, error) { second++ })
	appendEvents(t, in, "a", 0, 1)
	handleAll(t, in, func(ctx context.Context, d *inbox.Delivery) error {
		if d.Attempt == 1 {
			return inbox.RetryAfter(0, errTest)
		}
		return errors.Join(d.Commit(ctx, func(*sql.Tx) error { return nil }), errors.New("after Commit"))
	})
	assert.Len(t, first, 2)
	assert.ErrorContains(t, errTest, first[0])
	assert.Equal(t, "handled", first[1], "an error after Commit undoes nothing")
	assert.Equal(t, 2, second)
}

func TestBacklogIsThatOfStatus(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	appendEvents(t, in, "waiting", 0, 3)
	appendEvents(t, in, "dead", 3, 4)
	stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
		if d.Event.SessionID == "dead" {
			return inbox.Permanent(errTest)
		}
		return inbox.RetryAfter(time.Hour, errTest)
	})
	eventually(t, "one dead, one retrying", statusIs(in, func(s inbox.Status) bool { return s.Dead == 1 && s.Retrying == 1 }))
	stop()
	status := statusOf(t, in)
	waiting, retrying, dead, oldest, err := in.Backlog(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 1, 1}, []int64{waiting, retrying, dead})
	assert.Equal(t, status.OldestPending, oldest)
	require.NoError(t, in.Close(t.Context()))
	_, _, _, _, err = in.Backlog(t.Context())
	require.ErrorIs(t, err, inbox.ErrClosed)
}
