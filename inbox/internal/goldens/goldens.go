// Package goldens compares the defaults of the module's packages with recorded ones. It is a
// partial copy of internal/goldens of module heads, which other modules must not import.
package goldens

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

// Defaults compares the values with defaults.txt, one line each, sorted by name.
func Defaults(t testing.TB, values map[string]any) {
	t.Helper()
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("%s: %v\n", name, value))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, ""), "testdata/golden/defaults.txt"
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "-update-golden writes it")
	assert.Equal(t, string(want), got, "users rely on what is recorded")
}
