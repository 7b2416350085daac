package inbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	defaultConcurrency  = 16
	defaultMaxAttempts  = 20
	defaultLease        = 30 * time.Second
	defaultDrainTimeout = 20 * time.Second

	pruneEvery    = 10 * time.Minute
	complainEvery = 5 * time.Second
)

// RunOption configures Run.
type RunOption func(*run) error

// Concurrency sets how many sessions Run handles at the same time. The default is 16.
func Concurrency(n int) RunOption {
	return func(r *run) error {
		r.concurrency = n
		return refuse(n < 1, "Run", "Concurrency", fmt.Sprintf("is %d", n), "give 1 or more")
	}
}

// MaxAttempts sets the number of attempts after which an event goes to the dead letters. The
// default is 20, which takes about 80 minutes with the default Backoff. An attempt that ends with
// the death of its process is counted.
func MaxAttempts(n int) RunOption {
	return func(r *run) error {
		r.maxAttempts = n
		return refuse(n < 1, "Run", "MaxAttempts", fmt.Sprintf("is %d", n), "give 1 or more")
	}
}

// Backoff sets how long a session waits after a failed attempt. attempt is 1 after the first one.
// The default is one second, doubled for each further attempt up to 10 minutes, of which half is
// random. Backoff also applies after a worker has died.
func Backoff(f func(attempt int) time.Duration) RunOption {
	return func(r *run) error {
		r.backoff = f
		return refuse(f == nil, "Run", "Backoff", "is nil", "give a function, or leave the option out")
	}
}

// Lease sets how long a worker's claim on a session lasts without renewal. Workers renew their
// claims after a third of that time. If a worker dies, its sessions are not handled until the lease
// ends. The default is 30 seconds, the minimum 300 ms.
func Lease(d time.Duration) RunOption {
	return func(r *run) error {
		r.lease = d
		return refuse(d < 300*time.Millisecond, "Run", "Lease", fmt.Sprintf("is %v", d), "give 300ms or more")
	}
}

// DrainTimeout sets how long functions may continue after the context of Run has ended. Then their
// contexts are cancelled. The default is 20 seconds.
func DrainTimeout(d time.Duration) RunOption {
	return func(r *run) error {
		r.drainTimeout = d
		return refuse(d < 0, "Run", "DrainTimeout", fmt.Sprintf("is %v, which is negative", d), "give 0 or more")
	}
}

func defaultBackoff(attempt int) time.Duration {
	d := longestBackoff(attempt)
	return d/2 + mathrand.N(d/2)
}

func longestBackoff(attempt int) time.Duration {
	d := 10 * time.Minute
	if attempt < 11 {
		d = min(d, time.Second<<max(attempt-1, 0))
	}
	return d
}

// guard returns a Backoff that waits as by default if the given one panics.
func (w *worker) guard(backoff func(int) time.Duration) func(int) time.Duration {
	return func(attempt int) (d time.Duration) {
		if err := guarded(func() { d = backoff(attempt) }); err != nil {
			w.log(context.Background(), slog.LevelError, "Backoff failed, the default is used", slog.String("error", w.describe(err)))
			return defaultBackoff(attempt)
		}
		return d
	}
}

// run is the state of one call of Run.
type run struct {
	worker
	in           *Inbox
	concurrency  int
	drainTimeout time.Duration
	drainGrace   time.Duration // for functions to return when they are cut off

	base       context.Context //nolint:containedctx // of functions: without that end
	slots      chan struct{}
	wake       chan struct{}
	sessions   sync.WaitGroup
	due        horizon
	complained time.Time

	mu     sync.Mutex
	claims map[*claim]struct{}
}

// Run calls f for every stored event until ctx ends. Then it waits for the running functions and
// returns nil. Events of one session run one at a time, in the order in which they were stored.
// Events of different sessions run in parallel. Any number of processes and goroutines may call
// Run.
//
// An event is handled when f returns nil or Delivery.Commit succeeds. After an error, a panic or
// the death of the process, f is called again. Without Commit, its effects may therefore happen
// twice. Permanent and RetryAfter change what happens after an error. After MaxAttempts, the event
// goes to the dead letters, and its session continues with the next event.
//
// If the claim on the event is lost, the context of f is cancelled with the cause ErrFenced. An
// attempt that is cut off by DrainTimeout is not counted. If a function ignores the end of its
// context, Run does not wait for it, and another worker can claim its session when the lease ends.
//
// Run returns a *heads.InvalidError for each invalid option, joined, and ErrClosed if the inbox is
// closed. While the database is unreachable, Run retries.
func (in *Inbox) Run(ctx context.Context, f func(context.Context, *Delivery) error, opts ...RunOption) error {
	r, err := in.newRun(ctx, f, opts)
	if err != nil {
		return err
	}
	return r.until(ctx)
}

