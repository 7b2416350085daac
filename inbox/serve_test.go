package inbox_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// service is a call of Serve.
type service struct {
	store  store
	in     *inbox.Inbox
	mux    *http.ServeMux
	server *http.Server
	url    string
	log    *lines
	client *http.Client

	stop  context.CancelFunc
	ended chan error
}

// newService opens an inbox whose handler has the path /events, and its health /health.
func newService(t *testing.T, s store) *service {
	t.Helper()
	sv := &service{store: s, mux: http.NewServeMux(), ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(sv.client.CloseIdleConnections)
	log, option := newLog()
	sv.log, sv.in = log, s.open(t, option)
	h := need(sv.in.Handler(heads.SharedKeys(sharedKey)))(t)
	sv.mux.Handle("/events", h)
	sv.mux.Handle("/health", sv.in.Health())
	sv.server = &http.Server{Handler: sv.mux}
	return sv
}

// serve calls Serve on a free port.
func (sv *service) serve(t *testing.T, f func(context.Context, *inbox.Delivery) error, opts ...inbox.ServeOption) net.Listener {
	t.Helper()
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	sv.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	sv.stop = stop
	t.Cleanup(stop)
	go func() { sv.ended <- sv.in.Serve(ctx, sv.server, f, append(opts, inbox.Listener(l))...) }()
	return l
}

func (sv *service) get(path string) int {
	resp, err := sv.client.Get(sv.url + path)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// pending opens the inbox again and returns the attempts of its waiting events.
func (sv *service) pending(t *testing.T) (attempts []int) {
	t.Helper()
	page, _, err := sv.store.open(t).List(t.Context(), inbox.Query{}, inbox.StateWaiting, 0)
	require.NoError(t, err)
	for _, e := range page {
		attempts = append(attempts, e.Attempts)
	}
	return attempts
}

func TestServeEndsFunctionsAndRequestsAndLosesNothing(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		sv := newService(t, s)
		began, release, asked := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
		sv.mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { close(asked); <-release })
		ended, order := 0, []string(nil)
		for n := range 51 {
			appendEvents(t, sv.in, fmt.Sprint("session", n), n, n+1)
		}
		sv.serve(t, func(context.Context, *inbox.Delivery) error {
			began <- struct{}{}
			<-release
			ended++
			return nil
		}, inbox.Concurrency(1), inbox.AtShutdown(func(ctx context.Context) error {
			order = append(order, "first")
			return sv.in.SQL().PingContext(ctx)
		}, func(context.Context) error { order = append(order, "second"); return nil }))
		await(t, began, "a function")
		status := make(chan int, 1)
		go func() { status <- sv.get("/slow") }()
		await(t, asked, "a request")
		sv.stop()
		eventually(t, "the listener is closed", func() bool {
			c, err := net.Dial("tcp", strings.TrimPrefix(sv.url, "http://"))
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		close(release)
		assert.Equal(t, http.StatusOK, await(t, status, "the answer"))
		require.NoError(t, await(t, sv.ended, "Serve"))
		assert.Equal(t, []string{"first", "second"}, order)
		assert.Equal(t, 1, ended)
		assert.Equal(t, make([]int, 50), sv.pending(t))
		requireClosed(t, sv.in)
		assert.Contains(t, sv.log.String(), "inbox: stopping")
	})
}

func TestShutdownDelayAnswersEventsAndFailsHealth(t *testing.T) {
	const delay = 300 * time.Millisecond
	forEachStore(t, func(t *testing.T, s store) {
		sv := newService(t, s)
		sv.serve(t, nothing, inbox.ShutdownDelay(delay))
		eventually(t, "it serves", func() bool { return sv.get("/health") == http.StatusOK })
		stopped := time.Now()
		sv.stop()
		for n := 0; time.Since(stopped) < delay/2; n++ {
			require.Equal(t, http.StatusServiceUnavailable, sv.get("/health"), "after %v", time.Since(stopped))
			require.Equal(t, http.StatusOK, deliver(sv.client, sv.url+"/events", eventBody("head", "session", n)))
		}
		require.NoError(t, await(t, sv.ended, "Serve"))
		assert.GreaterOrEqual(t, time.Since(stopped), delay)
	})
}

func TestRequestThatNeverEndsIsCutAtShutdownTimeout(t *testing.T) {
	sv := newService(t, newStore(t, "sqlite"))
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	sv.mux.HandleFunc("/never", func(http.ResponseWriter, *http.Request) { close(asked); <-release })
	called := false
	sv.serve(t, nothing, inbox.ShutdownTimeout(800*time.Millisecond), inbox.AtShutdown(func(ctx context.Context) error { called = ctx.Err() == nil; return nil }))
	status := make(chan int, 1)
	go func() { status <- sv.get("/never") }()
	await(t, asked, "the request")
	stopped := time.Now()
	err := sv.end(t)
	assert.Less(t, time.Since(stopped), 1400*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "inbox: serve: not ended after 800ms: requests: context deadline exceeded")
	assert.Zero(t, await(t, status, "the connection is cut"))
	assert.True(t, called, "AtShutdown has some time left")
}

func TestEveryFunctionOfAtShutdownIsCalled(t *testing.T) {
	sv := newService(t, newStore(t, "sqlite"))
	failed, called := errors.New("the meters are gone"), false
	release := make(chan struct{})
	defer close(release)
	sv.serve(t, nothing, inbox.ShutdownTimeout(300*time.Millisecond), inbox.AtShutdown(
		func(context.Context) error { return failed },
		func(context.Context) error { <-release; return nil },
	), inbox.AtShutdown(func(context.Context) error { called = true; return nil }))
	err := sv.end(t)
	require.ErrorIs(t, err, failed)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "inbox: serve: function 1 of AtShutdown: the meters are gone")
	assert.ErrorContains(t, err, "not ended after 300ms: function 2 of AtShutdown")
	assert.True(t, called)
}

