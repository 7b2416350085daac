package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	defaultShutdownTimeout = 25 * time.Second // Kubernetes kills a process after 30
	readHeaderTimeout      = 5 * time.Second
	// lateGrace is for a step of the shutdown that begins, or is told to end, at ShutdownTimeout.
	lateGrace = 250 * time.Millisecond
)

// ServeOption configures Serve. Every RunOption is one.
type ServeOption interface {
	serve(s *serving) error
}

func (o RunOption) serve(s *serving) error { //nolint:unparam // the result of the interface
	s.runOptions = append(s.runOptions, o)
	return nil
}

type serveOption func(*serving) error

func (o serveOption) serve(s *serving) error { return o(s) }

// Listener makes Serve accept connections from l instead of listening on the server's Addr. Serve
// closes it.
func Listener(l net.Listener) ServeOption {
	return serveOption(func(s *serving) error {
		s.listener = l
		return refuse(l == nil, "Serve", "Listener", "is nil", "leave the option out to listen on the server's Addr")
	})
}

// ShutdownDelay makes Serve go on for d after its context has ended, while Health answers 503, so
// that a load balancer stops sending requests before the listener is closed. The default is 0.
func ShutdownDelay(d time.Duration) ServeOption {
	return serveOption(func(s *serving) error {
		s.delay = d
		return refuse(d < 0, "Serve", "ShutdownDelay", fmt.Sprintf("is %v, which is negative", d), "give 0 or more")
	})
}

// ShutdownTimeout limits the shutdown, without its delay. The default is 25 seconds, since
// Kubernetes kills a process after 30. Functions get a second less, or a quarter of a timeout below
// four seconds.
func ShutdownTimeout(d time.Duration) ServeOption {
	return serveOption(func(s *serving) error {
		if d > 0 {
			s.timeout = d
		}
		return refuse(d <= 0, "Serve", "ShutdownTimeout", fmt.Sprintf("is %v", d), "give more than 0")
	})
}

// AtShutdown adds functions that Serve calls in order when requests and events have ended, such as
// the Shutdown of a ToolHandler or of meters. SQL can still be used. All are called, even if one
// fails. Their context ends at ShutdownTimeout, or 250 ms later if little time is left.
func AtShutdown(fs ...func(context.Context) error) ServeOption {
	return serveOption(func(s *serving) error {
		s.atShutdown = append(s.atShutdown, fs...)
		isNil := func(f func(context.Context) error) bool { return f == nil }
		return refuse(slices.ContainsFunc(fs, isNil), "Serve", "AtShutdown", "has a function that is nil", "leave it out")
	})
}

// serving is the state of one call of Serve.
type serving struct {
	in         *Inbox
	server     *http.Server
	runOptions []RunOption
	listener   net.Listener
	delay      time.Duration
	timeout    time.Duration
	atShutdown []func(context.Context) error

	run    *run
	served chan error
	ran    chan error

	mu    sync.Mutex
	fault error    // of the server, Run and the steps of the shutdown, joined
	late  []string // what had not ended
}

// Serve answers requests with server and calls f for every stored event, as Run does, until ctx
// ends. Then it shuts everything down:
//
//   - Health answers 503. Serve goes on for ShutdownDelay.
//   - The listener is closed, and requests are answered; every handler of Handler waits for its
//     own. Meanwhile no more events are claimed, and functions continue for up to DrainTimeout.
//   - The functions of AtShutdown are called.
//   - The inbox is closed. Events that wait are handled by the next process.
//
// Serve returns nil after such a shutdown, even if DrainTimeout has cut functions off. If something
// has not ended by ShutdownTimeout, Serve cuts connections, cancels the contexts of functions, and
// returns an error that wraps context.DeadlineExceeded and names it. The events of functions that
// were cut off wait for the next process, and the attempt is not counted. If a function ignores its
// context, Serve logs that and does not wait for it.
//
// If the server fails or another goroutine calls Close, Serve shuts down without the delay, and
// returns the error or ErrClosed. For invalid arguments, it returns a *heads.InvalidError for each,
// joined, before it listens. Serve always closes the inbox and the listener.
//
// Serve uses TLS if server has a TLSConfig, which then has the certificate. It sets
// ReadHeaderTimeout to 5 seconds if it is 0, and ErrorLog to the inbox's logger if it is nil. Serve
// handles no signals. The example shows how a first one ends ctx and a second one the process,
// which loses no event either.
func (in *Inbox) Serve(ctx context.Context, server *http.Server, f func(context.Context, *Delivery) error, opts ...ServeOption) error {
	s := &serving{in: in, server: server, timeout: defaultShutdownTimeout, served: make(chan error, 1), ran: make(chan error, 1)}
	if err := s.prepare(ctx, f, opts); err != nil {
		if s.listener != nil {
			_ = s.listener.Close()
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return errors.Join(err, in.Close(closing))
	}
	begun, stopping := context.WithCancel(ctx)
	defer stopping()
	in.serving.Store(&begun)
	runs, stopRun := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRun()
	if s.start(runs) {
		s.wait(ctx, stopping)
	}
	stopping()
	s.shutDown(ctx, stopRun)
	return s.result()
}

// prepare checks all arguments.
func (s *serving) prepare(ctx context.Context, f func(context.Context, *Delivery) error, opts []ServeOption) (err error) {
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, invalid("Serve", "option", "is nil", "leave it out"))
			continue
		}
		err = errors.Join(err, opt.serve(s))
	}
	r, runErr := s.in.newRun(ctx, f, s.runOptions)
	err = errors.Join(err, runErr)
	switch {
	case s.server == nil:
		return errors.Join(err, invalid("Serve", "server", "is nil", "give one with a Handler"))
	case s.server.Addr == "" && s.listener == nil:
		err = errors.Join(err, invalid("Serve", "server", "has an empty Addr", `set it, as in ":8080", or use the option Listener`))
	}
	if c := s.server.TLSConfig; c != nil && len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		err = errors.Join(err, invalid("Serve", "server", "has a TLSConfig without a certificate", "set its Certificates or GetCertificate"))
	}
	if err != nil {
		return err
	}
	rest := min(time.Second, s.timeout/4)
	r.drainTimeout, r.drainGrace = min(r.drainTimeout, s.timeout-rest), min(r.drainGrace, rest/2)
	s.run = r
	return nil
}

