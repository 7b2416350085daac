package heads_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// The base URL of a world has a path, so a request that does not start at the
// base URL misses the service.
const worldPrefix = "/v1"

// world is an emulator with one head. Its clients reach it without a socket, so
// it can be used in a synctest bubble.
type world struct {
	*headstest.Emulator
	head  string
	shown int // how much of the journal since has returned
}

func newWorld(t *testing.T, opts ...headstest.Option) *world {
	t.Helper()
	return newWorldOf(t, headstest.Head{OperationMode: heads.OperationModeOC}, opts...)
}

func newWorldOf(t *testing.T, head headstest.Head, opts ...headstest.Option) *world {
	t.Helper()
	w := &world{Emulator: headstest.NewEmulator(opts...)}
	t.Cleanup(w.Close)
	w.head = w.AddHead(head)
	return w
}

// client returns a new client. Each client stands for another program.
func (w *world) client(opts ...heads.Option) *heads.Client {
	all := []heads.Option{over(w.send), heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 3, MaxWait: time.Second})}
	c, err := heads.New("https://api.example.com"+worldPrefix, w.BearerToken(), append(all, opts...)...)
	if err != nil {
		panic(err)
	}
	return c
}

// send sends a request to the emulator.
func (w *world) send(r *http.Request) (*http.Response, error) {
	path, ok := strings.CutPrefix(r.URL.Path, worldPrefix)
	if !ok {
		return nil, fmt.Errorf("%s %s does not start at the base URL", r.Method, r.URL.Path)
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = path, strings.TrimPrefix(r.URL.RawPath, worldPrefix)
	return w.Transport().RoundTrip(r)
}

// transportFunc is a function in front of an emulator.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// over makes a client send its requests to a function.
func over(send transportFunc) heads.Option {
	return heads.WithHTTPClient(&http.Client{Transport: send})
}

// reply answers a request in place of the emulator.
func reply(status int, body string) (*http.Response, error) {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (w *world) spec(events ...heads.EventType) heads.WebhookSpec {
	if len(events) == 0 {
		events = []heads.EventType{heads.EventStartConversation}
	}
	return heads.WebhookSpec{HeadID: w.head, URL: hookURL, Events: events}
}

// add registers a URL as another program would.
func (w *world) add(t *testing.T, url string, events ...heads.EventType) heads.Webhook {
	t.Helper()
	id, key, err := w.AddWebhook(w.head, url, events...)
	require.NoError(t, err)
	return heads.Webhook{ID: id, SharedKey: heads.NewSecret(key)}
}

// registered returns the registrations of the head, oldest first.
func (w *world) registered(t *testing.T) []heads.Webhook {
	t.Helper()
	hooks, err := w.client().Webhooks.List(context.Background(), w.head)
	require.NoError(t, err)
	w.wire()
	return hooks
}

// wire returns the requests since the last call, in order, with HEAD for the
// id of the head.
func (w *world) wire() []string {
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

func (w *world) since() []headstest.Request {
	all := w.Requests()
	fresh := all[w.shown:]
	w.shown = len(all)
	return fresh
}

// tally counts the requests since the last call by method.
func (w *world) tally() map[string]int {
	count := map[string]int{}
	for _, r := range w.since() {
		count[r.Method]++
	}
	return count
}

// everyReadIsSlow makes every reader act on what was there a second ago, so
// that callers who do not wait for each other are sure to collide.
func (w *world) everyReadIsSlow() {
	w.Inject(headstest.Fault{Method: http.MethodGet, After: true, Latency: time.Second})
}

// beforeCreate makes a client call run before it sends a create.
func (w *world) beforeCreate(run func()) heads.Option {
	return over(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			run()
		}
		return w.send(r)
	})
}

// afterCreate makes a client call run after the service has answered a create.
func (w *world) afterCreate(run func()) heads.Option {
	return over(func(r *http.Request) (*http.Response, error) {
		resp, err := w.send(r)
		if r.Method == http.MethodPost {
			run()
		}
		return resp, err
	})
}
