package keyed

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func takeLock(t *testing.T, l *Locks[string], key string) (unlock func()) {
	t.Helper()
	unlock, err := l.Lock(t.Context(), key)
	assert.NoError(t, err)
	return unlock
}

func TestLocksLetOneWaiterInAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks[string]
		var inside atomic.Int32
		leave := make(chan struct{})
		unlock := takeLock(t, &l, "key")
		for range 10 {
			go func() {
				defer takeLock(t, &l, "key")()
				inside.Add(1)
				<-leave
				inside.Add(-1)
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

func TestLocksKeepKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks[string]
		first, second := takeLock(t, &l, "settings a"), takeLock(t, &l, "settings b") // waiting would be a deadlock
		second()
		first()
		assert.Empty(t, l.held)
	})
}

func TestLocksStopWaitingWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks[string]
		unlock := takeLock(t, &l, "key")
		ctx, cancel := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		go func() {
			_, err := l.Lock(ctx, "key")
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
