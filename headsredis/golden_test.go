package headsredis

import (
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

func TestGoldenDefaults(t *testing.T) {
	const path = "testdata/golden/defaults.txt"
	d, err := New(redis.NewClient(&redis.Options{}))
	require.NoError(t, err)
	got := "keys: prefix: " + d.prefix + "\n"
	if *updateGolden {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "-update-golden writes it")
	assert.Equal(t, string(want), got, "users rely on what is recorded")
}
