package inbox_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// health returns the status and the body of an answer of Health.
func health(h http.Handler) (int, string) {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/health", nil))
	return answer.Code, answer.Body.String()
}

// recordTouches counts the writes of Health in a table.
func (s store) recordTouches(t *testing.T) {
	s.exec(t, "CREATE TABLE touches (at TEXT)")
	if s.kind == "sqlite" {
		s.exec(t, `CREATE TRIGGER touched AFTER UPDATE ON heads_inbox_meta WHEN new.name = 'touched'
			BEGIN INSERT INTO touches VALUES (new.value); END`)
		return
	}
	s.exec(t, `CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO touches VALUES (new.value); RETURN new; END $$`)
	s.exec(t, `CREATE TRIGGER touched AFTER UPDATE ON heads_inbox_meta FOR EACH ROW WHEN (new.name = 'touched') EXECUTE FUNCTION touched()`)
}

func TestHealthWritesOnceASecondAndFollowsTheDatabase(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		s, in := newInbox(t, "sqlite")
		var locked *sql.Tx // immediate, as each of s.sql
		begin := func() {
			var err error
			locked, err = s.sql(t).Begin()
			require.NoError(t, err)
		}
		followDatabase(t, s, in, begin, func() { require.NoError(t, locked.Rollback()) })
	})
	t.Run("postgres", func(t *testing.T) {
		server := pgtest.ForTest(t)
		s := store{"postgres", server.DSN("postgres")}
		followDatabase(t, s, s.open(t), server.Kill, func() { require.NoError(t, server.Start()) })
	})
}

// followDatabase asks 100 times a second while the database goes away and comes back.
func followDatabase(t *testing.T, s store, in *inbox.Inbox, away, back func()) {
	s.recordTouches(t)
	begun := time.Now()
	h := in.Health()
	ctx, stop := context.WithCancel(t.Context())
	var last atomic.Int64
	var asking sync.WaitGroup
	asking.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			<-ticker.C
			asking.Go(func() {
				status, _ := health(h)
				last.Store(int64(status))
			})
		}
	})
	t.Cleanup(func() { stop(); asking.Wait() })
	answers := func(status int64) func() bool { return func() bool { return last.Load() == status } }
	eventually(t, "200", answers(http.StatusOK))
	pauseFor(t.Context(), 2*time.Second)
	away()
	gone := time.Now()
	eventually(t, "503", answers(http.StatusServiceUnavailable))
	assert.Less(t, time.Since(gone), 2500*time.Millisecond)
	back()
	eventually(t, "200 again", answers(http.StatusOK))
	stop()
	asking.Wait()
	writes := s.int(t, "SELECT count(*) FROM touches")
	assert.Positive(t, writes)
	assert.LessOrEqual(t, writes, int64(time.Since(begun)/time.Second)+1)
}

func TestHealthAnswersHEADAndShowsNothing(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	server := httptest.NewServer(in.Health())
	defer server.Close()
	resp := need(http.Head(server.URL))(t)
	resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	status, body := health(in.Health())
	assert.Equal(t, []any{http.StatusOK, "ok\n"}, []any{status, body})
	require.NoError(t, in.Close(t.Context()))
	status, body = health(in.Health())
	assert.Equal(t, []any{http.StatusServiceUnavailable, "unavailable\n"}, []any{status, body}, "at once, whatever was remembered")
}
