package inbox_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// load publishes events of several sessions, each in order, and records the responses. It
// redelivers each event until the answer is 200.
type load struct {
	mu           sync.Mutex
	urls         []string // of the receivers
	acknowledged map[int]bool
	answers      []answer
	stop         func()
}

type answer struct {
	at     time.Time
	took   time.Duration
	status int
}

// publish starts a publisher for each session, which pauses before each delivery.
func publish(t *testing.T, sessions int, pause time.Duration, urls ...string) *load {
	l := &load{urls: urls, acknowledged: map[int]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var publishing sync.WaitGroup
	l.stop = func() { cancel(); publishing.Wait() }
	t.Cleanup(l.stop)
	for i := range sessions {
		publishing.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n, try := i, 0; ; try++ {
				if pauseFor(ctx, pause); ctx.Err() != nil {
					return
				}
				if l.send(client, i+try, fmt.Sprint("session", i), n) {
					n, try = n+sessions, -1
				}
			}
		})
	}
	return l
}

func (l *load) send(client *http.Client, receiver int, session string, n int) bool {
	begun := time.Now()
	l.mu.Lock()
	url := l.urls[receiver%len(l.urls)]
	l.mu.Unlock()
	status := deliver(client, url, eventBody("head", session, n))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, answer{time.Now(), time.Since(begun), status})
	if status == http.StatusOK {
		l.acknowledged[n] = true
	}
	return status == http.StatusOK
}

