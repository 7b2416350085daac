package inbox_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

const (
	roleVariable = "HEADS_INBOX_TEST_ROLE"
	sharedKey    = "a shared key of the tests"
)

// role is the work of a process that a test starts.
type role struct {
	Role  string // "receiver", "worker", "killer", "sleeper", "service" or "opener"
	Kind  string // of the store
	Name  string
	Log   string // file with the start and end of each function
	Lease time.Duration
	Fail  int    // percentage of functions that fail
	Max   int    // MaxAttempts
	Where string // "function" or "effect"
}

// process is a test binary that runs a role.
type process struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	in     io.Writer
	killed int64 // time of the kill, in nanoseconds
}

func start(tb testing.TB, r role) *process {
	tb.Helper()
	config := need(json.Marshal(r))(tb)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(config))
	cmd.Stderr = os.Stderr
	out := need(cmd.StdoutPipe())(tb)
	in := need(cmd.StdinPipe())(tb)
	require.NoError(tb, cmd.Start())
	p := &process{cmd: cmd, out: bufio.NewReader(out), in: in}
	tb.Cleanup(p.kill)
	return p
}

// line waits for a line of the process's output.
func (p *process) line(tb testing.TB) string {
	tb.Helper()
	text := need(p.out.ReadString('\n'))(tb)
	return strings.TrimSpace(text)
}

// kill sends SIGKILL.
func (p *process) kill() {
	if p.killed == 0 {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.killed = time.Now().UnixNano()
	}
}

func (p *process) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	require.NoError(tb, p.cmd.Process.Signal(s))
}

// playRole is the main function of the process.
func playRole(config string) int {
	var r role
	err := json.Unmarshal([]byte(config), &r)
	if err == nil && r.Role == "opener" {
		err = openTables(r)
	} else if err == nil {
		var in *inbox.Inbox
		if in, err = r.try(); err == nil {
			err = map[string]func(role, *inbox.Inbox) error{
				"receiver": receive, "worker": work, "killer": workOnKillers, "sleeper": sleepInside, "service": serveUntilTerm,
			}[r.Role](r, in)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, r.Role, err)
		return 1
	}
	return 0
}

func receive(_ role, in *inbox.Inbox) error {
	l, h, err := listen(in)
	if err != nil {
		return err
	}
	return http.Serve(l, h)
}

// deliver sends one delivery and returns the status, 0 without an answer.
func deliver(client *http.Client, url string, body []byte) int {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return 0
	}
	req.Header.Set(heads.SignatureHeader, heads.Sign(body, sharedKey))
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// runUntilTerm calls Run until SIGTERM.
func runUntilTerm(in *inbox.Inbox, f func(context.Context, *inbox.Delivery) error, opts ...inbox.RunOption) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("running")
	err := in.Run(ctx, f, opts...)
	return errors.Join(err, in.Close(context.Background()))
}

