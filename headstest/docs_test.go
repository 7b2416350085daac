package headstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tablesOf returns the rows of a page's tables by section.
func tablesOf(t *testing.T, page string) map[string][][]string {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	tables := map[string][][]string{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "):
			section = strings.TrimLeft(line, "# ")
		case strings.HasPrefix(line, "| "):
			tables[section] = append(tables[section], strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return tables
}

// sentences has the number of statements of the contract in each section.
var sentences = map[string]int{"States and transitions": 15, "Rules": 5, "Delivery rules": 6, "Errors": 6, "Limits": 8,
	"Authentication, events and tool calls": 10, "Not in the contract": 10}

func TestEverySentenceOfTheContractHasItsTests(t *testing.T) {
	tests := testsOf(t, ".", "../cmd/heads-emulator")
	counted := map[string]int{}
	for section, rows := range tablesOf(t, "CONFORMANCE.md") {
		counted[section] = len(rows) - 1
		for n, cells := range rows[1:] {
			require.Len(t, cells, 3, "%s: %v", section, cells)
			assert.Equal(t, strconv.Itoa(n+1), cells[0], section)
			names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
			assert.NotEmpty(t, names, "%s %s has no test", section, cells[0])
			for _, name := range names {
				assert.True(t, tests[name[1]], "%s %s: there is no test %s", section, cells[0], name[1])
			}
		}
	}
	assert.Equal(t, sentences, counted)
}

// testsOf returns the names of the test functions in some folders.
func testsOf(t *testing.T, folders ...string) map[string]bool {
	tests := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					tests[f.Name.Name] = true
				}
			}
		}
	}
	return tests
}
