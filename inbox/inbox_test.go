package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

func TestEventsOfASessionRunInTheirOrder(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		in := s.open(t)
		for n := range 100 {
			added, err := in.Append(t.Context(), newEvent(t, "head", fmt.Sprint("session", n%7), n))
			require.NoError(t, err)
			require.True(t, added)
		}
		var mu sync.Mutex
		seen := map[string][]int{}
		stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			seen[d.Event.SessionID] = append(seen[d.Event.SessionID], numberOf(d.Event))
			return nil
		})
		eventually(t, "everything handled", pendingIsZero(in))
		stop()
		total := 0
		for session, numbers := range seen {
			total += len(numbers)
			assert.IsIncreasing(t, numbers, session)
		}
		assert.Equal(t, 100, total)
		assert.Zero(t, s.int(t, "SELECT count(*) FROM heads_inbox_sessions"), "idle sessions leave no row")
	})
}

func TestCommitStoresEffectAndMarkTogether(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		in := s.open(t)
		s.exec(t, "CREATE TABLE visits (number BIGINT)")
		appendEvents(t, in, "one", 0, 20)
		attempts := make(chan int, 100)
		stop := background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
			err := d.Commit(ctx, func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, s.spelled("INSERT INTO visits VALUES ($1)"), numberOf(d.Event)); err != nil {
					return err
				}
				if d.Attempt == 1 && numberOf(d.Event)%5 == 0 {
					return errors.New("the effect fails after its insert")
				}
				return nil
			})
			attempts <- d.Attempt
			return err
		}, inbox.Backoff(at(time.Millisecond)))
		eventually(t, "everything handled", pendingIsZero(in))
		stop()
		assert.Len(t, attempts, 24)
		assert.EqualValues(t, 20, s.int(t, "SELECT count(*) FROM visits"))
		assert.EqualValues(t, 20, s.int(t, "SELECT count(DISTINCT number) FROM visits"))
	})
}
