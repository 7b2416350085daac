package heads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func numberedTool(i int) heads.Tool {
	return heads.Tool{
		Name: fmt.Sprintf("tool_%02d", i), Description: "Does one thing.", URL: "https://tools.example.com/one",
		Parameters: []heads.ToolParameter{{Name: "day", Type: "string", Description: "Day of the week."}},
	}
}

// toolNames returns the names of the tools that a head has, sorted.
func (w *world) toolNames(t *testing.T) []string {
	t.Helper()
	settings := heads.Must(w.client().ConversationSettings.Get(context.Background(), w.head))(t)
	names := []string{}
	for _, tool := range settings.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// turns are the calls that take turns with others of the same head.
var turns = map[string]struct {
	call  func(ctx context.Context, c *heads.Client, headID string, i int) error
	done  func(*heads.Head) int // how many of the calls the head shows
	reads int                   // of a call
}{
	"ConversationSettings.PutTool": {
		func(ctx context.Context, c *heads.Client, headID string, i int) error {
			_, err := c.ConversationSettings.PutTool(ctx, headID, numberedTool(i))
			return err
		},
		func(h *heads.Head) int { return len(h.ConversationSettings.Tools) }, 1,
	},
	"Heads.Modify": {
		func(ctx context.Context, c *heads.Client, headID string, i int) error {
			_, err := c.Heads.Modify(ctx, headID, addPhrase(fmt.Sprint("phrase ", i)))
			return err
		},
		func(h *heads.Head) int { return len(h.Phrases) }, 1,
	},
	"Webhooks.Ensure": {
		func(ctx context.Context, c *heads.Client, headID string, _ int) error {
			spec := heads.WebhookSpec{HeadID: headID, URL: hookURL, Events: []heads.EventType{heads.EventStartConversation}}
			_, err := c.Webhooks.Ensure(ctx, spec, heads.EnsureOptions{})
			return err
		},
		nil, 2,
	},
}

func TestCallsOfOneHeadTakeTurns(t *testing.T) {
	for name, turn := range turns {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.everyReadIsSlow()
			client := w.client()
			heads.InParallel(50, func(i int) { assert.NoError(t, turn.call(t.Context(), client, w.head, i)) })
			if turn.done == nil {
				assert.Len(t, w.registered(t), 1)
				return
			}
			assert.Equal(t, map[string]int{http.MethodGet: 50, http.MethodPut: 50}, w.tally())
			head := heads.Must(client.Heads.Get(t.Context(), w.head))(t)
			assert.Equal(t, 50, turn.done(head), "all of them survive")
		})
	}
}

func TestCallsOfOtherHeadsDoNotWait(t *testing.T) {
	for name, turn := range turns {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.everyReadIsSlow()
			ids := []string{w.head, w.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})}
			client, start := w.client(), time.Now()
			heads.InParallel(2, func(i int) { assert.NoError(t, turn.call(t.Context(), client, ids[i], i)) })
			assert.Equal(t, time.Duration(turn.reads)*time.Second, time.Since(start))
		})
	}
}

func TestWaitForATurnEndsWithItsContext(t *testing.T) {
	for name, turn := range turns {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.everyReadIsSlow()
			client := w.client()
			first := make(chan error)
			go func() { first <- turn.call(t.Context(), client, w.head, 1) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			start := time.Now()
			err := turn.call(ctx, client, w.head, 2)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "heads: "+name+": nothing was sent")
			assert.Equal(t, time.Second/2, time.Since(start))
			require.NoError(t, <-first)
			assert.Equal(t, turn.reads, w.tally()[http.MethodGet], "of the first alone")
		})
	}
}

func TestEveryChangeOfSettingsWaitsForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.everyReadIsSlow()
		client := w.client().ConversationSettings
		heads.Must(client.SetTools(t.Context(), w.head, numberedTool(0), numberedTool(1), numberedTool(2)))(t)
		changes := []func() (*heads.ConversationSettings, error){
			func() (*heads.ConversationSettings, error) {
				return client.PutTool(t.Context(), w.head, numberedTool(20))
			},
			func() (*heads.ConversationSettings, error) {
				return client.RemoveTool(t.Context(), w.head, numberedTool(1).Name)
			},
			func() (*heads.ConversationSettings, error) {
				return client.Modify(t.Context(), w.head, heads.Edit(func(cs *heads.ConversationSettings) { cs.Tools = append(cs.Tools, numberedTool(30)) }))
			},
			func() (*heads.ConversationSettings, error) {
				return client.Modify(t.Context(), w.head, func(cs *heads.ConversationSettings) error {
					return cs.SetExtra("model", json.RawMessage(`"large"`))
				})
			},
		}
		heads.InParallel(len(changes), func(i int) {
			assert.NoError(t, heads.ErrorOf(changes[i]()))
		})
		assert.Equal(t, []string{"tool_00", "tool_02", "tool_20", "tool_30"}, w.toolNames(t))
		settings := heads.Must(client.Get(t.Context(), w.head))(t)
		model, _ := settings.Extra("model")
		assert.Equal(t, `"large"`, string(model.Bytes()))
	})
}

func TestSetToolsWaitsForAModifyUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client := w.client().ConversationSettings
		inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			_, err := client.Modify(t.Context(), w.head, func(cs *heads.ConversationSettings) error {
				close(inside)
				<-leave
				cs.Tools = append(cs.Tools, numberedTool(1))
				return nil
			})
			done <- err
		}()
		<-inside
		go func() {
			done <- heads.ErrorOf(client.SetTools(t.Context(), w.head, numberedTool(2)))
		}()
		synctest.Wait()
		assert.Equal(t, map[string]int{http.MethodGet: 1}, w.tally(), "the read of Modify alone")
		close(leave)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		assert.Equal(t, []string{"tool_02"}, w.toolNames(t), "the later one wins")
	})
}

func TestFailedChangeOfSettingsLetsTheNextOneStart(t *testing.T) {
	for name, failing := range map[string]func(*testing.T, *world, *heads.ConversationSettingsService){
		"error of the function": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			mine := errors.New("not today")
			settings, err := client.Modify(t.Context(), w.head, func(*heads.ConversationSettings) error { return mine })
			assert.Nil(t, settings)
			assert.Same(t, mine, err, "the error itself, not a wrapped one")
		},
		"panic of the function": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			assert.Panics(t, func() {
				_, _ = client.Modify(t.Context(), w.head, func(*heads.ConversationSettings) error { panic("not today") })
			})
		},
		"refused read": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			w.Inject(headstest.Fault{Method: http.MethodGet, Status: 403, Times: 1})
			require.ErrorIs(t, heads.ErrorOf(client.PutTool(t.Context(), w.head, numberedTool(1))), heads.ErrForbidden)
		},
		"refused write": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			w.Inject(headstest.Fault{Method: http.MethodPut, Status: 403, Times: 1})
			require.ErrorIs(t, heads.ErrorOf(client.PutTool(t.Context(), w.head, numberedTool(1))), heads.ErrForbidden)
		},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			client := w.client().ConversationSettings
			failing(t, w, client)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			heads.Must(client.PutTool(ctx, w.head, numberedTool(2)))(t)
			assert.Equal(t, []string{"tool_02"}, w.toolNames(t))
		})
	}
}

// addPhrase is a change for Heads.Modify.
func addPhrase(phrase string) func(*heads.Head) error {
	return heads.Edit(func(h *heads.Head) { h.Phrases = append(h.Phrases, phrase) })
}

// answering makes the emulator answer one request of a method with body, without
// effect.
func (w *world) answering(method, body string) {
	w.Inject(headstest.Fault{Method: method, Status: http.StatusOK, Body: body, Times: 1})
}

