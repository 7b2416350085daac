package headsredis

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

func TestGoldenDefaults(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	d, err := New(client)
	require.NoError(t, err)
	compareDefaults(t, map[string]any{"keys: prefix": d.prefix})
}

// compareDefaults is a copy of Defaults of internal/goldens in module heads, which other modules
// must not import.
func compareDefaults(t *testing.T, values map[string]any) {
	t.Helper()
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("%s: %v\n", name, value))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, ""), "testdata/golden/defaults.txt"
	if *updateGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "-update-golden writes it")
	assert.Equal(t, string(want), got, "users rely on what is recorded")
}
