package heads_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

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
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(line)
}

// A receiver of 50 heads that is killed while 200 sessions talk, and started again
// after 2.5 s, gets every event: the redeliveries come after 1, 2 and 4 s, and those of
// heads that the new process has never met must not use them up. The heads were
// registered by another program.
func TestReceiverThatWasKilledGetsEveryEvent(t *testing.T) {
	const headCount, sessions, down = 50, 200, 2500 * time.Millisecond
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
	ended := 0
	sent := map[string]bool{}
	refused := map[int]int{}
	_, err := srv.WaitDelivery(t.Context(), func(d headstest.Delivery) bool {
		sent[d.Event.Key()] = true
		if d.Status != http.StatusOK {
			refused[d.Status]++
		}
		if d.Final {
			ended++
		}
		return ended == 2*sessions
	})
	require.NoError(t, err)

	written, err := os.ReadFile(store)
	require.NoError(t, err)
	stored := map[string]bool{}
	for line := range bytes.Lines(written) {
		stored[strings.TrimSpace(string(line))] = true
	}
	lost := 0
	for key := range sent {
		if !stored[key] {
			lost++
		}
	}
	t.Logf("%d events sent, %d stored, %d lost; deliveries that were not answered 200, by status: %v", len(sent), len(stored), lost, refused)
	assert.Len(t, sent, 2*sessions)
	assert.Zero(t, lost)
	assert.NotEmpty(t, refused[0], "the receiver was down")
}