// start begins to serve and to run. It reports whether it listens.
func (s *serving) start(runs context.Context) bool {
	if s.listener == nil {
		var config net.ListenConfig
		l, err := config.Listen(runs, "tcp", s.server.Addr)
		if err != nil {
			s.failed(fmt.Errorf("inbox: serve: %w", err))
			s.served, s.ran = nil, nil
			return false
		}
		s.listener = l
	}
	if s.server.ReadHeaderTimeout == 0 {
		s.server.ReadHeaderTimeout = readHeaderTimeout
	}
	if s.server.ErrorLog == nil && s.in.logger != nil {
		s.server.ErrorLog = slog.NewLogLogger(s.in.logger.Handler(), slog.LevelWarn)
	}
	go func() {
		if s.server.TLSConfig != nil {
			s.served <- s.server.ServeTLS(s.listener, "", "")
		} else {
			s.served <- s.server.Serve(s.listener)
		}
	}()
	go func() { s.ran <- s.run.until(runs) }()
	return true
}

// wait returns when the shutdown begins: after ctx and the delay, or when the server, Run or the
// inbox has ended.
func (s *serving) wait(ctx context.Context, stopping context.CancelFunc) {
	ending, delayed := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-ending:
			s.in.log(ctx, slog.LevelInfo, "stopping")
			if s.delay == 0 {
				return
			}
			timer := time.NewTimer(s.delay)
			defer timer.Stop()
			ending, delayed = nil, timer.C
			continue
		case <-delayed:
			return
		case err := <-s.served:
			s.served = nil
			s.failed(fmt.Errorf("inbox: serve: %w", err))
		case err := <-s.ran:
			s.ran = nil
			if s.in.db.closed.Err() != nil {
				err = ErrClosed
			}
			s.failed(err)
		case <-s.in.db.closed.Done():
			s.failed(ErrClosed)
		}
		stopping()
		if ending != nil {
			s.in.log(ctx, slog.LevelError, "stopping", slog.String("error", s.fault.Error()))
		}
		return
	}
}

// shutDown ends everything, in order.
func (s *serving) shutDown(ctx context.Context, stopRun context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	if s.listener != nil {
		stopRun()
		var both sync.WaitGroup
		both.Go(func() { s.endRequests(ctx) })
		both.Go(func() { s.endRun(ctx) })
		both.Wait()
	}
	for i, f := range s.atShutdown {
		s.step(ctx, fmt.Sprintf("function %d of AtShutdown", i+1), f)
	}
	s.step(ctx, "the inbox", s.in.Close)
}

// endRequests waits for requests and then for the handlers, so that a request that was accepted is
// answered as before.
func (s *serving) endRequests(ctx context.Context) {
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.isLate("requests")
		_ = s.server.Close()
	} else {
		s.failed(err)
	}
	for _, h := range s.in.handlers.all() {
		if h.Shutdown(ctx) != nil {
			s.isLate("deliveries")
			break
		}
	}
	if s.served != nil {
		if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
			s.failed(fmt.Errorf("inbox: serve: %w", err))
		}
	}
}

// endRun waits for Run, which limits itself unless the database does not answer.
func (s *serving) endRun(ctx context.Context) {
	if s.ran == nil {
		return
	}
	select {
	case err := <-s.ran:
		if !errors.Is(err, ErrClosed) {
			s.failed(err)
		}
	case <-later(ctx):
		s.isLate("functions")
	}
}

// step calls a function of the shutdown and waits for it, but not for one that ignores its context.
func (s *serving) step(ctx context.Context, name string, f func(context.Context) error) {
	if left, _ := ctx.Deadline(); time.Until(left) < lateGrace {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lateGrace)
		defer cancel()
	}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			s.isLate(name)
		} else if err != nil {
			s.failed(fmt.Errorf("inbox: serve: %s: %w", name, err))
		}
	case <-later(ctx):
		s.isLate(name)
	}
}

// later returns a channel that is closed lateGrace after ctx has ended.
func later(ctx context.Context) <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(lateGrace, func() { close(c) }) })
	return c
}

func (s *serving) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = errors.Join(s.fault, err)
}

func (s *serving) isLate(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, what)
}

func (s *serving) result() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) == 0 {
		return s.fault
	}
	return errors.Join(s.fault, fmt.Errorf("inbox: serve: not ended after %v: %s: %w", s.timeout, strings.Join(s.late, ", "), context.DeadlineExceeded))
}