// until implements Run.
func (r *run) until(ctx context.Context) error {
	if !r.db.use() {
		return ErrClosed
	}
	defer r.db.done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ctx = ctx
	base, end := context.WithCancelCause(r.base)
	r.base = base
	defer context.AfterFunc(r.db.aborted, func() { end(ErrClosed) })()
	defer context.AfterFunc(r.db.closed, cancel)()

	helpers, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, helper := range []func(context.Context){r.renewClaims, r.pruneNow, r.listen} {
		running.Go(func() { helper(helpers) })
	}
	r.wake = r.wakes.add()
	r.work(ctx)
	r.wakes.remove(r.wake)
	r.drain()
	stop()
	running.Wait()
	return nil
}

func (in *Inbox) newRun(ctx context.Context, f func(context.Context, *Delivery) error, opts []RunOption) (*run, error) {
	r := &run{
		worker: worker{
			terms: terms{
				owner:       make([]byte, 16),
				lease:       defaultLease,
				maxAttempts: defaultMaxAttempts,
				backoff:     defaultBackoff,
			},
			db:       in.db,
			reporter: in.reporter,
			wakes:    &in.wakes,
			f:        f,
		},
		in:           in,
		concurrency:  defaultConcurrency,
		drainTimeout: defaultDrainTimeout,
		drainGrace:   drainGrace,
		base:         context.WithoutCancel(ctx),
		claims:       make(map[*claim]struct{}),
	}
	_, _ = rand.Read(r.owner)
	err := refuse(f == nil, "Run", "f", "is nil", "give the function that handles an event")
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, invalid("Run", "option", "is nil", "leave it out"))
			continue
		}
		err = errors.Join(err, opt(r))
	}
	if err != nil {
		return nil, err
	}
	r.backoff = r.guard(r.backoff)
	r.slots = make(chan struct{}, r.concurrency)
	return r, nil
}

// work claims sessions while slots are free, and otherwise waits for slots or sessions.
func (r *run) work(ctx context.Context) {
	soon, late := r.db.Poll()
	pause := soon
	for {
		n := r.freeSlots(ctx)
		if n == 0 {
			return
		}
		claims, full, err := r.claim(ctx, n)
		for range n - len(claims) {
			<-r.slots
		}
		for _, c := range claims {
			r.sessions.Add(1)
			go r.start(c)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.complain(ctx, err)
			sleep(ctx, retryPause)
		case !full:
			if len(claims) > 0 {
				pause = soon
			}
			woken := r.wait(ctx, pause)
			pause = min(2*pause, late)
			if woken {
				pause = soon
			}
		}
	}
}

// claim claims up to n due sessions and begins the first event of each. It reports whether there
// may be more.
func (r *run) claim(ctx context.Context, n int) (claims []*claim, full bool, err error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	begun := time.Now()
	t := &taking{terms: r.terms, fences: &r.in.fences, from: r.due.from(begun), high: r.in.fences.Load()}
	err = r.db.Write(limited, func(ctx context.Context, tx engine.Tx) error { return t.take(ctx, tx, n) })
	r.due.took(time.Since(begun), time.Now())
	if err != nil {
		// If the transaction was committed after all, its claims are taken over when their leases
		// end.
		r.due.include(t.from)
		return nil, false, err
	}
	r.due.low = t.low
	r.mu.Lock()
	for _, d := range t.claimed {
		c := newClaim(r.base, d.session, d.fence, r.leaseEnd(t.sent))
		c.first, c.spent = &d.event, d.spent
		claims = append(claims, c)
		r.claims[c] = struct{}{}
	}
	r.mu.Unlock()
	for _, d := range t.takenOver {
		r.tell(ctx, observed(KindTakenOver, &d.event))
	}
	return claims, t.due == n, nil
}

// start handles the events of a session until its claim ends.
func (r *run) start(c *claim) {
	defer func() { <-r.slots }()
	defer r.sessions.Done()
	defer r.forget(c)
	r.session(c)
}

func (r *run) forget(c *claim) {
	r.mu.Lock()
	delete(r.claims, c)
	r.mu.Unlock()
	c.stop()
}

// complain logs that no work can be claimed, at most once every complainEvery.
func (r *run) complain(ctx context.Context, err error) {
	if time.Since(r.complained) < complainEvery {
		return
	}
	r.complained = time.Now()
	r.log(ctx, slog.LevelError, "no work can be claimed", slog.String("error", r.db.public(err).Error()))
}

