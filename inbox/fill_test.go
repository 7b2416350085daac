package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// filled is an event of a large table.
type filled struct {
	session  string
	state    int64
	received time.Time
}

// fill stores n events in a PostgreSQL, faster than Append does. Waiting events get a
// row in the table of sessions.
func (s store) fill(tb testing.TB, n int, describe func(i int) filled) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.name)
	require.NoError(tb, err)
	defer conn.Close(context.Background())
	columns := []string{"key", "session", "head_id", "session_id", "type", "body", "checksum", "state", "attempts", "received", "finished", "error"}
	_, err = conn.CopyFrom(tb.Context(), pgx.Identifier{"heads_inbox_events"}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		f := describe(i)
		e, err := heads.ParseEvent(eventBody("head", f.session, i))
		if err != nil {
			return nil, err
		}
		r, err := inbox.NewRecord(e)
		if err != nil {
			return nil, err
		}
		var finished, text any
		attempts := int64(0)
		if f.state != engine.Waiting {
			finished, attempts = f.received.UnixMicro(), 1
		}
		if f.state == engine.Dead {
			text = "*errors.errorString"
		}
		return []any{r.Key, r.Session, r.HeadID, r.SessionID, r.Type, r.Body, r.Checksum, f.state, attempts, f.received.UnixMicro(), finished, text}, nil
	}))
	require.NoError(tb, err)
	_, err = conn.Exec(tb.Context(), `INSERT INTO heads_inbox_sessions (session, fence, next_at)
		SELECT DISTINCT session, 0, (extract(epoch FROM now()) * 1000000)::bigint FROM heads_inbox_events WHERE state = 0 ON CONFLICT DO NOTHING`)
	require.NoError(tb, err)
}

// full reports whether all counts are asked for, and not the small ones.
func full(tb testing.TB) bool { return runs(tb) > 1 }

// scale returns the small number of a count, or the large one for a full run.
func scale(tb testing.TB, small, large int) int {
	if full(tb) {
		return large
	}
	return small
}
