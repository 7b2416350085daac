package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	simLease    = 2 * time.Second
	simFaults   = 15 * simLease // time with faults
	simPatience = 100 * simLease
	simSessions = 4
	simEvents   = 8 // per session
)

func init() {
	// In a synctest bubble, this is the bubble's time.
	sqlite.MustRegisterScalarFunction("simulated_now", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UnixMicro(), nil
	})
}

// simulation runs receivers and workers on one database, with random faults from a seed.
type simulation struct {
	real    *backend
	ended   chan struct{} // closed when dead processes may end
	calm    time.Time     // no new faults after this time
	effects *sql.DB
	closing sync.WaitGroup

	mu           sync.Mutex
	random       *rand.Rand
	acknowledged map[string]int    // number of acknowledged events by session
	running      map[string][]*sim // running functions by session
	violations   []string
}

// sim is a running function.
type sim struct {
	p     *process
	ctx   context.Context //nolint:containedctx // is looked at later
	d     *inbox.Delivery
	begun time.Time
}

func (s *simulation) violated(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

func (s *simulation) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *simulation) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.draw(int(high-low)))
}

// process is the database as used by one process. At random, a call is delayed, fails before or
// after it took effect, stops the process for one to three leases, or kills it.
type process struct {
	*simulation
	lock   sync.Mutex
	frozen time.Time
	dead   bool
}

var errSimulated = &engine.Error{Kind: engine.Away, Text: "simulated"}

// gone waits while the process is stopped and reports whether it is dead.
func (p *process) gone() bool {
	for {
		p.lock.Lock()
		wait, dead := time.Until(p.frozen), p.dead
		p.lock.Unlock()
		if dead {
			<-p.ended
			return true
		}
		if wait <= 0 {
			return false
		}
		<-time.After(wait)
	}
}

func (p *process) isDead() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.dead
}

func (p *process) call(ctx context.Context, do func(context.Context) error) error {
	failAfter := false
	if time.Now().Before(p.calm) {
		switch p.draw(40) {
		case 0, 1, 2:
			<-time.After(p.between(0, simLease/3))
		case 3:
			return errSimulated
		case 4, 5:
			failAfter = true
		case 6, 7:
			p.lock.Lock()
			p.frozen = time.Now().Add(p.between(simLease, 3*simLease))
			p.lock.Unlock()
			ctx = context.WithoutCancel(ctx) // the statements were sent and arrive late
		case 8:
			p.lock.Lock()
			p.dead = true
			p.lock.Unlock()
		}
	}
	if p.gone() {
		return errSimulated
	}
	err := do(ctx)
	if p.gone() || failAfter {
		return errSimulated
	}
	return err
}

// The calls of engine.Backend.

func (p *process) Setup(context.Context, string, func(string, error)) error { return nil }
func (p *process) Append(ctx context.Context, e *engine.Record) (sequence int64, err error) {
	err = p.call(ctx, func(ctx context.Context) (err error) {
		sequence, err = p.real.Append(ctx, e)
		return err
	})
	return sequence, err
}
func (p *process) Write(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return p.call(ctx, func(ctx context.Context) error { return p.real.Write(ctx, f) })
}
func (p *process) Effect(ctx context.Context, lease time.Duration, mark func(context.Context, engine.Tx) error, effect func(*sql.Tx) error) error {
	return p.call(ctx, func(ctx context.Context) error { return p.real.Effect(ctx, lease, mark, effect) })
}
func (p *process) Renew(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return p.Write(ctx, f)
}
func (p *process) Create(ctx context.Context, statements []string) error {
	return p.call(ctx, func(ctx context.Context) error { return p.real.Create(ctx, statements) })
}
func (p *process) SQL() *sql.DB                         { return p.real.SQL() }
func (p *process) Read() engine.Tx                      { return p.real.Read() }
func (p *process) Listen(ctx context.Context, _ func()) { <-ctx.Done() }
func (p *process) Notify()                              {}
func (p *process) Poll() (soon, late time.Duration)     { return pollInterval, pollInterval }
func (p *process) Close() error                         { return nil }

// start returns a new process and its inbox.
func (s *simulation) start() (*process, *inbox.Inbox) {
	p := &process{simulation: s}
	in, err := inbox.Open(context.Background(), engine.New(p))
	if err != nil {
		panic(err)
	}
	return p, in
}

func (s *simulation) closeAtTheEnd(in *inbox.Inbox) {
	s.closing.Go(func() {
		<-s.ended
		_ = in.Close(context.Background())
	})
}