// freeSlots waits for a free slot, takes all that are free and returns their number, 0 if ctx ends.
func (r *run) freeSlots(ctx context.Context) int {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; ; n++ {
		select {
		case r.slots <- struct{}{}:
		default:
			return n
		}
	}
}

// wait returns when there may be work. It checks after the given pause, then after twice as long
// each time. It reports whether it was woken by an append.
func (r *run) wait(ctx context.Context, pause time.Duration) (woken bool) {
	_, late := r.db.Poll()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
			return true
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		pause = min(2*pause, late)
		wait, err := r.untilDue(ctx, pause)
		if err != nil || wait <= 0 {
			return false
		}
		timer.Reset(min(wait, pause))
	}
}

// untilDue returns how long until the next session is due, at most the given time.
func (r *run) untilDue(ctx context.Context, within time.Duration) (time.Duration, error) {
	var due, now int64
	err := r.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&due, &now) },
		engine.Next, r.due.from(time.Now()), micros(within)))
	if err != nil || due == 0 {
		return within, err
	}
	r.due.include(due)
	return time.Duration(due-now) * time.Microsecond, nil
}

// listen wakes the workers when another process has stored events.
func (r *run) listen(ctx context.Context) {
	r.db.Listen(ctx, r.wakes.all)
}

// drain waits for the running functions, at most for DrainTimeout. It then cuts off the rest.
func (r *run) drain() {
	done := make(chan struct{})
	go func() {
		r.sessions.Wait()
		close(done)
	}()
	timer := time.NewTimer(r.drainTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	r.cutOff()
	timer.Reset(r.drainGrace)
	select {
	case <-done:
	case <-timer.C:
		r.log(r.base, slog.LevelWarn, "functions that ignore the end of their contexts were cut off", slog.Int("functions", len(r.active())))
	}
}

// cutOff takes back the attempts of the functions that are still running and cancels their
// contexts.
func (r *run) cutOff() {
	running := r.active()
	var calls []*engine.Call
	for _, c := range running {
		if sequence := c.cutOff(); sequence != 0 {
			calls = append(calls, engine.Do(engine.Uncount, sequence, c.fence))
		}
	}
	ctx, cancel := context.WithTimeout(r.base, drainGrace)
	defer cancel()
	if err := r.db.Write(ctx, func(ctx context.Context, tx engine.Tx) error { return tx.Send(ctx, calls...) }); err != nil {
		r.log(ctx, slog.LevelWarn, "attempts that were cut off count", slog.String("error", r.db.public(err).Error()))
	}
	for _, c := range running {
		c.end(context.Canceled)
	}
}

// active returns the claims sorted by session, the order in which every transaction locks rows.
func (r *run) active() []*claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*claim, 0, len(r.claims))
	for c := range r.claims {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *claim) int {
		return cmp.Or(bytes.Compare(a.session, b.session), cmp.Compare(a.fence, b.fence))
	})
	return all
}

// renewClaims renews all claims in one transaction at a time, and cancels the contexts of lost
// claims.
func (r *run) renewClaims(ctx context.Context) {
	for sleep(ctx, r.lease/3) {
		claims := r.active()
		if len(claims) == 0 {
			continue
		}
		if err := r.renew(ctx, claims); err != nil && ctx.Err() == nil {
			r.log(ctx, slog.LevelWarn, "claims were not renewed", slog.String("error", r.db.public(err).Error()))
		}
	}
}

func (r *run) renew(ctx context.Context, claims []*claim) error {
	limited, cancel := context.WithTimeout(ctx, r.lease)
	defer cancel()
	for {
		sent := time.Now()
		calls := make([]*engine.Call, len(claims))
		for i, c := range claims {
			calls[i] = engine.Do(engine.RenewSession, c.session, c.fence, r.owner, micros(r.lease))
		}
		err := r.db.Renew(limited, func(ctx context.Context, tx engine.Tx) error { return tx.Send(ctx, calls...) })
		if err == nil {
			for i, c := range claims {
				if calls[i].N == 0 {
					c.end(ErrFenced)
				} else {
					c.extend(r.leaseEnd(sent))
				}
			}
			return nil
		}
		if !sleep(limited, min(retryPause, r.lease/20)) {
			return err
		}
	}
}

func (r *run) pruneNow(ctx context.Context) {
	for sleep(ctx, pruneEvery/2+mathrand.N(pruneEvery)) {
		if _, err := r.in.Prune(ctx); err != nil && ctx.Err() == nil {
			r.log(ctx, slog.LevelWarn, "pruning failed", slog.String("error", err.Error()))
		}
	}
}
