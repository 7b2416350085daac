package heads

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func takeLock(t *testing.T, l *keyedLocks, key string) (unlock func()) {
	t.Helper()
	unlock, err := l.lock(t.Context(), key)
	require.NoError(t, err)
	return unlock
}

// The counter is not guarded by anything else, so the race detector sees a
// lock that orders nothing.
func TestKeyedLocksLetOneGoroutineInAtATime(t *testing.T) {
	var l keyedLocks
	var all sync.WaitGroup
	count := 0
	for range 100 {
		all.Go(func() {
			unlock, err := l.lock(t.Context(), "key")
			if assert.NoError(t, err) {
				count++
				unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, count)
	assert.Empty(t, l.held)
}

func TestKeyedLocksLetOneWaiterInAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keyedLocks
		var inside atomic.Int32
		leave := make(chan struct{})
		unlock := takeLock(t, &l, "key")
		for range 10 {
			go func() {
				unlock, err := l.lock(t.Context(), "key")
				if assert.NoError(t, err) {
					inside.Add(1)
					<-leave
					inside.Add(-1)
					unlock()
				}
			}()
		}
		synctest.Wait()
		assert.Zero(t, inside.Load(), "while the key is held")
		unlock()
		for range 10 {
			synctest.Wait()
			assert.EqualValues(t, 1, inside.Load())
			leave <- struct{}{}
		}
		synctest.Wait()
		assert.Zero(t, inside.Load())
		assert.Empty(t, l.held)
	})
}

func TestKeyedLocksKeepKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keyedLocks
		first, second := takeLock(t, &l, "settings a"), takeLock(t, &l, "settings b") // a wait would be a deadlock
		second()
		first()
		assert.Empty(t, l.held)
	})
}

func TestKeyedLocksTakeAnIDOfAnyCaseForTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keyedLocks
		unlock := takeLock(t, &l, "settings 3FA85F64-5717-4562-B3FC-2C963F66AFA6")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.lock(ctx, "settings 3fa85f64-5717-4562-b3fc-2c963f66afa6")
		require.ErrorIs(t, err, context.Canceled)
		unlock()
		assert.Empty(t, l.held)
	})
}

func TestKeyedLocksStopWaitingWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keyedLocks
		unlock := takeLock(t, &l, "key")
		ctx, cancel := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		go func() {
			_, err := l.lock(ctx, "key")
			waiter <- err
		}()
		synctest.Wait()
		assert.Empty(t, waiter)
		cancel()
		require.ErrorIs(t, <-waiter, context.Canceled)

		assert.Len(t, l.held, 1, "the key is still held by the first")
		unlock()
		takeLock(t, &l, "key")()
		assert.Empty(t, l.held)
	})
}