// receive appends the events of a session, each until it is acknowledged. It replaces a receiver
// that dies.
func (s *simulation) receive(session string) {
	p, in := s.start()
	for n := range simEvents {
		body := fmt.Sprintf(`{"event_type":"start_conversation","timestamp":"2026-08-31 06:56:%02d","head_id":"head","session_id":%q,"number":%d}`, n, session, n)
		e, err := heads.ParseEvent([]byte(body))
		if err != nil {
			panic(err)
		}
		<-time.After(s.between(0, simFaults/simEvents))
		for {
			result := make(chan error, 1)
			go func() { _, err := in.Append(context.Background(), e); result <- err }()
			select {
			case err = <-result:
			case <-time.After(4 * simLease): // treat it as dead
				err = errSimulated
			}
			if p.isDead() {
				s.closeAtTheEnd(in)
				p, in = s.start()
				continue
			}
			if err == nil {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		s.mu.Lock()
		s.acknowledged[session]++
		s.mu.Unlock()
	}
	s.closeAtTheEnd(in)
}

// work runs a worker until the simulation ends. It replaces a worker that dies.
func (s *simulation) work(ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	for {
		p, in := s.start()
		over := make(chan struct{})
		go func() {
			_ = in.Run(context.Background(), p.handle, inbox.Lease(simLease), inbox.Concurrency(3), inbox.MaxAttempts(100000),
				inbox.Backoff(func(int) time.Duration { return 50 * time.Millisecond }), inbox.DrainTimeout(simLease))
			close(over)
		}()
		for !p.isDead() {
			select {
			case <-s.ended:
				_ = in.Close(context.Background())
				<-over
				return
			case <-time.After(simLease / 4):
			}
		}
		s.closeAtTheEnd(in)
	}
}

// handle takes some time and stores an effect. It checks that no other function of the session is
// running with a live context.
func (p *process) handle(ctx context.Context, d *inbox.Delivery) error {
	if p.gone() || ctx.Err() != nil {
		return errSimulated
	}
	session := d.Event.SessionID
	me := &sim{p, ctx, d, time.Now()}
	p.mu.Lock()
	for _, other := range p.running[session] {
		if other.ctx.Err() == nil && !other.p.isDead() {
			p.violations = append(p.violations, fmt.Sprintf("two functions of %s run at once: %v (fence %d, for %v) and %v (fence %d)",
				session, other.d, other.d.Fence, time.Since(other.begun), d, d.Fence))
		}
	}
	p.running[session] = append(p.running[session], me)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running[session] = slices.DeleteFunc(p.running[session], func(x *sim) bool { return x == me })
		p.mu.Unlock()
	}()
	select {
	case <-time.After(p.between(0, simLease/2)):
	case <-ctx.Done():
	}
	if time.Now().Before(p.calm) && p.draw(12) == 0 { // longer than a lease
		select {
		case <-time.After(p.between(simLease, 2*simLease)):
		case <-ctx.Done():
		}
	}
	if p.gone() {
		return errSimulated
	}
	if time.Now().Before(p.calm) && p.draw(10) == 0 {
		return errors.New("the function fails")
	}
	return d.Commit(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO effects (session, sequence) VALUES (?, ?)", session, d.Sequence)
		return err
	})
}

// simulate runs the schedule of a seed and returns the violations.
func simulate(t *testing.T, seed uint64, plant func(texts []string)) (violations []string) {
	dir, err := os.MkdirTemp(memory(), "simulation") //nolint:usetesting // in memory
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "inbox.db")
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(path)
		b.now = "simulated_now()"
		require.NoError(t, b.Setup(context.Background(), engine.DefaultPrefix, nil))
		if plant != nil {
			plant(b.texts)
			require.NoError(t, b.marking.Close())
			var err error
			b.marking, err = b.effects.Prepare(b.texts[engine.MarkHandled])
			require.NoError(t, err)
		}
		effects, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		_, err = effects.Exec("CREATE TABLE effects (id INTEGER PRIMARY KEY, session TEXT, sequence INTEGER)")
		require.NoError(t, err)
		s := &simulation{
			real: b, ended: make(chan struct{}), calm: time.Now().Add(simFaults), effects: effects,
			random: rand.New(rand.NewPCG(seed, 1)), acknowledged: map[string]int{}, running: map[string][]*sim{},
		}
		var receiving sync.WaitGroup
		for i := range simSessions {
			receiving.Go(func() { s.receive(fmt.Sprint("session", i)) })
		}
		workers := make(chan struct{}, 3)
		for range cap(workers) {
			go s.work(workers)
		}
		receiving.Wait()
		for begun := time.Now(); ; <-time.After(simLease) {
			var waiting int
			require.NoError(t, effects.QueryRow("SELECT count(*) FROM heads_inbox_events WHERE state = 0").Scan(&waiting))
			if waiting == 0 {
				break
			}
			if time.Since(begun) > simPatience {
				s.violated("%d events are stranded", waiting)
				break
			}
		}
		close(s.ended)
		for range cap(workers) {
			<-workers
		}
		s.closing.Wait()
		<-time.After(10 * simLease) // until processes that were stopped for long have ended
		s.check(t)
		require.NoError(t, effects.Close())
		require.NoError(t, b.Close())
		synctest.Wait()
		violations = s.violations
	})
	return violations
}

