package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

// openTables opens an inbox with tables when it gets a line of input, closes it, and waits for the
// next line, which has the name of the next database.
func openTables(r role) error {
	fmt.Println("ready")
	for {
		var name string
		if _, err := fmt.Scanf("%q\n", &name); err != nil {
			return nil //nolint:nilerr // the end of the input
		}
		r.Name = name
		in, err := r.try(inbox.WithTables("CREATE TABLE IF NOT EXISTS mine (n BIGINT PRIMARY KEY)", "CREATE INDEX IF NOT EXISTS mine_n ON mine (n)"))
		if err != nil {
			fmt.Println(err)
			continue
		}
		if err := in.Close(context.Background()); err != nil {
			return err
		}
		fmt.Println("opened")
	}
}

func TestEightProcessesOpenWithTablesAtOnce(t *testing.T) {
	const processes, rounds = 8, 20
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			var all []*process
			for range processes {
				p := start(t, role{Role: "opener", Kind: kind})
				require.Equal(t, "ready", p.line(t))
				all = append(all, p)
			}
			for round := range rounds {
				s := newStore(t, kind)
				for _, p := range all {
					p.say(t, fmt.Sprintf("%q", s.name))
				}
				for _, p := range all {
					require.Equal(t, "opened", p.line(t), "round %d", round)
				}
			}
		})
	}
}

func TestTablesAreCreatedTogetherOrNotAtAll(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		for _, c := range []struct{ second, want string }{
			{"CREATE TABEL secret (n BIGINT)", "syntax error"},
			{"COMMIT", "leave BEGIN, COMMIT and ROLLBACK out"},
			{"ROLLBACK", "leave BEGIN, COMMIT and ROLLBACK out"},
		} {
			_, err := s.try(t.Context(), inbox.WithTables("CREATE TABLE IF NOT EXISTS mine (n BIGINT)"), inbox.WithTables(c.second))
			require.ErrorContains(t, err, "inbox: open: WithTables: statement 2: ")
			require.ErrorContains(t, err, c.want)
			if c.second != "COMMIT" {
				_, err = s.open(t).SQL().Exec("INSERT INTO mine (n) VALUES ($1)", 1)
				require.Error(t, err, "the first one has no effect")
			} else {
				s.exec(t, "DROP TABLE IF EXISTS mine")
			}
		}
		_, err := s.try(t.Context(), inbox.WithTables("CREATE TABLE a (n BIGINT)", " "))
		require.ErrorContains(t, err, "statement 2 is empty")
	})
}

func TestSQLReadsAndWritesUntilClose(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		in := s.open(t, inbox.WithTables("CREATE TABLE IF NOT EXISTS mine (n BIGINT, name TEXT)"))
		_, err := in.SQL().ExecContext(t.Context(), "INSERT INTO mine (n, name) VALUES ($2, $1)", "one", 1)
		require.NoError(t, err)
		tx := need(in.SQL().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}))(t)
		var name string
		require.NoError(t, tx.QueryRow("SELECT name FROM mine WHERE n = $1", 1).Scan(&name))
		assert.Equal(t, "one", name)
		require.NoError(t, tx.Rollback())
		require.NoError(t, in.Close(t.Context()))
		require.Error(t, in.SQL().PingContext(t.Context()))
	})
}

func TestTransactionOfSQLDelaysEventsAndLosesNone(t *testing.T) {
	s := newStore(t, "sqlite")
	in := s.open(t, inbox.WithTables("CREATE TABLE IF NOT EXISTS mine (n BIGINT)"))
	send := serve(t, in)
	tx, err := in.SQL().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO mine (n) VALUES (1)")
	require.NoError(t, err)
	held := time.Now()
	longest := 1500 * time.Millisecond
	if raceEnabled {
		longest *= 2
	}
	var mu sync.Mutex
	answered := map[int]int{}
	var delivering sync.WaitGroup
	for n := range 100 {
		delivering.Go(func() {
			pauseFor(t.Context(), time.Duration(n)*10*time.Millisecond)
			begun := time.Now()
			status := send(eventBody("head", fmt.Sprint("session", n), n))
			took := time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			answered[status]++
			assert.Less(t, took, longest)
		})
	}
	pauseFor(t.Context(), time.Until(held.Add(time.Second)))
	require.NoError(t, tx.Commit())
	delivering.Wait()
	t.Log(answered)
	assert.Equal(t, 100, answered[http.StatusOK]+answered[http.StatusServiceUnavailable])
	assert.GreaterOrEqual(t, statusOf(t, in).Pending, int64(answered[http.StatusOK]))
}
