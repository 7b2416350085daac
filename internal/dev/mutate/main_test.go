package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachMutantHasOneChange(t *testing.T) {
	const source = `package p

import "fmt"

const limit = 7

type list [3]int

func f(a, b int) bool {
	x := a + b
	x = 2
	defer fmt.Print()
	if a < b && x != 0 {
		x++
		return true
	}
	return false
}
`
	name := filepath.Join(t.TempDir(), "p.go")
	require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
	mutants, err := mutantsOf(name)
	require.NoError(t, err)

	got := map[string]string{}
	for _, m := range mutants {
		_, err := parser.ParseFile(token.NewFileSet(), m.file, m.source, 0)
		assert.NoError(t, err, m)
		got[strings.TrimPrefix(m.String(), name+":")] = changedLines(source, string(m.source))
	}
	assert.Equal(t, map[string]string{
		"5: 7 becomes 8":         "const limit = 8",
		"10: + becomes -":        "x := a - b",
		"11: 2 becomes 3":        "x = 3",
		"11: statement removed":  "",
		"12: statement removed":  "",
		"13: condition negated":  "if !(a < b && x != 0) {",
		"13: && becomes ||":      "if a < b || x != 0 {",
		"13: < becomes <=":       "if a <= b && x != 0 {",
		"13: != becomes ==":      "if a < b && x == 0 {",
		"13: 0 becomes 1":        "if a < b && x != 1 {",
		"14: statement removed":  "",
		"15: true becomes false": "return false",
		"17: false becomes true": "return true",
	}, got)
}

// changedLines returns the lines that are in after, but not in before.
func changedLines(before, after string) string {
	var changed []string
	lines := strings.Split(before, "\n")
	for i, line := range strings.Split(after, "\n") {
		if i < len(lines) && strings.TrimSpace(line) != strings.TrimSpace(lines[i]) {
			changed = append(changed, strings.TrimSpace(line))
		}
	}
	return strings.Join(changed, "\n")
}
