package heads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

var maintenanceAnswers = []struct {
	status int
	body   string
}{
	{503, `busy`}, {200, `<html>We are back soon</html>`}, {429, `{"message":"slow down"}`},
	{200, `{"message":"We are back soon"}`}, {200, `{}`}, {200, `{"data":{}}`},
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
		answer := maintenanceAnswers[n/3%int64(len(maintenanceAnswers))]
		return reply(answer.status, answer.body)
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
		_, err = c.Webhooks.Modify(ctx, m.hook, func(w *heads.Webhook) error {
			w.EndConversation = i%12 < 6
			return nil
		})
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
			head, err := w.client().Heads.Get(t.Context(), want.id)
			require.NoError(t, err)
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
			hook, err := w.client().Webhooks.Get(t.Context(), want.hook)
			require.NoError(t, err)
			assert.Equal(t, want.events, hook.Events())
		}
	})
}
