package heads_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// addPhrase is a change for Heads.Modify.
func addPhrase(phrase string) func(*heads.Head) error {
	return func(h *heads.Head) error {
		h.Phrases = append(h.Phrases, phrase)
		return nil
	}
}

func TestTwentyModifiesAtOnceAllSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHookWorld(t)
		w.everyReadIsSlow()
		client := w.client()
		want := make([]string, 20)
		atOnce(20, func(i int) {
			want[i] = fmt.Sprintf("phrase %02d", i)
			_, err := client.Heads.Modify(t.Context(), w.head, addPhrase(want[i]))
			assert.NoError(t, err)
		})
		assert.Equal(t, map[string]int{http.MethodGet: 20, http.MethodPut: 20}, w.tally())
		head, err := client.Heads.Get(t.Context(), w.head)
		require.NoError(t, err)
		assert.ElementsMatch(t, want, head.Phrases)
	})
}

func TestModifiesOfOtherHeadsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHookWorld(t)
		w.everyReadIsSlow()
		ids := []string{w.head, w.AddHead(headstest.Head{})}
		client, start := w.client(), time.Now()
		atOnce(2, func(i int) {
			_, err := client.Heads.Modify(t.Context(), ids[i], addPhrase("hello"))
			assert.NoError(t, err)
		})
		assert.Equal(t, time.Second, time.Since(start), "one read")
	})
}

func TestModifyStopsWaitingWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHookWorld(t)
		w.everyReadIsSlow()
		client := w.client()
		first := make(chan error)
		go func() {
			_, err := client.Heads.Modify(t.Context(), w.head, addPhrase("first"))
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := client.Heads.Modify(ctx, w.head, addPhrase("second"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "heads: Heads.Modify: nothing was sent")
		require.NoError(t, <-first)
		head, err := client.Heads.Get(t.Context(), w.head)
		require.NoError(t, err)
		assert.True(t, slices.Equal([]string{"first"}, head.Phrases))
	})
}
