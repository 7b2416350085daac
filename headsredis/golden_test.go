package headsredis

import (
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestGoldenDefaults(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	d, err := New(client)
	require.NoError(t, err)
	goldens.Defaults(t, map[string]any{"keys: prefix": d.prefix})
	goldens.Constants(t)
}
