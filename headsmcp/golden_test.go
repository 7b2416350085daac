package headsmcp

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

func TestGoldenDefaults(t *testing.T) {
	values := map[string]any{
		"tools":                                          maxTools,
		"connection: timeout":                            connectTimeout,
		"connection: first wait before the next":         firstWait,
		"connection: longest wait before the next":       longestWait,
		"connection: calls that the server has not read": maxUnsent,
		"descriptions: characters":                       maxText,
		"descriptions: characters beside long facts":     minText,
		"descriptions: values of an enum":                maxValues,
		"descriptions: levels":                           maxLevels,
		"descriptions: types":                            maxWords,
		"schemas: parts":                                 maxSize,
		"arguments: steps of a check":                    maxSteps,
		"arguments: depth of a check":                    maxDepth,
		"arguments: matches of a pattern in a step":      matchPerStep,
	}
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("%s: %v\n", name, value))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, ""), "testdata/golden/defaults.txt"
	if *updateGolden {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "-update-golden writes it")
	assert.Equal(t, string(want), got, "users rely on what is recorded")
}
