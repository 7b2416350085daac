// Receiver shows that no event is lost and no effect happens twice. Three receivers behind one URL
// share an inbox, and one of them is killed while it handles events.
//
// An emulator in this process plays sessions and delivers their events. Each receiver is a separate
// process, which stores the events that it receives and handles stored events of all receivers. For
// each event, it inserts a row into the table visits through Commit:
//
//	go run ./examples/receiver
//	go run ./examples/receiver -dsn postgres://localhost/visits
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/database"
)

const keyVariable = "RECEIVER_SHARED_KEY"

type settings struct {
	path, dsn string
	sessions  int
	receive   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var s settings
	flags := flag.NewFlagSet("receiver", flag.ContinueOnError)
	flags.StringVar(&s.path, "file", "", "SQLite file of the inbox; empty: a temporary one")
	flags.StringVar(&s.dsn, "dsn", "", "PostgreSQL database of the inbox, instead of a file")
	flags.IntVar(&s.sessions, "sessions", 200, "how many sessions are played")
	flags.BoolVar(&s.receive, "receive", false, "be one of the receivers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.receive {
		return receive(ctx, out, s)
	}
	if s.path == "" {
		dir, err := os.MkdirTemp("", "receiver")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.path = filepath.Join(dir, "inbox.db")
	}
	return demo(ctx, out, s)
}

// openInbox opens the inbox that all receivers share, and the table visits.
func openInbox(ctx context.Context, s settings) (*inbox.Inbox, error) {
	dsn := s.dsn
	if dsn == "" {
		dsn = "sqlite:" + s.path
	}
	return database.OpenInbox(ctx, dsn, inbox.WithTables("CREATE TABLE IF NOT EXISTS visits (session TEXT, event TEXT, receiver BIGINT)"))
}

// receive stores events and handles them until ctx ends.
func receive(ctx context.Context, out io.Writer, s settings) error {
	in, err := openInbox(ctx, s)
	if err != nil {
		return err
	}
	handler, err := in.Handler(heads.SharedKeys(os.Getenv(keyVariable)))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "http://"+listener.Addr().String())

	insert := "INSERT INTO visits (session, event, receiver) VALUES ($1, $2, $3)"
	return in.Serve(ctx, &http.Server{Handler: handler}, func(ctx context.Context, d *inbox.Delivery) error {
		return d.Commit(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert, d.Event.SessionID, string(d.Event.Type), os.Getpid())
			return err
		})
	}, inbox.Listener(listener), inbox.Lease(2*time.Second))
}

// demo starts the receivers, plays the sessions, kills a receiver and counts.
func demo(ctx context.Context, out io.Writer, s settings) error {
	in, err := openInbox(ctx, s)
	if err != nil {
		return err
	}
	defer in.Close(context.WithoutCancel(ctx))
	emulator := headstest.NewServer(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule(50*time.Millisecond, 200*time.Millisecond, 800*time.Millisecond))
	defer emulator.Close()
	head := emulator.AddHead(headstest.Head{Name: "Ada"})

	balancer := &balancer{}
	front := httptest.NewServer(balancer)
	defer front.Close()
	hook, err := emulator.Client().Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: head, URL: front.URL, Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	}, heads.EnsureOptions{})
	if err != nil {
		return err
	}
	for range 3 {
		r, err := startReceiver(ctx, s, hook.SharedKey.Reveal())
		if err != nil {
			return err
		}
		defer r.stop()
		balancer.receivers = append(balancer.receivers, r)
		fmt.Fprintf(out, "receiver %d listens\n", r.cmd.Process.Pid)
	}
	for range s.sessions {
		session := emulator.StartSession(head)
		if err := errors.Join(session.UserMessage("Hello"), session.Close()); err != nil {
			return err
		}
	}
	for ctx.Err() == nil && tallyOf(emulator).ended < s.sessions {
		wait(ctx, time.Millisecond)
	}
	victim := balancer.receivers[1]
	victim.kill()
	fmt.Fprintf(out, "receiver %d killed in the middle\n", victim.cmd.Process.Pid)
	return report(ctx, out, in.SQL(), emulator, 2*s.sessions)
}

// tally counts the deliveries of the emulator.
type tally struct{ acknowledged, ended, retried int }

func tallyOf(emulator *headstest.Server) (t tally) {
	for _, d := range emulator.Deliveries() {
		if d.Attempt == 2 {
			t.retried++
		}
		if d.Final {
			t.ended++
		}
		if d.Final && d.Status == http.StatusOK {
			t.acknowledged++
		}
	}
	return t
}

// report waits until every acknowledged event has its row.
func report(ctx context.Context, out io.Writer, db *sql.DB, emulator *headstest.Server, events int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		t := tallyOf(emulator)
		var visits, different int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM visits").Scan(&visits); err != nil {
			return err
		}
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT DISTINCT session, event FROM visits) v").Scan(&different); err != nil {
			return err
		}
		if t.ended == events && visits >= t.acknowledged {
			fmt.Fprintf(out, "%d events, %d redelivered, %d acknowledged, %d visits, %d lost, %d doubled\n",
				events, t.retried, t.acknowledged, visits, t.acknowledged-different, visits-different)
			return byReceiver(ctx, out, db)
		}
		wait(ctx, 50*time.Millisecond)
	}
	return errors.New("the events were not handled within a minute")
}

func byReceiver(ctx context.Context, out io.Writer, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT receiver, count(*) FROM visits GROUP BY receiver ORDER BY receiver")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var receiver, n int
		if err := rows.Scan(&receiver, &n); err != nil {
			return err
		}
		fmt.Fprintf(out, "receiver %d handled %d\n", receiver, n)
	}
	return rows.Err()
}

// receiver is one of the processes.
type receiver struct {
	cmd   *exec.Cmd
	proxy *httputil.ReverseProxy
}

func startReceiver(ctx context.Context, s settings, key string) (*receiver, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-receive", "-file", s.path, "-dsn", s.dsn)
	cmd.Env = append(os.Environ(), keyVariable+"="+key)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("a receiver did not start: %w", err)
	}
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	return &receiver{cmd: cmd, proxy: proxy}, nil
}

// kill sends SIGKILL.
func (r *receiver) kill() { _ = r.cmd.Process.Kill() }

func (r *receiver) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	_ = r.cmd.Wait()
}

// balancer passes each delivery to the next receiver. If that one is dead, the event is
// redelivered.
type balancer struct {
	receivers []*receiver
	next      atomic.Int64
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.receivers[int(b.next.Add(1))%len(b.receivers)].proxy.ServeHTTP(w, r)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
