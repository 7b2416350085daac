package heads_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	hooks := heads.Must(w.client().Webhooks.List(context.Background(), w.head))(t)
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

// onCreate makes a client call before when it sends a create, and after once it is answered.
func (w *world) onCreate(before, after func()) heads.Option {
	return over(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			before()
			defer after()
		}
		return w.send(r)
	})
}

const receiverURL = "https://app.example.test/events"

// crowd is an emulator with many heads, whose events go to a receiver that another
// program has registered. The redeliveries are the service's: after 1, 2 and 4 s.
type crowd struct {
	*headstest.Emulator
	receiver http.Handler
	heads    []string

	mu      sync.Mutex
	handled map[string]int // by head
}

func newCrowd(t *testing.T, size int) *crowd {
	t.Helper()
	c := &crowd{handled: map[string]int{}}
	c.Emulator = headstest.NewEmulator(headstest.WithDeliveryHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.receiver.ServeHTTP(w, r)
	})))
	for range size {
		id := c.AddHead(headstest.Head{EnableEvents: true})
		_, _, err := c.AddWebhook(id, receiverURL, heads.EventStartConversation)
		require.NoError(t, err)
		c.heads = append(c.heads, id)
	}
	return c
}

// start starts the receiver.
func (c *crowd) start(t *testing.T, keys heads.KeySource) {
	t.Helper()
	h := heads.Must(heads.NewEventHandler(keys, func(_ context.Context, e *heads.Event) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.handled[e.HeadID]++
		return nil
	}))(t)
	c.receiver = h
}

// talk makes an event of each head, spread over a second, and waits until the last one
// was delivered or given up.
func (c *crowd) talk(t *testing.T) {
	t.Helper()
	for _, id := range c.heads {
		require.NoError(t, c.StartSession(id).UserMessage("Hello"))
		<-time.After(time.Second / time.Duration(len(c.heads)))
	}
	final := 0
	heads.Must(c.WaitDelivery(t.Context(), func(d headstest.Delivery) bool {
		if d.Final {
			final++
		}
		return final == len(c.heads)
	}))(t)
}

// questions counts the requests for the keys of heads that the emulator doesn't have.
func (c *crowd) questions() (count int) {
	for _, r := range c.Requests() {
		if r.Path == "/head-events" && strings.Contains(r.Query, "headId=00000000-") {
			count++
		}
	}
	return count
}

func TestReceiverHandlesTheFirstEventsOfFiveHundredHeads(t *testing.T) {
	for name, latency := range map[string]time.Duration{"at once": 0, "a service that takes 100 ms": 100 * time.Millisecond} {
		heads.Bubble(t, name, func(t *testing.T) {
			c := newCrowd(t, 500)
			defer c.Close()
			c.Inject(headstest.Fault{Method: http.MethodGet, Latency: latency})
			c.start(t, c.Client().Webhooks.KeySource())
			c.talk(t)
			assert.Len(t, c.handled, 500)
		})
	}
}

// Ids that no head has can't be told from those of new heads, so they share a limit. Heads
// that the client has learned, or that WithHeads names, need none.
func TestUnknownIDsTakeNoEventFromAKnownHead(t *testing.T) {
	learn := func(t *testing.T, c *crowd, client *heads.Client) {
		for _, id := range c.heads {
			heads.Must(client.Webhooks.List(t.Context(), id))(t)
		}
	}
	for name, row := range map[string]struct {
		learn  func(*testing.T, *crowd, *heads.Client)
		source func(*crowd, *heads.Client) heads.KeySource
	}{
		"learned": {learn, func(_ *crowd, client *heads.Client) heads.KeySource { return client.Webhooks.KeySource() }},
		"learned long ago": {func(t *testing.T, c *crowd, client *heads.Client) {
			learn(t, c, client)
			<-time.After(3 * time.Hour)
		}, func(_ *crowd, client *heads.Client) heads.KeySource { return client.Webhooks.KeySource() }},
		"named": {nil, func(c *crowd, client *heads.Client) heads.KeySource {
			return client.Webhooks.KeySource(heads.WithHeads(c.heads...))
		}},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			c := newCrowd(t, 120)
			defer c.Close()
			c.Inject(headstest.Fault{Method: http.MethodGet, Latency: 20 * time.Millisecond})
			client := c.Client()
			if row.learn != nil {
				row.learn(t, c, client)
			}
			c.start(t, row.source(c, client))

			begun := time.Now()
			ctx, stop := context.WithCancel(t.Context())
			var unknown, watching sync.WaitGroup
			unknown.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					unknown.Go(func() { c.intrude(t, i) })
					<-time.After(time.Millisecond)
				}
			})
			watching.Go(func() {
				for second := 1; ctx.Err() == nil; second++ {
					<-time.After(time.Until(begun.Add(time.Duration(second) * time.Second)))
					assert.LessOrEqual(t, c.questions(), 20+5*second, "in %d s", second)
				}
			})
			<-time.After(2 * time.Second)
			c.talk(t)
			assert.Len(t, c.handled, 120)
			stop()
			unknown.Wait()
			watching.Wait()
			assert.GreaterOrEqual(t, c.questions(), 25, "unknown ids were sent")
		})
	}
}

