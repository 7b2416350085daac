package inbox_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

// The SQL of the page runs unchanged.
func TestStatementsOfThePageRun(t *testing.T) {
	page, err := os.ReadFile("../docs/inbox.md")
	require.NoError(t, err)
	s := newStore(t, "postgres")
	in := s.open(t)
	appendEvents(t, in, "dead", 0, 1)
	appendEvents(t, in, "handled", 1, 2)
	stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
		if d.Event.SessionID == "dead" {
			return inbox.Permanent(errTest)
		}
		return nil
	})
	eventually(t, "handled or dead", pendingIsZero(in))
	stop()
	appendEvents(t, in, "waiting", 2, 4)
	statements := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, statements, 5)
	var answers []string
	db := s.sql(t)
	for _, statement := range statements {
		rows, err := db.Query(statement[1])
		require.NoError(t, err, statement[1])
		columns, err := rows.Columns()
		require.NoError(t, err)
		n := 0
		var text []string
		for ; rows.Next(); n++ {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			require.NoError(t, rows.Scan(values...))
			for _, v := range values {
				switch v := (*v.(*any)).(type) {
				case string:
					text = append(text, v)
				case int64:
					text = append(text, strings.Repeat("|", int(v)))
				}
			}
		}
		require.NoError(t, rows.Err())
		answers = append(answers, strings.Join(text, " "))
	}
	assert.Equal(t, "||", answers[0], "two wait")
	assert.Equal(t, "| | dead *errors.errorString", answers[1])
	assert.Equal(t, "|", answers[4], "one was handled")
}

// The SQL that the page has for SQLite runs, too.
func TestStatementsOfThePageRunOnSQLite(t *testing.T) {
	s := newStore(t, "sqlite")
	in := s.open(t)
	appendEvents(t, in, "waiting", 0, 2)
	var n int
	var since, session string
	db := s.sql(t)
	require.NoError(t, db.QueryRow(`SELECT count(*), datetime(min(received) / 1000000, 'unixepoch') FROM heads_inbox_events WHERE state = 0`).Scan(&n, &since))
	assert.Equal(t, 2, n)
	require.NoError(t, db.QueryRow(`SELECT CAST(session_id AS TEXT) FROM heads_inbox_events`).Scan(&session))
	assert.Equal(t, "waiting", session)
}