// address replaces the receivers.
func (l *load) address(urls ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urls = urls
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// reach waits until n events are acknowledged.
func (l *load) reach(t *testing.T, n int) {
	t.Helper()
	eventually(t, "events are stored", func() bool { return l.count() >= n })
}

// firstSince returns when the first delivery sent after a time was answered with 200.
func (l *load) firstSince(at time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.status == http.StatusOK && a.at.Add(-a.took).After(at) {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// backAfter waits for the first 200 of a delivery that was sent after a time.
func (l *load) backAfter(t *testing.T, at time.Time) time.Duration {
	t.Helper()
	var first time.Time
	eventually(t, "events are stored again", func() (ok bool) { first, ok = l.firstSince(at); return ok })
	return first.Sub(at)
}

// refusals returns the number of refused deliveries since a time, and the longest duration of one.
func (l *load) refusals(since time.Time) (n int, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.status != http.StatusOK && a.at.After(since) {
			n++
			longest = max(longest, a.took)
		}
	}
	return n, longest
}

// company is a group of receivers and workers that use one database.
type company struct {
	store   store
	load    *load
	log     string
	workers []*process
	reading *inbox.Inbox
}

// startCompany starts two receivers and two workers, each in its own process.
func startCompany(t *testing.T, s store, admin store) *company {
	c := &company{store: s, log: logFile(t), reading: s.open(t)}
	admin.createVisits(t)
	var urls []string
	for range 2 {
		urls = append(urls, start(t, role{Role: "receiver", Kind: s.kind, Name: s.name}).line(t))
		w := start(t, role{Role: "worker", Kind: s.kind, Name: s.name, Log: c.log, Lease: 5 * time.Second, Fail: 2})
		w.line(t)
		c.workers = append(c.workers, w)
	}
	c.load = publish(t, 20, 100*time.Millisecond, urls...)
	return c
}

// finish waits until all events are handled, and asserts that none was lost, handled twice, out of
// order or overlapping.
func (c *company) finish(t *testing.T, admin store) {
	t.Helper()
	c.load.stop()
	eventuallyIn(t, 3*time.Minute, "everything handled", pendingIsZero(c.reading))
	for _, w := range c.workers {
		w.kill()
	}
	got := admin.tally(t, c.load.acknowledged, c.log, c.workers)
	t.Logf("%+v", got)
	assert.Equal(t, tally{acknowledged: len(c.load.acknowledged)}, got)
	assert.Greater(t, got.acknowledged, 100)
	assert.Zero(t, lost(t, c.reading, c.load.acknowledged))
}

// eventuallyIn is eventually with another limit, for elections and many events.
func eventuallyIn(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, d, 20*time.Millisecond, what)
}

// leaderOf returns the leader. It retries, since a busy leader may not answer immediately.
func leaderOf(t *testing.T, c *pgtest.Cluster) (leader *pgtest.Node) {
	t.Helper()
	eventually(t, "a leader", func() bool { leader = c.Leader(nil); return leader != nil })
	return leader
}

// longestRefusal is how long a delivery may wait for its 503. The race detector makes the answers
// of twenty senders on two cores late.
func longestRefusal() time.Duration {
	if raceEnabled {
		return 3 * time.Second
	}
	return 1600 * time.Millisecond
}

func TestChangesOfTheLeaderLoseNothing(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.NewCluster()
	require.NoError(t, err)
	defer cluster.Close()
	defer func() {
		if t.Failed() {
			t.Log(cluster.Logs())
		}
	}()
	leader := leaderOf(t, cluster)
	store{"postgres", leader.DSN("postgres")}.exec(t, "CREATE DATABASE inbox")
	s := store{"postgres", cluster.DSN("inbox")}
	c := startCompany(t, s, store{"postgres", leader.DSN("inbox")})
	settle := func() {
		require.NoError(t, cluster.Await())
		c.load.backAfter(t, time.Now())
	}
	settle()
	// After each of these, another node is the leader, and the old one returns as a standby.
	changes := []struct {
		name   string
		limit  time.Duration
		change func(leader *pgtest.Node)
		mend   func(old *pgtest.Node)
	}{
		{"switchover", 3 * time.Second, func(n *pgtest.Node) { require.NoError(t, cluster.Switchover(n)) }, func(*pgtest.Node) {}},
		{"kill -9", 3 * time.Second, (*pgtest.Node).Kill, func(n *pgtest.Node) { require.NoError(t, n.Start()) }},
		{"stopped", 5 * time.Second, func(n *pgtest.Node) { n.Signal(pgtest.Stop) }, func(n *pgtest.Node) { n.Signal(pgtest.Continue) }},
	}
	for range scale(t, 1, 4) {
		for _, change := range changes {
			old := leaderOf(t, cluster)
			begun := time.Now()
			change.change(old)
			eventuallyIn(t, 90*time.Second, "an election", func() bool { return cluster.Leader(old) != nil })
			elected := time.Now()
			back := c.load.backAfter(t, elected)
			if first, ok := c.load.firstSince(begun); ok && change.name == "switchover" {
				t.Logf("%s: the first 200 %v after it was asked for", change.name, first.Sub(begun).Round(time.Millisecond))
			}
			refused, longest := c.load.refusals(begun)
			t.Logf("%s: elected after %v, the first 200 %v later; %d refused, the longest in %v", change.name,
				elected.Sub(begun).Round(time.Millisecond), back.Round(time.Millisecond), refused, longest.Round(time.Millisecond))
			assert.LessOrEqual(t, back, change.limit, change.name)
			assert.LessOrEqual(t, longest, longestRefusal(), change.name)
			change.mend(old)
			settle()
		}
	}
	leader = leaderOf(t, cluster)
	admin := store{"postgres", leader.DSN("inbox")}
	t.Run("read-only", func(t *testing.T) {
		admin.exec(t, "ALTER SYSTEM SET default_transaction_read_only = on")
		admin.exec(t, "SELECT pg_reload_conf()")
		begun := time.Now()
		eventually(t, "events are refused", func() bool { n, _ := c.load.refusals(begun); return n > 20 })
		db := admin.sql(t)
		db.SetMaxOpenConns(1)
		for _, text := range []string{"SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"} {
			_, err := db.Exec(text)
			require.NoError(t, err)
		}
		back := c.load.backAfter(t, time.Now())
		refused, longest := c.load.refusals(begun)
		t.Logf("read-only: %d refused, the longest in %v; back after %v", refused, longest.Round(time.Millisecond), back.Round(time.Millisecond))
		assert.LessOrEqual(t, back, 3*time.Second)
		assert.LessOrEqual(t, longest, longestRefusal())
	})
	c.finish(t, admin)
}

func TestPoolerNeedsNoOption(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]string{
		"no option": "", "exec": " default_query_exec_mode=exec", "simple protocol": " default_query_exec_mode=simple_protocol",
	} {
		t.Run(name, func(t *testing.T) {
			server := pgtest.ForTest(t)
			server.Exec(t, "postgres", "CREATE DATABASE inbox")
			pooler, err := server.NewPooler()
			require.NoError(t, err)
			defer pooler.Close()
			admin := store{"postgres", server.DSN("inbox")}
			c := startCompany(t, store{"postgres", pooler.DSN("inbox") + option}, admin)
			c.load.reach(t, scale(t, 200, 2000))
			pooler.Kill()
			require.NoError(t, pooler.Start())
			back := c.load.backAfter(t, time.Now())
			t.Logf("kill -9 of the pooler: back after %v", back.Round(time.Millisecond))
			assert.LessOrEqual(t, back, 2*time.Second)
			c.load.reach(t, scale(t, 400, 4000))
			c.finish(t, admin)
			// The time from the 200, which is soon after received, to the end of the function,
			// since the start of an attempt is not stored.
			p50 := admin.int(t, `SELECT (percentile_cont(0.5) WITHIN GROUP (ORDER BY finished - received) / 1000)::bigint FROM heads_inbox_events WHERE attempts = 1`)
			t.Logf("from the append to the end of the function: p50 %d ms", p50)
			// A Run that polls every 250 ms takes 150 ms. Leave room for tests that run at the same
			// time. The race detector makes it slower than that.
			if !raceEnabled {
				assert.LessOrEqual(t, p50, int64(scale(t, 100, 60)))
			}
		})
	}
}