func TestServeRefusesEveryBadArgumentBeforeItListens(t *testing.T) {
	busy := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer busy.Close()
	address := busy.Addr().String()
	for name, c := range map[string]struct {
		server *http.Server
		f      func(context.Context, *inbox.Delivery) error
		opts   []inbox.ServeOption
		want   []string
	}{
		"Addr in use and two bad options": {&http.Server{Addr: address}, nothing, []inbox.ServeOption{inbox.Concurrency(0), inbox.ShutdownDelay(-1)}, []string{"Concurrency", "ShutdownDelay"}},
		"all":                             {nil, nil, []inbox.ServeOption{nil, inbox.Listener(nil), inbox.ShutdownTimeout(0), inbox.AtShutdown(nil)}, []string{"server", "f ", "option", "Listener", "ShutdownTimeout", "AtShutdown"}},
		"no Addr":                         {&http.Server{}, nothing, nil, []string{`set it, as in ":8080"`}},
		"a nil RunOption":                 {&http.Server{Addr: address}, nothing, []inbox.ServeOption{inbox.RunOption(nil)}, []string{"option"}},
		"no certificate":                  {&http.Server{Addr: address, TLSConfig: &tls.Config{}}, nothing, nil, []string{"certificate"}},
		"a negative timeout":              {&http.Server{Addr: address}, nothing, []inbox.ServeOption{inbox.ShutdownTimeout(-1)}, []string{"ShutdownTimeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newStore(t, "sqlite").open(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			opts := append(c.opts, inbox.AtShutdown(func(context.Context) error { t.Error("AtShutdown was called"); return nil }))
			if c.server != nil && c.server.Addr != "" {
				opts = append([]inbox.ServeOption{inbox.Listener(l)}, opts...)
			} else {
				l.Close()
			}
			err = in.Serve(t.Context(), c.server, c.f, opts...)
			var invalid *heads.InvalidError
			require.ErrorAs(t, err, &invalid)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Len(t, strings.Split(err.Error(), "\n"), len(c.want))
			_, err = l.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			requireClosed(t, in)
		})
	}
}

func TestServeThatDoesNotBeginClosesEverything(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for addr, row := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a row
		want error
	}{busy.Addr().String(): {t.Context(), syscall.EADDRINUSE}, "127.0.0.1:0": {ended, nil}} {
		in, called := newStore(t, "sqlite").open(t), false
		err = in.Serve(row.ctx, &http.Server{Addr: addr}, nothing, inbox.AtShutdown(func(context.Context) error { called = true; return nil }))
		require.ErrorIs(t, err, row.want)
		assert.True(t, called)
		requireClosed(t, in)
	}
}

func TestServeListensOnAddr(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	server := &http.Server{Addr: "127.0.0.1:0", Handler: http.NotFoundHandler()}
	listens := make(chan net.Addr, 1)
	server.BaseContext = func(l net.Listener) context.Context { listens <- l.Addr(); return context.Background() }
	ended := make(chan error, 1)
	go func() { ended <- in.Serve(ctx, server, nothing) }()
	resp := need(http.Get("http://" + await(t, listens, "the listener").String()))(t)
	resp.Body.Close()
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	stop()
	require.NoError(t, await(t, ended, "Serve"))
	assert.Equal(t, 5*time.Second, server.ReadHeaderTimeout)
	assert.Nil(t, server.ErrorLog, "the inbox has no logger")
}

func TestServeEndsWhenItsListenerOrInboxIsClosed(t *testing.T) {
	for name, end := range map[string]func(*service, net.Listener){
		"listener": func(_ *service, l net.Listener) { l.Close() },
		"inbox":    func(sv *service, _ net.Listener) { _ = sv.in.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			sv := newService(t, newStore(t, "sqlite"))
			called := false
			l := sv.serve(t, nothing, inbox.ShutdownDelay(time.Hour), inbox.AtShutdown(func(context.Context) error { called = true; return nil }))
			eventually(t, "it serves", func() bool { return sv.get("/health") == http.StatusOK })
			end(sv, l)
			err := await(t, sv.ended, "Serve")
			if name == "inbox" {
				require.Equal(t, inbox.ErrClosed.Error(), err.Error())
				require.ErrorIs(t, err, inbox.ErrClosed)
			} else {
				require.ErrorIs(t, err, net.ErrClosed)
				assert.Contains(t, sv.log.String(), "level=ERROR")
			}
			assert.True(t, called)
			requireClosed(t, sv.in)
			assert.NotNil(t, sv.server.ErrorLog)
		})
	}
}

