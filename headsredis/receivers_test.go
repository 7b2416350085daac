//go:build unix

package headsredis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	sharedKey  = "key-of-the-receivers"
	socketVar  = "HEADSREDIS_TEST_SOCKET" // makes the test binary a receiver
	journalVar = "HEADSREDIS_TEST_JOURNAL"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVar); socket != "" {
		receive(socket, os.Getenv(journalVar))
	}
	os.Exit(m.Run())
}

// receive is the main function of a receiver. It ends when its standard input ends.
func receive(socket, dir string) {
	journal, err := openJournal(dir)
	must(err)
	store, err := New(newRedisClient(socket))
	must(err)
	handler, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), journal.handle, heads.WithDeduplicator(store), heads.WithHandlerTimeout(handlerTimeout))
	must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	must(http.Serve(listener, handler))
}

func must(err error) {
	if err != nil {
		log.Fatal("receiver: ", err)
	}
}

// journal is the file to which all receivers append. No line is lost if a receiver crashes.
type journal struct {
	dir  string
	file *os.File
}

func openJournal(dir string) (*journal, error) {
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &journal{dir, file}, err
}

// handle is the event function. While it runs, it holds a lock, which the kernel releases when the
// process ends.
func (j *journal) handle(ctx context.Context, e *heads.Event) error {
	lock, err := os.OpenFile(filepath.Join(j.dir, e.Key()), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return j.write("twice at the same time", e)
	}
	select {
	case <-time.After(handlingTime):
		return j.write("handled", e)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *journal) write(what string, e *heads.Event) error {
	_, err := fmt.Fprintf(j.file, "%s\t%s\n", e.SessionID, what)
	return err
}

// lines returns how often each line was written, and how many there are.
func (j *journal) lines() (lines map[string]int, all int) {
	text, _ := os.ReadFile(filepath.Join(j.dir, "journal"))
	lines = map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
		all++
	}
	return lines, all
}

// receiver is a process that runs receive.
type receiver struct {
	cmd *exec.Cmd
	url string
}

func startReceiver(t *testing.T, socket, dir string) *receiver {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), socketVar+"="+socket, journalVar+"="+dir)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r := &receiver{cmd: cmd}
	t.Cleanup(r.kill)
	r.url, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the receiver does not start")
	r.url = strings.TrimSpace(r.url)
	return r
}

func (r *receiver) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

const (
	events         = 2000
	concurrency    = 64 // concurrent deliveries
	handlerTimeout = 2 * time.Second
	handlingTime   = 5 * time.Millisecond
	thirdAfter     = time.Second
	fourthAfter    = handlerTimeout + 5*time.Second + time.Second // the crashed receiver's lease has ended
)

// sender acts as the service. It delivers each event up to four times, two of them at the same time
// to both receivers.
type sender struct {
	urls       [2]atomic.Pointer[string]
	outage     sync.RWMutex // held for writing while something is broken
	deliveries atomic.Int64
	client     http.Client
}

// deliver delivers an event and reports whether a delivery was answered with 200.
func (s *sender) deliver(e heads.Event) bool {
	answers := make(chan bool, 2)
	for i := range s.urls {
		go func() { answers <- s.post(i, e) }()
	}
	one, two := <-answers, <-answers
	if one || two {
		return true
	}
	<-time.After(thirdAfter)
	if s.post(1, e) {
		return true
	}
	<-time.After(fourthAfter)
	s.outage.RLock() // an outage must be shorter than all deliveries
	defer s.outage.RUnlock()
	return s.post(0, e)
}

func (s *sender) post(receiver int, e heads.Event) bool {
	s.deliveries.Add(1)
	req := headstest.NewEventRequest(*s.urls[receiver].Load(), e, sharedKey)
	resp, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// send delivers all events and returns the number that was never answered with 200.
func (s *sender) send() (unanswered int64) {
	queue := make(chan heads.Event)
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for e := range queue {
				if !s.deliver(e) {
					failed.Add(1)
				}
			}
		})
	}
	for i := range events {
		queue <- heads.Event{Type: heads.EventStartConversation, HeadID: "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b", SessionID: fmt.Sprintf("session-%d", i), Timestamp: heads.Time{Time: time.Now()}}
	}
	close(queue)
	wg.Wait()
	return failed.Load()
}

// Two receivers share one Redis. One of them is killed in the middle, then Redis hangs, then it is
// killed and started again.
func TestEveryEventIsHandledAndNoneTwiceAtTheSameTime(t *testing.T) {
	server := startRedis(t)
	journal, err := openJournal(t.TempDir())
	require.NoError(t, err)
	defer func() { _ = journal.file.Close() }()
	s := &sender{client: http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}}
	defer s.client.CloseIdleConnections()
	var receivers [2]*receiver
	start := func(i int) {
		receivers[i] = startReceiver(t, server.socket, journal.dir)
		s.urls[i].Store(&receivers[i].url)
	}
	start(0)
	start(1)

	unanswered := make(chan int64, 1)
	go func() { unanswered <- s.send() }()
	for i, incident := range []func(){
		func() {
			receivers[1].kill()
			start(1)
		},
		func() {
			resume := server.hang()
			<-time.After(1500 * time.Millisecond)
			resume()
		},
		func() {
			server.kill()
			server.start()
		},
	} {
		require.Eventually(t, func() bool { _, all := journal.lines(); return all >= events*(i+1)/4 }, time.Minute, 5*time.Millisecond)
		s.outage.Lock()
		incident()
		s.outage.Unlock()
	}
	never := <-unanswered

	handled, all := journal.lines()
	again := all - len(handled)
	t.Logf("%d events, %d deliveries: %d handled, %d of them again after a crash, %d never answered 200", events, s.deliveries.Load(), len(handled), again, never)
	for line := range handled {
		assert.Regexp(t, "\thandled$", line)
	}
	assert.Len(t, handled, events)
	assert.Zero(t, never)
	assert.Less(t, again, 3*2*concurrency, "only what was under way when something broke")
}
