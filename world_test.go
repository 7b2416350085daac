package heads_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// hookWorld is an emulator with one head, which is reached without a socket,
// so that it can stand in a synctest bubble.
type hookWorld struct {
	*headstest.Emulator
	head  string
	shown int // how much of the journal wire has returned
}

func newHookWorld(t *testing.T, opts ...headstest.Option) *hookWorld {
	t.Helper()
	w := &hookWorld{Emulator: headstest.NewEmulator(opts...)}
	t.Cleanup(w.Close)
	w.head = w.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
	return w
}

// client returns a further client of the world: for the emulator, a further
// program.
func (w *hookWorld) client(opts ...heads.Option) *heads.Client {
	all := []heads.Option{heads.WithHTTPClient(&http.Client{Transport: w.Transport()}), heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 3, MaxWait: time.Second})}
	c, err := heads.New("https://api.example.com", w.BearerToken(), append(all, opts...)...)
	if err != nil {
		panic(err)
	}
	return c
}

func (w *hookWorld) spec(events ...heads.EventType) heads.WebhookSpec {
	if len(events) == 0 {
		events = []heads.EventType{heads.EventStartConversation}
	}
	return heads.WebhookSpec{HeadID: w.head, URL: hookURL, Events: events}
}

// add registers a URL as another program would.
func (w *hookWorld) add(t *testing.T, url string, events ...heads.EventType) heads.Webhook {
	t.Helper()
	id, key, err := w.AddWebhook(w.head, url, events...)
	require.NoError(t, err)
	return heads.Webhook{ID: id, SharedKey: heads.Secret(key)}
}

// registered returns the registrations of the head, oldest first.
func (w *hookWorld) registered(t *testing.T) []heads.Webhook {
	t.Helper()
	hooks, err := w.client().Webhooks.List(context.Background(), w.head)
	require.NoError(t, err)
	w.wire()
	return hooks
}

// wire returns the requests since the last call, in order, with HEAD for the
// id of the head.
func (w *hookWorld) wire() []string {
	lines := []string{}
	for _, r := range w.since() {
		line := r.Method + " " + r.Path
		if r.Query != "" {
			line += "?" + r.Query
		}
		lines = append(lines, strings.ReplaceAll(line, w.head, "HEAD"))
	}
	return lines
}

func (w *hookWorld) since() []headstest.Request {
	all := w.Requests()
	fresh := all[w.shown:]
	w.shown = len(all)
	return fresh
}

// tally counts the requests since the last call by method.
func (w *hookWorld) tally() map[string]int {
	count := map[string]int{}
	for _, r := range w.since() {
		count[r.Method]++
	}
	return count
}

// everyReadIsSlow makes every reader act on what was there a second ago, so
// that callers who do not wait for each other are sure to collide.
func (w *hookWorld) everyReadIsSlow() {
	w.Inject(headstest.Fault{Method: http.MethodGet, After: true, Latency: time.Second})
}

// atOnce runs f n times in parallel.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// transportFunc is a transport in front of an emulator's.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// beforeCreate returns a transport that runs a function when a create is about
// to reach the service.
func (w *hookWorld) beforeCreate(run func()) transportFunc {
	return func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			run()
		}
		return w.Transport().RoundTrip(r)
	}
}

// afterCreate returns a transport that runs a function when the service has
// answered a create.
func (w *hookWorld) afterCreate(run func()) transportFunc {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := w.Transport().RoundTrip(r)
		if r.Method == http.MethodPost {
			run()
		}
		return resp, err
	}
}