// work stores a visit for every event through Commit and logs the start and end of functions.
func work(r role, in *inbox.Inbox) error {
	log, err := os.OpenFile(r.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	note := func(what string, d *inbox.Delivery) {
		fmt.Fprintf(log, "%s %d %s %d %d %d\n", what, os.Getpid(), d.Event.SessionID, numberOf(d.Event), d.Fence, time.Now().UnixNano())
	}
	return runUntilTerm(in, func(ctx context.Context, d *inbox.Delivery) error {
		note("start", d)
		defer note("end", d)
		if rand.N(100) < r.Fail {
			return errors.New("failed before the effect")
		}
		return r.store().commitVisit(ctx, d)
	}, inbox.Lease(r.Lease), inbox.Backoff(at(20*time.Millisecond)), inbox.MaxAttempts(1000), inbox.Concurrency(8))
}

func (s store) createVisits(tb testing.TB) {
	id := "id INTEGER PRIMARY KEY AUTOINCREMENT"
	if s.kind == "postgres" {
		id = "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	}
	s.exec(tb, "CREATE TABLE visits ("+id+", session TEXT, number BIGINT, sequence BIGINT)")
}

// visit stores a visit of the session of d.
func (s store) visit(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
	_, err := tx.ExecContext(ctx, s.spelled("INSERT INTO visits (session, number, sequence) VALUES ($1, $2, $3)"), d.Event.SessionID, numberOf(d.Event), d.Sequence)
	return err
}

// commitVisit is a function that stores a visit through Commit.
func (s store) commitVisit(ctx context.Context, d *inbox.Delivery) error {
	return d.Commit(ctx, func(tx *sql.Tx) error { return s.visit(ctx, tx, d) })
}

// tally has the counts of a run with many processes.
type tally struct {
	acknowledged, lost, doubled, disordered, overlapping int
}

func (s store) tally(tb testing.TB, acknowledged map[int]bool, log string, processes []*process) (t tally) {
	rows := need(s.sql(tb).Query("SELECT session, number, sequence FROM visits ORDER BY id"))(tb)
	defer rows.Close()
	visited, last := map[int]int{}, map[string]int64{}
	for rows.Next() {
		var session string
		var number int
		var sequence int64
		require.NoError(tb, rows.Scan(&session, &number, &sequence))
		visited[number]++
		if visited[number] > 1 {
			t.doubled++
		}
		if sequence <= last[session] {
			t.disordered++
		}
		last[session] = sequence
	}
	require.NoError(tb, rows.Err())
	t.acknowledged = len(acknowledged)
	for number := range acknowledged {
		if visited[number] == 0 {
			t.lost++
		}
	}
	t.overlapping = overlapping(tb, log, processes)
	return t
}

// overlapping counts the functions that ran at the same time as another function of their session.
// The functions of a killed process end when it is killed.
func overlapping(tb testing.TB, log string, processes []*process) (n int) {
	text := need(os.ReadFile(log))(tb)
	killed := map[int]int64{}
	for _, p := range processes {
		killed[p.cmd.Process.Pid] = p.killed
	}
	type span struct {
		pid        int
		start, end int64
	}
	open, spans := map[string]*span{}, map[string][]*span{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var what, session string
		var pid, number int
		var fence, when int64
		_, err := fmt.Sscan(line, &what, &pid, &session, &number, &fence, &when)
		require.NoError(tb, err, line)
		key := fmt.Sprint(pid, session, number, fence)
		if what == "start" {
			open[key] = &span{pid: pid, start: when}
			spans[session] = append(spans[session], open[key])
			continue
		}
		open[key].end = when
	}
	for _, all := range spans {
		for i, a := range all {
			if a.end == 0 {
				a.end = killed[a.pid]
			}
			for _, b := range all[:i] {
				if a.start < b.end && b.start < a.end {
					n++
					tb.Logf("process %d ran for %v, process %d began %v later and ran for %v", b.pid, time.Duration(b.end-b.start), a.pid,
						time.Duration(a.start-b.start), time.Duration(a.end-a.start))
				}
			}
		}
	}
	return n
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func logFile(tb testing.TB) string { return filepath.Join(tb.TempDir(), "functions.log") }

// sleep waits for a line of input in its first function, before Commit or inside the effect, and
// prints the result of Commit.
func sleepInside(r role, in *inbox.Inbox) error {
	input := bufio.NewReader(os.Stdin)
	wait := func(where string) {
		if r.Where == where {
			fmt.Println("inside")
			_, _ = input.ReadString('\n')
		}
	}
	return runUntilTerm(in, func(ctx context.Context, d *inbox.Delivery) error {
		wait("function")
		err := d.Commit(ctx, func(tx *sql.Tx) error {
			err := r.store().visit(ctx, tx, d)
			wait("effect")
			return err
		})
		fmt.Println("fenced:", errors.Is(err, inbox.ErrFenced), "cause:", errors.Is(context.Cause(ctx), inbox.ErrFenced), err)
		return err
	}, inbox.Lease(r.Lease), inbox.Concurrency(1))
}

// workOnKillers kills its process in event 0 and takes some time for other events.
func workOnKillers(r role, in *inbox.Inbox) error {
	return runUntilTerm(in, func(ctx context.Context, d *inbox.Delivery) error {
		if numberOf(d.Event) == 0 {
			pauseFor(ctx, 30*time.Millisecond)
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
		}
		pauseFor(ctx, 20*time.Millisecond)
		return nil
	}, inbox.Lease(r.Lease), inbox.MaxAttempts(r.Max), inbox.Backoff(func(attempt int) time.Duration {
		d := 200 * time.Millisecond << attempt
		return d/2 + rand.N(d/2)
	}))
}

// say writes a line to the process's input.
func (p *process) say(tb testing.TB, text string) {
	tb.Helper()
	_, err := io.WriteString(p.in, text+"\n")
	require.NoError(tb, err)
}

func (r role) store() store { return store{r.Kind, r.Name} }

func (r role) try(opts ...inbox.Option) (*inbox.Inbox, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return r.store().try(ctx, opts...)
}

// listen prints the URL at which the handler of the inbox is to be served.
func listen(in *inbox.Inbox) (net.Listener, http.Handler, error) {
	h, err := in.Handler(heads.SharedKeys(sharedKey))
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println("http://" + l.Addr().String())
	}
	return l, h, err
}
