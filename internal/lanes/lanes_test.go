package lanes_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/lanes"
)

// recorder works for a second on every item.
type recorder struct {
	mu        sync.Mutex
	now, most int
	done      []string
}

func (r *recorder) work(item string) {
	r.mu.Lock()
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	<-time.After(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
	r.done = append(r.done, item)
}

func TestLaneKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := lanes.New[string](3, 100, r.work)
		var want []string
		for i := range 10 {
			item := strconv.Itoa(i)
			want = append(want, item)
			require.True(t, q.Push("one", item, item))
		}
		<-time.After(11 * time.Second)
		synctest.Wait()
		assert.Equal(t, want, r.done)
		assert.Equal(t, 1, r.most, "a lane runs one item at a time")
	})
}

func TestLanesRunAtOnceUpToTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := lanes.New[string](3, 100, r.work)
		for i := range 6 {
			require.True(t, q.Push(fmt.Sprint("lane ", i), strconv.Itoa(i), strconv.Itoa(i)))
		}
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		assert.Len(t, r.done, 6)
		assert.Equal(t, 3, r.most)
	})
}

func TestFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := lanes.New[string](1, 2, r.work)
		for i := range 3 {
			assert.True(t, q.Push("one", strconv.Itoa(i), "x"), "one runs and two wait")
		}
		assert.False(t, q.Push("one", "3", "x"))
		assert.False(t, q.Holds("3"))
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		assert.True(t, q.Push("one", "3", "x"), "the first one made room")
		<-time.After(3 * time.Second)
	})
}

func TestKeysAreHeldFromPushToTheEndOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := lanes.New[string](1, 1, r.work)
		require.True(t, q.Push("one", "running", "x"))
		require.True(t, q.Push("one", "waiting", "x"))
		synctest.Wait()
		assert.True(t, q.Holds("running"))
		assert.True(t, q.Holds("waiting"))
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		assert.False(t, q.Holds("running"))
		<-time.After(time.Second)
		synctest.Wait()
		assert.False(t, q.Holds("waiting"))
	})
}

func TestDropReturnsWhatWaitsAndRefusesMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := lanes.New[string](1, 10, r.work)
		for _, item := range []string{"a", "b"} {
			require.True(t, q.Push("one", item, item))
		}
		require.True(t, q.Push("two", "c", "c"))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"b", "c"}, q.Drop())
		assert.True(t, q.Holds("a"), "what runs stays")
		assert.False(t, q.Holds("b"))
		assert.False(t, q.Push("three", "d", "d"))
		<-time.After(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"a"}, r.done)
		assert.Empty(t, q.Drop())
	})
}

func TestWorkThatEndsItsGoroutineTakesNoWorkerWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan string, 2)
		q := lanes.New[string](1, 10, func(item string) {
			ran <- item
			runtime.Goexit()
		})
		require.True(t, q.Push("one", "a", "a"))
		require.True(t, q.Push("one", "b", "b"))
		assert.Equal(t, "a", <-ran)
		assert.Equal(t, "b", <-ran)
	})
}