// intrude sends the event of a head that no one has.
func (c *crowd) intrude(t *testing.T, i int) {
	e := heads.Event{Type: heads.EventStartConversation, HeadID: fmt.Sprintf("00000000-0000-4000-8000-%012x", i), SessionID: "s"}
	w := httptest.NewRecorder()
	c.receiver.ServeHTTP(w, headstest.NewEventRequest(receiverURL, e, "a guess"))
	assert.Contains(t, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, w.Code)
}

// What one client learns, its sources know, whether they were made before or after.
func TestKeySourceKnowsWhatItsClientHasLearned(t *testing.T) {
	for name, learn := range map[string]func(context.Context, *world, *heads.Client, heads.Webhook) error{
		"Ensure": func(ctx context.Context, w *world, client *heads.Client, _ heads.Webhook) error {
			return heads.ErrorOf(client.Webhooks.Ensure(ctx, w.spec(), heads.EnsureOptions{}))
		},
		"Create": func(ctx context.Context, w *world, client *heads.Client, _ heads.Webhook) error {
			return heads.ErrorOf(client.Webhooks.Create(ctx, w.spec()))
		},
		"Get": func(ctx context.Context, _ *world, client *heads.Client, hook heads.Webhook) error {
			return heads.ErrorOf(client.Webhooks.Get(ctx, hook.ID))
		},
		"List": func(ctx context.Context, w *world, client *heads.Client, _ heads.Webhook) error {
			return heads.ErrorOf(client.Webhooks.List(ctx, w.head))
		},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			hook := w.add(t, "https://other.example.test/events", heads.EventStartConversation)
			client := w.client()
			sources := []heads.KeySource{client.Webhooks.KeySource()}
			require.NoError(t, learn(t.Context(), w, client, hook))
			sources = append(sources, client.Webhooks.KeySource(heads.WithKeyTTL(time.Minute)))
			w.wire()
			for _, source := range sources {
				keys := heads.Must(source.Keys(t.Context(), heads.KeyHint{HeadID: w.head}))(t)
				want := map[string]int{"Ensure": 2, "Create": 1, "Get": 1, "List": 1}
				assert.Len(t, keys, want[name])
			}
			assert.Empty(t, w.wire(), "nothing is asked")
			keys := heads.Must(sources[0].Keys(t.Context(), heads.KeyHint{HeadID: w.head, Mismatch: true}))(t)
			assert.Contains(t, keys, hook.SharedKey.Reveal(), "the others are found when they are needed")
		})
	}
}

// Ensure lists a head without registrations before it creates one.
func TestEventRightAfterEnsureFindsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 0)
		defer c.Close()
		client := c.Client()
		id := c.AddHead(headstest.Head{})
		c.heads = []string{id}
		source := client.Webhooks.KeySource(heads.WithHeads(id))
		c.start(t, source)
		keys := heads.Must(source.Keys(t.Context(), heads.KeyHint{HeadID: id}))(t)
		require.Empty(t, keys)
		heads.Must(client.Webhooks.Ensure(t.Context(), heads.WebhookSpec{HeadID: id, URL: receiverURL, Events: []heads.EventType{heads.EventStartConversation}}, heads.EnsureOptions{}))(t)
		c.talk(t)
		assert.Equal(t, map[string]int{id: 1}, c.handled)
	})
}

// A registration can be moved to a head that had none a moment ago.
func TestEventAfterARegistrationWasMovedFindsItsKey(t *testing.T) {
	for name, move := range map[string]func(context.Context, *heads.Client, int64, string) error{
		"Update": func(ctx context.Context, client *heads.Client, id int64, head string) error {
			return client.Webhooks.Update(ctx, id, heads.NewWebhookUpdate().HeadID(head))
		},
		"Modify": func(ctx context.Context, client *heads.Client, id int64, head string) error {
			return heads.ErrorOf(client.Webhooks.Modify(ctx, id, heads.Edit(func(w *heads.Webhook) { w.HeadID = head })))
		},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			other := w.AddHead(headstest.Head{})
			hook := w.add(t, receiverURL, heads.EventStartConversation)
			client := w.client()
			source := client.Webhooks.KeySource()
			keys := heads.Must(source.Keys(t.Context(), heads.KeyHint{HeadID: other}))(t)
			require.Empty(t, keys)
			require.NoError(t, move(t.Context(), client, hook.ID, other))
			keys = heads.Must(source.Keys(t.Context(), heads.KeyHint{HeadID: other}))(t)
			assert.Equal(t, []string{hook.SharedKey.Reveal()}, keys)
		})
	}
}

