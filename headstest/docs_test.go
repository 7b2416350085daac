package headstest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentences has the number of statements of the contract in each section.
var sentences = map[string]int{"States and transitions": 15, "Rules": 5, "Delivery rules": 6, "Errors": 6, "Limits": 8,
	"Authentication, events and tool calls": 10, "Not in the contract": 10}

func TestEverySentenceOfTheContractHasItsTests(t *testing.T) {
	page, err := os.ReadFile("CONFORMANCE.md")
	require.NoError(t, err)
	tests := testsOf(t, "*_test.go", "../cmd/heads-emulator/*_test.go")
	counted, section := map[string]int{}, ""
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if strings.HasPrefix(line, "#") {
			section = strings.Trim(line, "#\n ")
		} else if _, err := strconv.Atoi(cells[0]); err == nil {
			require.Len(t, cells, 3, line)
			counted[section]++
			assert.Equal(t, strconv.Itoa(counted[section]), cells[0], section)
			names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
			assert.NotEmpty(t, names, "no test: %s", line)
			for _, name := range names {
				assert.Contains(t, tests, name[1], line)
			}
		}
	}
	assert.Equal(t, sentences, counted)
}

// testsOf returns the names of the tests in the files that match some patterns.
func testsOf(t *testing.T, patterns ...string) (names []string) {
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}
