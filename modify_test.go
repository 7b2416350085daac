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
		w := newWorld(t)
		w.everyReadIsSlow()
		client := w.client()
		want := make([]string, 20)
		heads.InParallel(20, func(i int) {
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
		w := newWorld(t)
		w.everyReadIsSlow()
		ids := []string{w.head, w.AddHead(headstest.Head{})}
		client, start := w.client(), time.Now()
		heads.InParallel(2, func(i int) {
			_, err := client.Heads.Modify(t.Context(), ids[i], addPhrase("hello"))
			assert.NoError(t, err)
		})
		assert.Equal(t, time.Second, time.Since(start), "one read")
	})
}

func TestModifyStopsWaitingWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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

// answering makes the emulator answer one request of a method with body, without
// effect.
func (w *world) answering(method, body string) {
	w.Inject(headstest.Fault{Method: method, Status: http.StatusOK, Body: body, Times: 1})
}

func TestChangeIsReadBackUnlessItsAnswerProvesIt(t *testing.T) {
	changes := map[string]struct {
		method string
		call   func(*testing.T, *world, int64) error
	}{
		"Heads.Modify": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			_, err := w.client().Heads.Modify(t.Context(), w.head, addPhrase("hello"))
			return err
		}},
		"ConversationSettings.PutTool": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			_, err := w.client().ConversationSettings.PutTool(t.Context(), w.head, numberedTool(1))
			return err
		}},
		"Webhooks.Modify": {http.MethodPatch, func(t *testing.T, w *world, id int64) error {
			_, err := w.client().Webhooks.Modify(t.Context(), id, func(hook *heads.Webhook) error {
				hook.EndConversation = !hook.EndConversation
				return nil
			})
			return err
		}},
		"Webhooks.Ensure": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			_, err := w.client().Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{})
			return err
		}},
		"Webhooks.Ensure of other events": {http.MethodPatch, func(t *testing.T, w *world, _ int64) error {
			_, err := w.client().Webhooks.Ensure(t.Context(), w.spec(heads.EventInactivityWarning), heads.EnsureOptions{})
			return err
		}},
	}
	for name, change := range changes {
		for _, page := range []string{"<html>canary: we are back soon</html>", `{"message":"canary"}`, `{}`, `false`, `{"id":"canary"}`} {
			t.Run(name+" "+page, func(t *testing.T) {
				w := newWorld(t)
				hook := w.add(t, hookURL, heads.EventStartConversation)
				w.answering(change.method, page)
				err := change.call(t, w, hook.ID)
				require.ErrorContains(t, err, "a follow-up read does not show the change")
				assert.NotContains(t, err.Error(), "canary")
				require.NoError(t, change.call(t, w, hook.ID), "it can be tried again")
			})
		}
		for answers, form := range map[string]headstest.Option{
			"empty": headstest.WithResponses(headstest.ResponsesEmpty), "true": headstest.WithResponses(headstest.ResponsesBool),
			"the record": headstest.WithResponses(headstest.ResponsesRecord),
		} {
			t.Run(name+" answered with "+answers, func(t *testing.T) {
				w := newWorld(t, form)
				hook := w.add(t, hookURL, heads.EventStartConversation)
				require.NoError(t, change.call(t, w, hook.ID))
				assert.LessOrEqual(t, w.tally()[http.MethodGet], 1, "no read after the change")
			})
		}
	}
}

func TestDeleteIsReadBackAfterAPage(t *testing.T) {
	const page = "<html>canary: we are back soon</html>"
	t.Run("still there", func(t *testing.T) {
		w := newWorld(t)
		hook := w.add(t, hookURL, heads.EventStartConversation)
		w.answering(http.MethodDelete, page)
		err := w.client().Webhooks.Delete(t.Context(), hook.ID)
		require.ErrorContains(t, err, "a follow-up read does not show the change")
		assert.NotContains(t, err.Error(), "canary")
		require.NoError(t, w.client().Webhooks.Delete(t.Context(), hook.ID), "it can be tried again")
		assert.Empty(t, w.registered(t))
	})
	t.Run("not read", func(t *testing.T) {
		w := newWorld(t)
		hook := w.add(t, hookURL, heads.EventStartConversation)
		w.answering(http.MethodDelete, page)
		w.answering(http.MethodGet, page)
		require.Error(t, w.client().Webhooks.Delete(t.Context(), hook.ID))
	})
	t.Run("any other answer is believed", func(t *testing.T) {
		w := newWorld(t)
		hook := w.add(t, hookURL, heads.EventStartConversation)
		w.answering(http.MethodDelete, `{"message":"deleted"}`)
		require.NoError(t, w.client().Webhooks.Delete(t.Context(), hook.ID))
		assert.Equal(t, []string{"DELETE /head-events/1"}, w.wire())
	})
	for answers, form := range map[string]headstest.Option{
		"empty": headstest.WithResponses(headstest.ResponsesEmpty), "true": headstest.WithResponses(headstest.ResponsesBool),
		"the record": headstest.WithResponses(headstest.ResponsesRecord),
	} {
		t.Run("answered with "+answers, func(t *testing.T) {
			w := newWorld(t, form)
			hook := w.add(t, hookURL, heads.EventStartConversation)
			require.NoError(t, w.client().Webhooks.Delete(t.Context(), hook.ID))
			assert.Equal(t, []string{"DELETE /head-events/1"}, w.wire())
		})
	}
}

func TestEnsureReadsBackARemovedDuplicateAfterAPage(t *testing.T) {
	w := newWorld(t)
	w.add(t, hookURL, heads.EventStartConversation)
	twin := w.add(t, hookURL, heads.EventStartConversation)
	w.answering(http.MethodDelete, "<html>we are back soon</html>")
	spec := w.spec()
	hook, err := w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: true})
	require.ErrorContains(t, err, "a follow-up read does not show the change")
	assert.Equal(t, []int64{twin.ID}, hook.Duplicates)
}