// memory returns a folder in memory, if there is one, since the simulation does not test the disk.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// check compares the effects with the acknowledged events.
func (s *simulation) check(t *testing.T) {
	rows, err := s.effects.Query("SELECT session, sequence FROM effects ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	last, count := map[string]int64{}, map[string]int{}
	seen := map[int64]bool{}
	for rows.Next() {
		var session string
		var sequence int64
		require.NoError(t, rows.Scan(&session, &sequence))
		switch {
		case seen[sequence]:
			s.violated("event %d has two effects", sequence)
		case sequence < last[session]:
			s.violated("event %d comes after %d", sequence, last[session])
		}
		seen[sequence], last[session] = true, max(last[session], sequence)
		count[session]++
	}
	require.NoError(t, rows.Err())
	for session, n := range s.acknowledged {
		if count[session] < n {
			s.violated("%s has %d effects of %d events", session, count[session], n)
		}
	}
}

// TestSimulation runs 300 schedules, fewer with the race detector. With SIM_SEED, it runs that seed
// 20 times, since a seed determines the faults but not the order of goroutines.
func TestSimulation(t *testing.T) {
	first, seeds, times := uint64(1), uint64(300), 1
	if raceEnabled {
		seeds = 20 // the race detector makes SQLite, which is translated from C, 20 times slower
	}
	if text := os.Getenv("SIM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		first, seeds, times = seed, 1, 20
	}
	begun := time.Now()
	for seed := first; seed < first+seeds; seed++ {
		for range times {
			if violations := simulate(t, seed, nil); len(violations) > 0 {
				require.Fail(t, "violated", "SIM_SEED=%d: %s", seed, strings.Join(violations, "; "))
			}
		}
	}
	t.Logf("%d seeds in %v", seeds, time.Since(begun).Round(time.Millisecond))
}

// The simulation must find each of these faulty statements.
func TestSimulationFindsPlantedFaults(t *testing.T) {
	for name, plant := range map[string]func([]string){
		"a mark without fence and state": func(texts []string) {
			texts[engine.MarkHandled] = "UPDATE heads_inbox_events SET state = 1, finished = simulated_now(), error = NULL WHERE sequence = ?1 AND ?2 > 0"
		},
		"a claim before the lease ends": func(texts []string) {
			texts[engine.Due] = strings.Replace(texts[engine.Due], "next_at <= simulated_now()", fmt.Sprint("next_at <= simulated_now() + ", simLease.Microseconds()), 1)
		},
		"a lease's end that goes unnoticed": func(texts []string) {
			texts[engine.RenewSession] = "UPDATE heads_inbox_meta SET value = value WHERE name = 'touched' AND ?1 <> '' AND ?2 > 0 AND ?3 <> '' AND ?4 > 0"
		},
		"a release that drops without a look": func(texts []string) {
			texts[engine.FirstEvent] = strings.Replace(texts[engine.FirstEvent], "WHERE e.state = 0", "WHERE e.state = 0 AND 1 = 0", 1)
		},
		"the wrong first event": func(texts []string) {
			texts[engine.ClaimEvent] = strings.Replace(texts[engine.ClaimEvent], "w.sequence LIMIT 1", "w.sequence DESC LIMIT 1", 1)
		},
		"a begin without its fence": func(texts []string) {
			texts[engine.BeginEvent] = strings.Replace(texts[engine.BeginEvent], "fence = ?2", "fence = fence + 0 * ?2", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				violations := simulate(t, seed, func(texts []string) {
					before := slices.Clone(texts)
					plant(texts)
					changed := 0
					for i, text := range texts {
						if before[i] != text {
							changed++
						}
					}
					require.Equal(t, 1, changed, "the fault is planted")
				})
				if len(violations) > 0 {
					t.Logf("seed %d: %s", seed, violations[0])
					return
				}
			}
			require.Fail(t, "the fault is not found")
		})
	}
}
