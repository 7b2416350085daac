package heads_test

import (
	"context"
	"encoding/json"
	"errors"
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

func numberedTool(i int) heads.Tool {
	return heads.Tool{
		Name: fmt.Sprintf("tool_%02d", i), Description: "Does one thing.", URL: "https://tools.example.com/one",
		Parameters: []heads.ToolParameter{{Name: "day", Type: "string", Description: "Day of the week."}},
	}
}

// toolNames returns the names of the tools that a head has, sorted.
func (w *world) toolNames(t *testing.T) []string {
	t.Helper()
	settings, err := w.client().ConversationSettings.Get(context.Background(), w.head)
	require.NoError(t, err)
	names := []string{}
	for _, tool := range settings.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func TestFiftyPutToolsAtOnceAllSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.everyReadIsSlow()
		client := w.client()
		want := make([]string, 50)
		heads.InParallel(50, func(i int) {
			want[i] = numberedTool(i).Name
			_, err := client.ConversationSettings.PutTool(t.Context(), w.head, numberedTool(i))
			assert.NoError(t, err)
		})
		assert.Equal(t, map[string]int{http.MethodGet: 50, http.MethodPut: 50}, w.tally())
		assert.Equal(t, want, w.toolNames(t))
	})
}

func TestEveryChangeOfSettingsWaitsForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.everyReadIsSlow()
		client := w.client().ConversationSettings
		_, err := client.SetTools(t.Context(), w.head, numberedTool(0), numberedTool(1), numberedTool(2))
		require.NoError(t, err)
		changes := []func() (*heads.ConversationSettings, error){
			func() (*heads.ConversationSettings, error) {
				return client.PutTool(t.Context(), w.head, numberedTool(20))
			},
			func() (*heads.ConversationSettings, error) {
				return client.RemoveTool(t.Context(), w.head, numberedTool(1).Name)
			},
			func() (*heads.ConversationSettings, error) {
				return client.Modify(t.Context(), w.head, func(cs *heads.ConversationSettings) error {
					cs.Tools = append(cs.Tools, numberedTool(30))
					return nil
				})
			},
			func() (*heads.ConversationSettings, error) {
				return client.Modify(t.Context(), w.head, func(cs *heads.ConversationSettings) error {
					return cs.SetExtra("model", json.RawMessage(`"large"`))
				})
			},
		}
		heads.InParallel(len(changes), func(i int) {
			_, err := changes[i]()
			assert.NoError(t, err)
		})
		assert.Equal(t, []string{"tool_00", "tool_02", "tool_20", "tool_30"}, w.toolNames(t))
		settings, err := client.Get(t.Context(), w.head)
		require.NoError(t, err)
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
			_, err := client.SetTools(t.Context(), w.head, numberedTool(2))
			done <- err
		}()
		synctest.Wait()
		assert.Equal(t, map[string]int{http.MethodGet: 1}, w.tally(), "the read of Modify alone")
		close(leave)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		assert.Equal(t, []string{"tool_02"}, w.toolNames(t), "the later one wins")
	})
}

func TestChangesOfSettingsOfOtherHeadsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.everyReadIsSlow()
		ids := []string{w.head, w.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})}
		client, start := w.client(), time.Now()
		heads.InParallel(2, func(i int) {
			_, err := client.ConversationSettings.PutTool(t.Context(), ids[i], numberedTool(i))
			assert.NoError(t, err)
		})
		assert.Equal(t, time.Second, time.Since(start), "one read")
	})
}

func TestChangeOfSettingsStopsWaitingWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.everyReadIsSlow()
		client := w.client().ConversationSettings
		first := make(chan error)
		go func() {
			_, err := client.PutTool(t.Context(), w.head, numberedTool(1))
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := client.PutTool(ctx, w.head, numberedTool(2))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "heads: ConversationSettings.PutTool: nothing was sent")
		require.NoError(t, <-first)
		assert.Equal(t, map[string]int{http.MethodGet: 1, http.MethodPut: 1}, w.tally(), "of the first alone")
		assert.Equal(t, []string{"tool_01"}, w.toolNames(t))
	})
}

func TestFailedChangeOfSettingsLetsTheNextOneStart(t *testing.T) {
	failures := map[string]func(*testing.T, *world, *heads.ConversationSettingsService){
		"error of the function": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			mine := errors.New("not today")
			_, err := client.Modify(t.Context(), w.head, func(*heads.ConversationSettings) error { return mine })
			assert.Same(t, mine, err)
		},
		"panic of the function": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			assert.Panics(t, func() {
				_, _ = client.Modify(t.Context(), w.head, func(*heads.ConversationSettings) error { panic("not today") })
			})
		},
		"refused read": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			w.Inject(headstest.Fault{Method: http.MethodGet, Status: 403, Times: 1})
			_, err := client.PutTool(t.Context(), w.head, numberedTool(1))
			require.ErrorIs(t, err, heads.ErrForbidden)
		},
		"refused write": func(t *testing.T, w *world, client *heads.ConversationSettingsService) {
			w.Inject(headstest.Fault{Method: http.MethodPut, Status: 403, Times: 1})
			_, err := client.PutTool(t.Context(), w.head, numberedTool(1))
			require.ErrorIs(t, err, heads.ErrForbidden)
		},
	}
	for name, failing := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client := w.client().ConversationSettings
				failing(t, w, client)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := client.PutTool(ctx, w.head, numberedTool(2))
				require.NoError(t, err)
				assert.Equal(t, []string{"tool_02"}, w.toolNames(t))
			})
		})
	}
}

// A copy of a tool is checked like any other tool that is passed in.
func TestCopyOfAToolIsRefused(t *testing.T) {
	for _, mode := range []heads.OperationMode{heads.OperationModeOC, heads.OperationModeTTT} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			id := w.AddHead(headstest.Head{OperationMode: mode, Fields: map[string]any{
				"conversationSettings": map[string]any{"tools": []heads.Tool{numberedTool(1), numberedTool(2)}},
			}})
			w.since()
			_, err := w.client().ConversationSettings.Modify(t.Context(), id, func(cs *heads.ConversationSettings) error {
				cs.Tools = append(cs.Tools, cs.Tools[0])
				return nil
			})
			assert.ErrorIs(t, err, heads.ErrInvalid)
			assert.Equal(t, map[string]int{http.MethodGet: 1}, w.tally())
		})
	}
}
