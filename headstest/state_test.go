package headstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStateKnowsNoHTTPAndNoEmulator(t *testing.T) {
	files := need(filepath.Glob("state*.go"))(t)
	require.Greater(t, len(files), 4)
	for _, name := range append(files, "records.go", "headfields.go") {
		if name == "state_test.go" {
			continue
		}
		file := need(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		for _, imported := range file.Imports {
			assert.NotEqual(t, `"net/http"`, imported.Path.Value, name)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				assert.NotContains(t, []string{"core", "Emulator", "Session", "run", "control", "reply", "refuse"}, id.Name, name)
			}
			return true
		})
	}
}
