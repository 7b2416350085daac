package faultproxy_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/dev/faultproxy"
	"github.com/headsapi/heads-go/internal/exhaustive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	seed       = flag.Uint64("seed", 0, "seed of the faults; 0 draws one")
	operations = flag.Int("operations", exhaustive.Count(300, 1000), "how many operations are made")
)

// Whatever the network does, a change that the client reports as done is done, and
// one that it reports as refused is not. The connections use TLS, as in production,
// so a corrupted byte is detected.
func TestReportsAgreeWithTheServiceOverABadNetwork(t *testing.T) {
	*seed = cmp.Or(*seed, rand.Uint64())
	t.Logf("run it again with -seed %d", *seed)
	before := runtime.NumGoroutine()
	emulator := headstest.NewEmulator()
	service := httptest.NewUnstartedServer(emulator)
	service.Config.ErrorLog = log.New(io.Discard, "", 0) // broken handshakes are expected
	service.Config.ReadHeaderTimeout = 2 * time.Second
	service.StartTLS()

	const workers = 8
	var all sync.WaitGroup
	var done, refused, unknown atomic.Int64
	for i := range uint64(workers) {
		w := newWorker(t, emulator, service, *seed+i)
		w.done, w.refused, w.unknown = &done, &refused, &unknown
		all.Go(func() { w.work(*operations / workers) })
	}
	all.Wait()
	t.Logf("%d done, %d refused, %d unknown", done.Load(), refused.Load(), unknown.Load())
	assert.Greater(t, done.Load(), int64(*operations/2))
	assert.NotZero(t, unknown.Load(), "the network was too kind to show anything")

	service.Close()
	emulator.Close()
	for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; <-time.After(10 * time.Millisecond) {
		if time.Now().After(limit) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left behind:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// worker has its own head, proxy and client, so it knows every change of the head.
type worker struct {
	t                      *testing.T
	rand                   *rand.Rand
	proxy                  *faultproxy.Proxy
	bad                    *heads.Client // through the proxy
	good                   *heads.Client // directly to the emulator
	headID                 string
	done, refused, unknown *atomic.Int64 // of all workers
}

func newWorker(t *testing.T, emulator *headstest.Emulator, service *httptest.Server, seed uint64) *worker {
	t.Helper()
	proxy, err := faultproxy.New(service.Listener.Addr().String(), seed, 0.6)
	require.NoError(t, err)

	transport := service.Client().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true                                             // each attempt has its own connection
	transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0) // a full handshake costs more than all else
	transport.TLSHandshakeTimeout = 2 * time.Second                                // a handshake goes on after its attempt has ended
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, proxy.Addr())
	}
	bad, err := heads.New(service.URL, emulator.BearerToken(), heads.WithHTTPClient(&http.Client{Transport: transport}), heads.WithAttemptTimeout(250*time.Millisecond),
		heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 2, MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond}))
	require.NoError(t, err)
	good, err := heads.New("http://localhost", emulator.BearerToken(), heads.WithHTTPClient(&http.Client{Transport: emulator.Transport()}))
	require.NoError(t, err)
	headID := emulator.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
	return &worker{t: t, rand: rand.New(rand.NewPCG(seed, 2)), proxy: proxy, bad: bad, good: good, headID: headID}
}

func (w *worker) work(n int) {
	defer w.proxy.Close()
	changes := []func(i int){w.update, w.putTool, w.createWebhook, w.deleteWebhook}
	for i := range n {
		changes[w.rand.IntN(len(changes))](i)
	}
}

// judge counts an outcome and compares it with the state of the service. It first
// waits for connections that the client gave up, since they may still be under way.
func (w *worker) judge(what string, err error, happened func() bool) {
	w.proxy.Wait()
	var answer *heads.Error
	switch {
	case err == nil:
		w.done.Add(1)
		assert.True(w.t, happened(), "%s was reported as done", what)
	case errors.Is(err, heads.ErrInvalid), errors.As(err, &answer) && answer.StatusCode >= 400 && answer.StatusCode < 500:
		w.refused.Add(1)
		assert.False(w.t, happened(), "%s was reported as refused: %v", what, err)
	default:
		w.unknown.Add(1)
	}
}

func (w *worker) update(i int) {
	greeting := fmt.Sprintf("greeting %d", i)
	err := w.bad.Heads.Update(context.Background(), w.headID, heads.NewHeadUpdate().Greetings(greeting))
	w.judge("the update", err, func() bool { return w.head().Greetings == greeting })
}

// putTool reads, changes and writes the tools. All other tools must be kept.
func (w *worker) putTool(i int) {
	before := w.tools()
	name, description := fmt.Sprintf("tool_%d", i%5), fmt.Sprintf("Tool number %d.", w.rand.Uint64())
	_, err := w.bad.ConversationSettings.PutTool(context.Background(), w.headID, heads.Tool{Name: name, Description: description, URL: "https://app.example.com/" + name})
	w.judge("the tool", err, func() bool { return w.tools()[name] == description })
	after := w.tools()
	for old := range before {
		assert.Contains(w.t, after, old, "a tool was lost")
	}
}

func (w *worker) createWebhook(i int) {
	before, url := len(w.webhooks()), fmt.Sprintf("https://app.example.com/%d", i)
	_, err := w.bad.Webhooks.Create(context.Background(), heads.WebhookSpec{HeadID: w.headID, URL: url, Events: []heads.EventType{heads.EventStartConversation}})
	w.judge("the webhook", err, func() bool { return len(w.webhooks()) == before+1 })
	assert.LessOrEqual(w.t, len(w.webhooks()), before+1, "a create was retried")
}

func (w *worker) deleteWebhook(int) {
	hooks := w.webhooks()
	if len(hooks) == 0 {
		return
	}
	id := hooks[0].ID
	err := w.bad.Webhooks.Delete(context.Background(), id)
	w.judge("the removal", err, func() bool { return len(w.webhooks()) == 0 || w.webhooks()[0].ID != id })
}

func (w *worker) head() *heads.Head {
	head, err := w.good.Heads.Get(context.Background(), w.headID)
	require.NoError(w.t, err)
	return head
}

func (w *worker) webhooks() []heads.Webhook {
	hooks, err := w.good.Webhooks.List(context.Background(), w.headID)
	require.NoError(w.t, err)
	return hooks
}

// tools returns the descriptions of the tools by their names.
func (w *worker) tools() map[string]string {
	tools := map[string]string{}
	if settings := w.head().ConversationSettings; settings != nil {
		for _, tool := range settings.Tools {
			tools[tool.Name] = tool.Description
		}
	}
	return tools
}