func TestChangeIsReadBackUnlessItsAnswerProvesIt(t *testing.T) {
	for name, change := range map[string]struct {
		method string
		call   func(*testing.T, *world, int64) error
	}{
		"Heads.Modify": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			return heads.ErrorOf(w.client().Heads.Modify(t.Context(), w.head, addPhrase("hello")))
		}},
		"ConversationSettings.PutTool": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			return heads.ErrorOf(w.client().ConversationSettings.PutTool(t.Context(), w.head, numberedTool(1)))
		}},
		"Webhooks.Modify": {http.MethodPatch, func(t *testing.T, w *world, id int64) error {
			_, err := w.client().Webhooks.Modify(t.Context(), id, heads.Edit(func(hook *heads.Webhook) { hook.EndConversation = !hook.EndConversation }))
			return err
		}},
		"Webhooks.Ensure": {http.MethodPut, func(t *testing.T, w *world, _ int64) error {
			return heads.ErrorOf(w.client().Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{}))
		}},
		"Webhooks.Ensure of other events": {http.MethodPatch, func(t *testing.T, w *world, _ int64) error {
			return heads.ErrorOf(w.client().Webhooks.Ensure(t.Context(), w.spec(heads.EventInactivityWarning), heads.EnsureOptions{}))
		}},
	} {
		for _, page := range []string{"<html>canary: we are back soon</html>", `{"message":"canary"}`, `{}`, `false`, `{"id":"canary"}`} {
			t.Run(name+" "+page, func(t *testing.T) {
				w := newWorld(t)
				hook := w.add(t, hookURL, heads.EventStartConversation)
				w.answering(change.method, page)
				err := change.call(t, w, hook.ID)
				require.ErrorContains(t, err, "a follow-up read does not show the change")
				assert.True(t, heads.Temporary(err))
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

var maintenanceAnswers = []heads.Step{
	heads.Answer(503, `busy`), heads.Answer(200, `<html>We are back soon</html>`), heads.Answer(429, `{"message":"slow down"}`),
	heads.Answer(200, `{"message":"We are back soon"}`), heads.Answer(200, `{}`), heads.Answer(200, `{"data":{}}`),
}

// underMaintenance makes a client get every third answer from a page in place
// of the service.
func (w *world) underMaintenance() heads.Option {
	var seen atomic.Int64
	return over(func(r *http.Request) (*http.Response, error) {
		n := seen.Add(1)
		if n%3 != 0 {
			return w.send(r)
		}
		if r.Body != nil {
			r.Body.Close()
		}
		return maintenanceAnswers[n/3%int64(len(maintenanceAnswers))](r)
	})
}

// modelOfAHead is what a head must have after the calls that reported success.
type modelOfAHead struct {
	id      string
	hook    int64
	phrases []string
	tools   []string
	extra   string
	events  []heads.EventType
}

// change makes the i-th call. If the call succeeds, change updates the model.
func (m *modelOfAHead) change(ctx context.Context, c *heads.Client, i int) error {
	tool := numberedTool(i)
	var err error
	next := *m
	switch i % 6 {
	case 0:
		next.phrases = append(slices.Clone(m.phrases), fmt.Sprint("phrase ", i))
		_, err = c.Heads.Modify(ctx, m.id, addPhrase(fmt.Sprint("phrase ", i)))
	case 1:
		next.tools = append(slices.Clone(m.tools), tool.Name)
		_, err = c.ConversationSettings.PutTool(ctx, m.id, tool)
	case 2:
		next.extra = fmt.Sprint(i)
		_, err = c.ConversationSettings.Modify(ctx, m.id, func(cs *heads.ConversationSettings) error {
			return cs.SetExtra("model", json.RawMessage(next.extra))
		})
	case 3:
		next.events = []heads.EventType{heads.EventStartConversation}
		if i%12 < 6 {
			next.events = append(next.events, heads.EventEndConversation)
		}
		_, err = c.Webhooks.Modify(ctx, m.hook, heads.Edit(func(w *heads.Webhook) { w.EndConversation = i%12 < 6 }))
	case 4:
		if len(m.tools) > 0 {
			next.tools = slices.Clone(m.tools[1:])
			_, err = c.ConversationSettings.RemoveTool(ctx, m.id, m.tools[0])
		}
	case 5:
		next.tools = []string{tool.Name}
		_, err = c.ConversationSettings.SetTools(ctx, m.id, tool)
	}
	if err == nil {
		*m = next
	}
	return err
}

func TestHeadsHaveExactlyWhatWasReportedAsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		models := make([]modelOfAHead, 8)
		for i := range models {
			id := w.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
			hook, _, err := w.AddWebhook(id, hookURL, heads.EventStartConversation)
			require.NoError(t, err)
			models[i] = modelOfAHead{id: id, hook: hook, events: []heads.EventType{heads.EventStartConversation}}
		}
		client := w.client(w.underMaintenance())
		var done, failed atomic.Int64
		heads.InParallel(len(models), func(i int) {
			for call := range 25 {
				if models[i].change(t.Context(), client, call) == nil {
					done.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
		t.Logf("%d calls reported as done, %d as failed", done.Load(), failed.Load())
		assert.EqualValues(t, 200, done.Load()+failed.Load())
		assert.NotZero(t, failed.Load())
		assert.Greater(t, done.Load(), int64(80))
		for _, want := range models {
			head := heads.Must(w.client().Heads.Get(t.Context(), want.id))(t)
			assert.Equal(t, want.phrases, append([]string(nil), head.Phrases...))
			names := []string{}
			extra := ""
			if head.ConversationSettings != nil {
				for _, tool := range head.ConversationSettings.Tools {
					names = append(names, tool.Name)
				}
				value, _ := head.ConversationSettings.Extra("model")
				extra = string(value.Bytes())
			}
			assert.Equal(t, append([]string{}, want.tools...), names)
			assert.Equal(t, want.extra, extra)
			hook := heads.Must(w.client().Webhooks.Get(t.Context(), want.hook))(t)
			assert.Equal(t, want.events, hook.Events())
		}
	})
}
