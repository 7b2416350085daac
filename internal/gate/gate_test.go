package gate_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/gate"
)

func TestClosedGateLetsNoOneIn(t *testing.T) {
	var g gate.Gate
	require.True(t, g.Enter())
	g.Leave()
	require.NoError(t, g.Close(t.Context()))
	assert.False(t, g.Enter())
	assert.NoError(t, g.Close(t.Context()), "it may be closed twice")
}

func TestCloseWaitsForThoseInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		require.True(t, g.Enter())
		g.Stay()
		closed := make(chan error, 1)
		go func() { closed <- g.Close(t.Context()) }()
		for range 2 {
			synctest.Wait()
			assert.Empty(t, closed)
			g.Leave()
		}
		assert.NoError(t, <-closed)
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	var g gate.Gate
	require.True(t, g.Enter())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Close(ended), context.Canceled)
	g.Leave()
	for range 20 {
		require.NoError(t, g.Close(ended), "all have left, so the context makes no difference")
	}
}