func TestWithHeadsReadsWithTheRateLimitOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		defer c.Close()
		c.Inject(headstest.Fault{Method: http.MethodGet, Status: http.StatusServiceUnavailable, Times: 7})
		source := c.Client(heads.WithRateLimit(10, 1)).Webhooks.KeySource(heads.WithHeads(c.heads...))
		<-time.After(5 * time.Second)
		assert.LessOrEqual(t, len(c.Requests()), 51)
		<-time.After(10 * time.Second)
		asked := len(c.Requests())
		assert.Equal(t, 107, asked, "all of them, and those that failed again")
		for _, id := range c.heads {
			keys := heads.Must(source.Keys(t.Context(), heads.KeyHint{HeadID: strings.ToUpper(id)}))(t)
			assert.Len(t, keys, 1)
		}
		assert.Len(t, c.Requests(), asked)
	})
}

const (
	receiverAddr  = "HEADS_TEST_RECEIVER_ADDR"
	receiverStore = "HEADS_TEST_RECEIVER_STORE"
)

// TestMain is also the program of the receiver that a test kills.
func TestMain(m *testing.M) {
	if addr := os.Getenv(receiverAddr); addr != "" {
		fmt.Fprintln(os.Stderr, "receiver:", receive(addr, os.Getenv(receiverStore)))
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait for connections
		panic(err)
	}
	os.Exit(m.Run())
}

// receive appends the key of every event to a file, as a new user would write it. It
// prints the address at which it listens.
func receive(addr, store string) error {
	client, err := heads.NewFromEnv()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(store, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	handler, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(_ context.Context, e *heads.Event) error {
		_, err := file.WriteString(e.Key() + "\n") // one write: it stays when the process is killed
		return err
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return (&http.Server{Handler: handler}).Serve(listener)
}

// startReceiver starts a receiver and returns its address.
func startReceiver(t *testing.T, srv *headstest.Server, store string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), receiverAddr+"=127.0.0.1:0", receiverStore+"="+store, "HEADS_BASE_URL="+srv.URL, "HEADS_TOKEN="+srv.Token)
	cmd.Stderr = os.Stderr
	stdout := heads.Must(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := heads.Must(bufio.NewReader(stdout).ReadString('\n'))(t)
	return cmd, strings.TrimSpace(line)
}

// A receiver of 50 heads that is killed while sessions talk, and started again soon, gets every
// event: the redeliveries come after 1, 2 and 4 s, and those of heads that the new process has
// never met must not use them up. The heads were registered by another program.
func TestReceiverThatWasKilledGetsEveryEvent(t *testing.T) {
	t.Parallel()
	const headCount = 50
	sessions, down := exhaustive.Count(40, 200), time.Duration(exhaustive.Count(300, 2500))*time.Millisecond
	var current atomic.Value // the address of the receiver that runs, or ran last
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, current.Load().(string))
	}}
	defer transport.CloseIdleConnections()
	srv := headstest.NewServer(headstest.WithLoopbackHTTP(), headstest.WithDeliveryClient(&http.Client{Transport: transport}))
	defer srv.Close()
	var headIDs []string
	for range headCount {
		id := srv.AddHead(headstest.Head{EnableEvents: true})
		_, _, err := srv.AddWebhook(id, "http://127.0.0.1:1/events", heads.EventStartConversation, heads.EventEndConversation)
		require.NoError(t, err)
		headIDs = append(headIDs, id)
	}
	store := filepath.Join(t.TempDir(), "stored")
	receiver, addr := startReceiver(t, srv, store)
	current.Store(addr)

	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var restart <-chan time.Time
	for i := range sessions {
		select {
		case <-ticker.C:
		case <-restart:
			_, addr := startReceiver(t, srv, store)
			current.Store(addr)
		}
		if i == sessions/4 {
			require.NoError(t, receiver.Process.Kill())
			_ = receiver.Wait()
			restart = time.After(down)
		}
		session := srv.StartSession(headIDs[i%headCount])
		require.NoError(t, session.UserMessage("Hello"))
		require.NoError(t, session.Close())
	}
	ended, sent, refused := 0, map[string]bool{}, map[int]int{}
	heads.Must(srv.WaitDelivery(t.Context(), func(d headstest.Delivery) bool {
		sent[d.Event.Key()] = true
		if d.Status != http.StatusOK {
			refused[d.Status]++
		}
		if d.Final {
			ended++
		}
		return ended == 2*sessions
	}))(t)

	lost := maps.Clone(sent)
	for line := range bytes.Lines(heads.Must(os.ReadFile(store))(t)) {
		delete(lost, strings.TrimSpace(string(line)))
	}
	t.Logf("%d events sent, %d lost; deliveries that were not answered 200, by status: %v", len(sent), len(lost), refused)
	assert.Len(t, sent, 2*sessions)
	assert.Empty(t, lost)
	assert.NotEmpty(t, refused[0], "the receiver was down")
}
