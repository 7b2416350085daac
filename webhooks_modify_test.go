package heads_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

const readHook, writeHook = "GET /head-events/1", "PATCH /head-events/1"

// newModifyWorld has one registration, number 1, for two events.
func newModifyWorld(t *testing.T, opts ...headstest.Option) *world {
	t.Helper()
	w := newWorld(t, opts...)
	w.add(t, hookURL, heads.EventStartConversation, heads.EventTimeoutConversation)
	return w
}

func TestWebhooksModifySendsEveryWritableField(t *testing.T) {
	const otherHead = "9b2c1d3e-4f50-4a6b-8c7d-0e1f2a3b4c5d"
	tests := []struct {
		name   string
		change func(*heads.Webhook)
		body   string // with HEAD for the id of the head
	}{
		{"one event on", func(h *heads.Webhook) { h.EndConversation = true },
			`{"headId":"HEAD","webhookUrl":"` + hookURL + `","startConversation":true,"endConversation":true,"timeoutConversation":true,"inactivityWarning":false}`},
		{"one event off", func(h *heads.Webhook) { h.StartConversation = false },
			`{"headId":"HEAD","webhookUrl":"` + hookURL + `","startConversation":false,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false}`},
		{"URL", func(h *heads.Webhook) { h.URL = "https://hooks.example.com/new" },
			`{"headId":"HEAD","webhookUrl":"https://hooks.example.com/new","startConversation":true,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false}`},
		{"everything", func(h *heads.Webhook) {
			h.HeadID, h.URL = otherHead, "https://hooks.example.com/new"
			h.StartConversation, h.EndConversation, h.TimeoutConversation, h.InactivityWarning = false, true, false, true
		}, `{"headId":"` + otherHead + `","webhookUrl":"https://hooks.example.com/new","startConversation":false,"endConversation":true,"timeoutConversation":false,"inactivityWarning":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newModifyWorld(t)
			w.AddHead(headstest.Head{ID: otherHead})
			var before heads.Webhook
			got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				before = *h
				tt.change(h)
				return nil
			})
			require.NoError(t, err)
			sent := w.since()
			require.Len(t, sent, 2)
			assert.Equal(t, strings.ReplaceAll(tt.body, "HEAD", w.head), string(sent[1].Body))
			tt.change(&before)
			assert.Equal(t, before, *got, "the registration as it was left")
			after, err := w.client().Webhooks.Get(t.Context(), 1)
			require.NoError(t, err)
			after.UpdatedAt = got.UpdatedAt
			assert.Equal(t, got, after, "and as the service has it")
		})
	}
}

func TestWebhooksModifySendsNothingWhenNothingChanged(t *testing.T) {
	changes := map[string]func(*heads.Webhook){
		"nothing touched":   func(*heads.Webhook) {},
		"same values given": func(h *heads.Webhook) { h.URL, h.StartConversation = hookURL, true },
		"there and back": func(h *heads.Webhook) {
			h.InactivityWarning = true
			h.InactivityWarning = false
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newModifyWorld(t)
			got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				change(h)
				return nil
			})
			require.NoError(t, err)
			assert.Equal(t, []string{readHook}, w.wire())
			assert.Equal(t, []heads.Webhook{*got}, w.registered(t))
		})
	}
}

func TestWebhooksModifyRefusesAChangeOfAReadOnlyField(t *testing.T) {
	tests := []struct {
		name   string
		change func(*heads.Webhook)
		fields []string
	}{
		{"id", func(h *heads.Webhook) { h.ID = 2 }, []string{"id"}},
		{"creation", func(h *heads.Webhook) { h.CreatedAt = heads.Time{Time: time.Unix(0, 0)} }, []string{"createdAt"}},
		{"last change", func(h *heads.Webhook) { h.UpdatedAt.Text = "now" }, []string{"updatedAt"}},
		{"organisation", func(h *heads.Webhook) { h.OrgID = "" }, []string{"orgId"}},
		{"shared key", func(h *heads.Webhook) { h.SharedKey = heads.NewSecret("key-canary") }, []string{"sharedKey"}},
		{"beside a writable one", func(h *heads.Webhook) { h.EndConversation, h.OrgID = true, "" }, []string{"orgId"}},
		{"all at once", func(h *heads.Webhook) { *h = heads.Webhook{HeadID: h.HeadID, URL: h.URL} },
			[]string{"id", "createdAt", "updatedAt", "orgId", "sharedKey"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newModifyWorld(t)
			key := w.registered(t)[0].SharedKey.Reveal()
			got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				tt.change(h)
				return nil
			})
			assert.Nil(t, got)
			assert.Equal(t, tt.fields, refusedFields(t, "Webhooks.Modify", err))
			assert.NotContains(t, err.Error(), key)
			assert.NotContains(t, err.Error(), "key-canary")
			assert.Equal(t, []string{readHook}, w.wire())
		})
	}
}

func TestWebhooksModifyReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	w := newModifyWorld(t)
	mine := errors.New("not today")
	got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
		h.EndConversation = true
		return mine
	})
	assert.Nil(t, got)
	assert.Same(t, mine, err, "not wrapped")
	assert.Equal(t, []string{readHook}, w.wire())
}

func TestWebhooksModifyRefusesAURLThatTheServiceCouldNotCall(t *testing.T) {
	changes := map[string]func(*heads.Webhook){
		"plain http":    func(h *heads.Webhook) { h.URL = "http://hooks.example.com/in" },
		"no URL":        func(h *heads.Webhook) { h.URL = "" },
		"public id":     func(h *heads.Webhook) { h.HeadID = "li-28379" },
		"no head":       func(h *heads.Webhook) { h.HeadID = "" },
		"user and path": func(h *heads.Webhook) { h.URL = "https://me@hooks.example.com/in" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newModifyWorld(t)
			_, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				change(h)
				return nil
			})
			require.ErrorIs(t, err, heads.ErrInvalid)
			assert.Equal(t, []string{readHook}, w.wire())
		})
	}
}

func TestWebhooksModifyRefusesWhatItCannotRead(t *testing.T) {
	w := newModifyWorld(t)
	called := false
	change := func(*heads.Webhook) error {
		called = true
		return nil
	}
	for _, id := range []int64{0, -1} {
		_, err := w.client().Webhooks.Modify(t.Context(), id, change)
		require.ErrorIs(t, err, heads.ErrInvalid)
	}
	_, err := w.client().Webhooks.Modify(t.Context(), 1, nil)
	assert.Equal(t, []string{"change"}, refusedFields(t, "Webhooks.Modify", err))
	assert.Empty(t, w.wire())

	_, err = w.client().Webhooks.Modify(t.Context(), 99, change)
	require.ErrorIs(t, err, heads.ErrNotFound)
	assert.Equal(t, []string{"GET /head-events/99"}, w.wire())
	assert.False(t, called)
}

func TestWebhooksModifyReturnsARefusalOfThePatch(t *testing.T) {
	w := newModifyWorld(t)
	w.Inject(headstest.Fault{Method: http.MethodPatch, Status: 403})
	got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
		h.EndConversation = true
		return nil
	})
	require.ErrorIs(t, err, heads.ErrForbidden)
	assert.Nil(t, got)
	assert.Equal(t, []string{readHook, writeHook}, w.wire())
}

func TestWebhooksModifyTakesAnyAnswer(t *testing.T) {
	for _, responses := range []headstest.Responses{headstest.ResponsesEmpty, headstest.ResponsesRecord, headstest.ResponsesBool} {
		w := newModifyWorld(t, headstest.WithResponses(responses))
		got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
			h.EndConversation = true
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, got.Events(), w.registered(t)[0].Events())
	}
}

func TestWebhooksModifyTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModifyWorld(t)
		w.everyReadIsSlow()
		client := w.client().Webhooks
		changes := []func(*heads.Webhook){
			func(h *heads.Webhook) { h.EndConversation = true },
			func(h *heads.Webhook) { h.InactivityWarning = true },
			func(h *heads.Webhook) { h.URL = "https://hooks.example.com/new" },
		}
		heads.InParallel(len(changes), func(i int) {
			_, err := client.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				changes[i](h)
				return nil
			})
			assert.NoError(t, err)
		})
		hook := w.registered(t)[0]
		assert.True(t, hook.EndConversation && hook.InactivityWarning, "no change is lost")
		assert.Equal(t, "https://hooks.example.com/new", hook.URL)
	})
}

func TestEventsWithoutTypesCanBeFollowedByOne(t *testing.T) {
	w := newModifyWorld(t)
	err := w.client().Webhooks.Update(t.Context(), 1, heads.NewWebhookUpdate().Events().Event(heads.EventEndConversation, true))
	require.NoError(t, err)
	assert.Equal(t, []heads.EventType{heads.EventEndConversation}, w.registered(t)[0].Events())
	err = w.client().Webhooks.Update(t.Context(), 1, heads.NewWebhookUpdate().Events().Event(heads.EventEndConversation, false))
	assert.ErrorIs(t, err, heads.ErrInvalid)
}

// Modify reads, Ensure runs, and Modify writes a second later.
func TestEnsureAndModifyOfOneRegistrationTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModifyWorld(t)
		client := w.client().Webhooks
		modified := make(chan error)
		inside := make(chan struct{})
		go func() {
			_, err := client.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				close(inside)
				<-time.After(time.Second)
				h.InactivityWarning = true
				return nil
			})
			modified <- err
		}()
		<-inside
		go func() {
			_, err := client.Ensure(t.Context(), w.spec(heads.EventEndConversation), heads.EnsureOptions{})
			modified <- err
		}()
		require.NoError(t, <-modified)
		require.NoError(t, <-modified)
		assert.Equal(t, []heads.EventType{heads.EventEndConversation}, w.registered(t)[0].Events(), "what Ensure reported as done")
	})
}

func TestEnsureLeavesARegistrationThatModifyHasMoved(t *testing.T) {
	const elsewhere = "https://hooks.example.com/elsewhere"
	for name, duplicates := range map[string]int{"the one in use": 0, "a duplicate": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newModifyWorld(t)
				moved := int64(1)
				spec := w.spec(heads.EventEndConversation)
				if duplicates > 0 {
					moved = w.add(t, hookURL, heads.EventStartConversation).ID
				}
				client := w.client().Webhooks
				done := make(chan error)
				inside := make(chan struct{})
				go func() {
					_, err := client.Modify(t.Context(), moved, func(h *heads.Webhook) error {
						close(inside)
						<-time.After(time.Second)
						h.URL = elsewhere
						return nil
					})
					done <- err
				}()
				<-inside
				go func() {
					_, err := client.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: duplicates > 0})
					done <- err
				}()
				require.NoError(t, <-done)
				require.NoError(t, <-done)
				urls := map[string]int{}
				for _, hook := range w.registered(t) {
					urls[hook.URL]++
				}
				assert.Equal(t, map[string]int{elsewhere: 1, hookURL: 1}, urls)
			})
		})
	}
}
