package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

func TestDeadLettersAreGroupedByTheirError(t *testing.T) {
	forEachInbox(t, func(t *testing.T, _ store, in *inbox.Inbox) {
		groups := need(in.DeadGroups(t.Context()))(t)
		assert.Empty(t, groups)
		for _, row := range []struct {
			head, text string
			events     int
		}{{"ada", "no such customer", 3}, {"bob", "no such customer", 2}, {"ada", strings.Repeat("é", 600), 1}} {
			for n := range row.events {
				_, err := in.Append(t.Context(), newEvent(t, row.head, row.text[:10], n))
				require.NoError(t, err)
			}
			handleAll(t, in, func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errors.New(row.text)) })
		}
		groups = need(in.DeadGroups(t.Context()))(t)
		require.Len(t, groups, 2)
		first := groups[0]
		assert.Equal(t, "no such customer", first.Error)
		assert.Equal(t, 5, first.Count)
		assert.Equal(t, 2, first.Heads)
		assert.NotEmpty(t, first.Types)
		assert.WithinDuration(t, time.Now(), first.LastDied, time.Minute)
		entry, _, err := in.Entry(t.Context(), first.Latest)
		require.NoError(t, err)
		assert.Equal(t, "bob", entry.HeadID)
		for _, g := range groups {
			page, _, err := in.List(t.Context(), inbox.Query{Error: g.Error}, inbox.StateDead, 0)
			require.NoError(t, err)
			assert.Len(t, page, g.Count)
			assert.Len(t, deadOf(t, in, inbox.Query{Error: g.Error}), g.Count)
		}
	}, inbox.WithErrorText())
}

// The SQL of docs/inbox-operations.md runs unchanged.
func TestStatementsOfThePageRun(t *testing.T) {
	page, err := os.ReadFile("../docs/inbox-operations.md")
	require.NoError(t, err)
	s, in := newInbox(t, "postgres")
	_, err = in.Append(t.Context(), newEvent(t, "ada", "a\x00", 0))
	require.NoError(t, err)
	appendEvents(t, in, "handled", 1, 2)
	handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
		if d.Event.HeadID == "ada" {
			return inbox.Permanent(errTest)
		}
		return nil
	})
	appendEvents(t, in, "waiting", 2, 4)
	// An id with invalid UTF-8.
	s.exec(t, "INSERT INTO heads_inbox_events (key, session, head_id, session_id, type, body, checksum, state, attempts, received) VALUES ('', '', '', '\\xff5c', '', '', '', 2, 1, 0)")
	statements := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, statements, 6)
	var answers []string
	pool := newPool(t, s.name, 1)
	for _, statement := range statements {
		rows, err := pool.Query(t.Context(), statement[1])
		require.NoError(t, err, statement[1])
		var text []string
		for rows.Next() {
			values := need(rows.Values())(t)
			for _, v := range values {
				switch v.(type) {
				case string, int32, int64:
					text = append(text, fmt.Sprint(v))
				}
			}
		}
		require.NoError(t, rows.Err())
		answers = append(answers, strings.Join(text, " "))
	}
	last := s.int(t, "SELECT last_value FROM heads_inbox_fence")
	assert.Greater(t, last, int64(1000000000), "the fence is raised")
	assert.Equal(t, []string{
		fmt.Sprint(last), "1000000005", // restore
		"2",
		`1 1 a\000 *errors.errorString 5 1 \377\\`,
		"1 2 1 start_conversation *errors.errorString",
		"", // no session is waiting for a retry
	}, answers)
	s.use(t, func(in *inbox.Inbox) { appendEvents(t, in, "after the restore", 4, 5) })
	assert.EqualValues(t, 1000000006, s.int(t, "SELECT max(sequence) FROM heads_inbox_events"))
}

// The SQL of docs/inbox-operations.md for SQLite runs, too.
func TestStatementsOfThePageRunOnSQLite(t *testing.T) {
	s, in := newInbox(t, "sqlite")
	appendEvents(t, in, "waiting", 0, 2)
	assert.EqualValues(t, 2, s.int(t, `SELECT count(*) FROM heads_inbox_events WHERE state = 0 AND CAST(session_id AS TEXT) = 'waiting'
		AND datetime(received / 1000000, 'unixepoch') > datetime('now', '-1 minute')`))
}
