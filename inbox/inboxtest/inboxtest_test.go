package inboxtest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/inboxtest"
)

const (
	headID    = "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c"
	sharedKey = "the key of the registration"
)

// store appends an event of the session.
func store(t *testing.T, in *inboxtest.Inbox, session string) {
	t.Helper()
	r := headstest.NewEventRequest("https://app.example.com/events", heads.Event{Type: heads.EventStartConversation, HeadID: headID, SessionID: session}, sharedKey)
	handler, err := in.Handler(heads.SharedKeys(sharedKey))
	require.NoError(t, err)
	answer := answerOf(handler, r)
	require.Equal(t, 200, answer)
}

func TestWaitHandledWaitsForTheFile(t *testing.T) {
	in := inboxtest.Open(t)
	for _, session := range []string{"a", "b", "c"} {
		store(t, in, session)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	release := make(chan struct{})
	go func() {
		ended <- in.Run(ctx, func(_ context.Context, d *inbox.Delivery) error {
			if d.Event.SessionID == "c" {
				<-release
			}
			return nil
		})
	}()
	require.NoError(t, in.WaitHandled(t.Context(), 2))
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	err := in.WaitHandled(short, 3)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.EqualError(t, err, "inboxtest: wait for 3 handled events: 2 are handled, 1 wait and 0 are dead: context deadline exceeded")
	close(release)
	require.NoError(t, in.WaitHandled(t.Context(), 3))
	status, err := in.Status(t.Context())
	require.NoError(t, err)
	assert.Zero(t, status.Pending)
	cancel()
	require.NoError(t, <-ended)
}

func TestWaitHandledCountsNoDeadEvent(t *testing.T) {
	in := inboxtest.Open(t)
	store(t, in, "a")
	died := make(chan struct{}, 1)
	in.OnAttempt(func(context.Context, time.Duration, error) { died <- struct{}{} })
	go func() {
		_ = in.Run(t.Context(), func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errors.New("broken")) })
	}()
	<-died
	require.Eventually(t, func() bool { s, err := in.Status(t.Context()); return err == nil && s.Dead == 1 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorContains(t, in.WaitHandled(ctx, 1), "0 are handled, 0 wait and 1 are dead")
	assert.NoError(t, in.WaitHandled(t.Context(), 0))
}

func TestFileIsRemovedWithTheTest(t *testing.T) {
	var dir string
	t.Run("opens", func(t *testing.T) {
		dir = t.TempDir() // in addition to the folder of Open
		in := inboxtest.Open(t)
		store(t, in, "a")
		_, err := os.Stat(dir + "/../002/inbox.db")
		require.NoError(t, err)
	})
	_, err := os.Stat(dir + "/..")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTwoInboxesShareNothing(t *testing.T) {
	a, b := inboxtest.Open(t), inboxtest.Open(t)
	store(t, a, "a")
	status, err := b.Status(t.Context())
	require.NoError(t, err)
	assert.Zero(t, status.Pending)
}
