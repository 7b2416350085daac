package heads_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noDefaults are the numbers of each package with recorded defaults that are neither a
// limit nor a default of a caller.
var noDefaults = map[string][]string{
	".": {
		"defaultDeduplicatorSize", "defaultMaxAge", "defaultFutureSkew", "defaultHandlerTimeout", "eventBodyTimeout",
		"defaultToolTimeout", "defaultToolReplyLimit", "defaultToolConcurrency", // read where they apply
		"maxPooled", "atOnce", "base64Len", // how it is done
		"maxErrorText", "maxLabel", "maxMessage", // texts of errors and logs
	},
	"fleet":     {"maxChange", "currentFormat"},
	"headstest": {"idStream", "tokenStream", "chanceStream", "maxCompared", "maxKeys", "maxKey"},
	"inbox": {
		"lookBack", "farLookBack", "farLookEvery", "fullLookEvery", "fullLookShare", "timeSlack", "clockGrain", // how events are found
	},
	"inbox/postgres": {"lately"},
	"inbox/sqlite":   {"markLength"},
}

// A new limit is recorded, or said to be none.
func TestGoldenDefaultsHaveEveryConstant(t *testing.T) {
	tables, err := filepath.Glob("testdata/golden/defaults.txt")
	require.NoError(t, err)
	for _, pattern := range []string{"*", "*/*"} {
		more, err := filepath.Glob(pattern + "/testdata/golden/defaults.txt")
		require.NoError(t, err)
		tables = append(tables, more...)
	}
	var folders []string
	for _, table := range tables {
		folders = append(folders, filepath.ToSlash(filepath.Dir(filepath.Dir(filepath.Dir(table)))))
	}
	assert.Subset(t, folders, []string{".", "fleet", "headstest", "headsmcp", "headsredis", "inbox", "inbox/postgres", "inbox/sqlite", "internal/keycache"})
	for _, folder := range folders {
		used := identifiers(t, filepath.Join(folder, "golden_test.go"))
		found := numbers(t, folder)
		for _, name := range found {
			assert.NotEqual(t, used[name], slices.Contains(noDefaults[folder], name),
				"%s: the constant %s is either among the recorded defaults of golden_test.go, or no default", folder, name)
		}
		assert.Subset(t, found, noDefaults[folder], folder)
	}
}

func identifiers(t *testing.T, file string) map[string]bool {
	used := map[string]bool{}
	ast.Inspect(parseFile(t, file), func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	})
	return used
}

func parseFile(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

// numbers returns the names of a package's constants that are neither texts nor
// numbered by iota. Those that another package defines are its own.
func numbers(t *testing.T, folder string) []string {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_windows.go") {
			continue
		}
		for _, d := range parseFile(t, file).Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != gotoken.CONST {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if i < len(spec.Values) && isNumber(spec.Values[i]) {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func isNumber(value ast.Expr) bool {
	number := true
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			number = number && n.Kind != gotoken.STRING
		case *ast.Ident:
			number = number && n.Name != "iota"
		case *ast.SelectorExpr:
			number = number && fmt.Sprint(n.X) == "time"
		}
		return true
	})
	return number
}
