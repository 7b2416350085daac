package timing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSleepEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Minute))
		assert.Equal(t, time.Minute, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, Sleep(ctx, time.Minute), context.DeadlineExceeded)
		assert.Equal(t, time.Minute+time.Second, time.Since(start))
		for range 100 { // a timer of 0 would win at times
			require.ErrorIs(t, Sleep(ctx, 0), context.DeadlineExceeded)
		}
	})
}

func TestOutliveEndsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, end := context.WithCancel(context.WithValue(t.Context(), key{}, "mine"))
		longer, cancel := Outlive(ctx, time.Minute)
		defer cancel()
		assert.Equal(t, "mine", longer.Value(key{}))
		<-time.After(time.Hour)
		require.NoError(t, longer.Err(), "it lasts as long as ctx")
		start := time.Now()
		end()
		<-longer.Done()
		assert.Equal(t, time.Minute, time.Since(start))

		longer, cancel = Outlive(t.Context(), time.Minute)
		cancel()
		require.ErrorIs(t, longer.Err(), context.Canceled)
	})
}
