package console

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTwoReadAtOneTimeAndOthersWaitTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit()
		var running, most atomic.Int32
		var busy atomic.Int32
		for range 60 {
			go func() {
				begun := time.Now()
				err := l.do(t.Context(), func(context.Context) error {
					most.Store(max(most.Load(), running.Add(1)))
					<-time.After(time.Second)
					running.Add(-1)
					return nil
				})
				if err != nil {
					assert.Equal(t, errBusy, err)
					assert.Equal(t, 2*time.Second, time.Since(begun))
					busy.Add(1)
				}
			}()
		}
		<-time.After(time.Minute)
		assert.EqualValues(t, 2, most.Load())
		assert.EqualValues(t, 58, busy.Load(), "a place rests longer than they wait")
	})
}

func TestReadIsCutOffAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit()
		begun := time.Now()
		err := l.do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		assert.ErrorContains(t, err, "longer than 2 s")
		assert.Equal(t, 2*time.Second, time.Since(begun))
		<-time.After(time.Minute)
	})
}

func TestLoneReaderHardlyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit()
		begun := time.Now()
		for range 10 {
			assert.NoError(t, l.do(t.Context(), func(context.Context) error {
				<-time.After(100 * time.Millisecond)
				return nil
			}))
		}
		assert.Equal(t, time.Second, time.Since(begun))
		<-time.After(time.Minute)
	})
}

func TestPlaceRestsWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit()
		var reads atomic.Int32
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 12 {
			go func() {
				for ctx.Err() == nil {
					_ = l.do(ctx, func(context.Context) error {
						<-time.After(10 * time.Millisecond)
						reads.Add(1)
						return nil
					})
				}
			}()
		}
		<-time.After(2 * time.Minute)
		assert.InDelta(t, 2*60*5, reads.Load(), 30, "each place is used for a twentieth of the time")
	})
}
