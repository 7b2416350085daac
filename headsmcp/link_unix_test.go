//go:build unix

package headsmcp

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

func TestNextCallAfterAKillReachesTheNextProcess(t *testing.T) {
	p := newProcess(t, named("a"))
	h, _ := p.handler(Reconnect(p.connect))
	for range 5 {
		before := p.pid
		assert.Equal(t, strconv.Itoa(before), call(t, h, "a", `{}`))
		p.kill()
		require.ErrorIs(t, syscall.Kill(before, 0), syscall.ESRCH, "no zombie is left")
		answer := call(t, h, "a", `{}`)
		assert.Equal(t, strconv.Itoa(p.pid), answer)
		assert.NotEqual(t, strconv.Itoa(before), answer)
	}
	assert.Len(t, p.started, 6)
}

// A server that hangs is none that has died: calls end when their time is over, even
// when the pipe to the server is full.
func TestStoppedProcessHoldsNoCallUp(t *testing.T) {
	p := newProcess(t, named("a"))
	h := newHandler(t, heads.WithToolTimeout(200*time.Millisecond))
	session, err := p.connect(t.Context())
	require.NoError(t, err)
	addTools(t.Context(), t, h, session, Reconnect(p.connect))
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(p.pid, syscall.SIGCONT) }()
	for range 4 { // a pipe takes 64 KiB
		assert.Equal(t, failed, call(t, h, "a", `{"q":"`+strings.Repeat("x", 40<<10)+`"}`))
	}
	require.NoError(t, h.Shutdown(t.Context()), "the functions have returned")
	assert.Len(t, p.started, 1)
}

func TestServerThatReadsNothingGetsNoFurtherCalls(t *testing.T) {
	p := newProcess(t, named("a"))
	h, log := p.handler()
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGSTOP))
	stopped, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	body := `{"q":"` + strings.Repeat("x", 40<<10) + `"}`
	var calls sync.WaitGroup
	for range maxUnsent - 10 {
		calls.Go(func() { callContext(stopped, t, h, "a", body) })
	}
	calls.Wait()
	for !strings.Contains(log.String(), "does not read") {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		callContext(ctx, t, h, "a", body)
		cancel()
	}
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGCONT))
	for call(t, h, "a", `{}`) != strconv.Itoa(p.pid) { // until it has read them
	}
}