func TestServeOfAClosedInboxReturnsErrClosed(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	require.NoError(t, in.Close(t.Context()))
	require.ErrorIs(t, in.Serve(t.Context(), &http.Server{Addr: "127.0.0.1:0"}, nothing), inbox.ErrClosed)
}

func TestServeWithTLSSpeaksHTTP2(t *testing.T) {
	sv := newService(t, newStore(t, "sqlite"))
	certified := httptest.NewUnstartedServer(nil)
	certified.EnableHTTP2 = true
	certified.StartTLS()
	defer certified.Close()
	sv.server.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates}
	sv.serve(t, nothing)
	resp := need(certified.Client().Get(strings.Replace(sv.url, "http://", "https://", 1) + "/health"))(t)
	resp.Body.Close()
	assert.Equal(t, []any{2, http.StatusOK}, []any{resp.ProtoMajor, resp.StatusCode})
	require.NoError(t, sv.end(t))
}

// The compiler refuses an option of Serve in a call of Run.
func TestRunTakesNoOptionOfServe(t *testing.T) {
	run, serve := reflect.TypeFor[inbox.RunOption](), reflect.TypeFor[inbox.ServeOption]()
	assert.True(t, run.AssignableTo(serve))
	assert.False(t, serve.AssignableTo(run))
	for _, opt := range []any{inbox.Listener(nil), inbox.ShutdownDelay(0), inbox.ShutdownTimeout(1), inbox.AtShutdown()} {
		assert.False(t, reflect.TypeOf(opt).AssignableTo(run))
	}
}

func TestSignalsEndAServiceThatLosesNothing(t *testing.T) {
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			forEachStore(t, func(t *testing.T, s store) {
				in := s.open(t)
				s.createVisits(t)
				service := role{Role: "service", Kind: s.kind, Name: s.name, Lease: time.Second}
				p := start(t, service)
				url := p.line(t)
				require.Equal(t, http.StatusOK, deliver(http.DefaultClient, url, eventBody("head", "session", 1)))
				require.Equal(t, "inside", p.line(t))
				p.signal(t, syscall.SIGTERM)
				require.Equal(t, "stopping", p.line(t))
				if signals == 1 {
					p.say(t, "go on")
					require.NoError(t, p.cmd.Wait())
					assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM visits"))
				} else {
					signalled := time.Now()
					p.signal(t, syscall.SIGTERM)
					require.Error(t, p.cmd.Wait())
					assert.Less(t, time.Since(signalled), 100*time.Millisecond)
					assert.EqualValues(t, 0, s.int(t, "SELECT count(*) FROM visits"))
				}
				next := start(t, service)
				next.line(t)
				next.say(t, "go on\ngo on")
				eventually(t, "the event is handled", pendingIsZero(in))
				assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM visits"))
			})
		})
	}
}

// serveUntilTerm serves, and waits for a line of input in each function.
func serveUntilTerm(r role, in *inbox.Inbox) error {
	l, h, err := listen(in)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, func() { stop(); fmt.Println("stopping") })
	input := bufio.NewReader(os.Stdin)
	return in.Serve(ctx, &http.Server{Handler: h}, func(ctx context.Context, d *inbox.Delivery) error {
		fmt.Println("inside")
		_, _ = input.ReadString('\n')
		return r.store().commitVisit(ctx, d)
	}, inbox.Listener(l), inbox.Lease(r.Lease), inbox.Backoff(at(time.Millisecond)))
}

// end ends Serve and returns its error.
func (sv *service) end(t *testing.T) error {
	t.Helper()
	sv.stop()
	return await(t, sv.ended, "Serve")
}

func TestFunctionIsGivenUntilShutdownTimeout(t *testing.T) {
	for name, ignores := range map[string]bool{"waits for its context": false, "ignores its context": true} {
		t.Run(name, func(t *testing.T) {
			forEachStore(t, func(t *testing.T, s store) {
				sv := newService(t, s)
				appendEvents(t, sv.in, "session", 0, 1)
				began, release := make(chan struct{}), make(chan struct{})
				defer close(release)
				sv.serve(t, func(ctx context.Context, _ *inbox.Delivery) error {
					close(began)
					if ignores {
						<-release
					}
					<-ctx.Done()
					return ctx.Err()
				}, inbox.ShutdownTimeout(800*time.Millisecond))
				await(t, began, "the function")
				stopped := time.Now()
				require.NoError(t, sv.end(t))
				assert.Less(t, time.Since(stopped), 1400*time.Millisecond)
				warned := strings.Contains(sv.log.String(), `level=WARN msg="inbox: functions that ignore the end of their contexts were cut off" functions=1`)
				assert.Equal(t, ignores, warned, sv.log.String())
				assert.Equal(t, []int{0}, sv.pending(t), "the attempt is not counted")
			})
		})
	}
}
