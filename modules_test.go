package heads_test

import (
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nestedModules returns the folders of the modules that users import or install
// beside the root.
func nestedModules(t *testing.T) []string {
	var dirs []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join("internal", "dev"), d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Name() == "go.mod" && path != "go.mod":
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	}))
	return dirs
}

// internalImports returns the imports of the root's internal packages by the files
// below a folder, as "FILE: PACKAGE".
func internalImports(t *testing.T, dir string) []string {
	const internal = "github.com/headsapi/heads-go/internal/"
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err != nil || strings.HasPrefix(name, internal) {
				found = append(found, path+": "+name)
			}
		}
		return nil
	}))
	return found
}

// A user may combine a newer root with an older module, and internal packages promise
// nothing. Their tests are checked too: they are run against the root of the day.
func TestNestedModulesImportNoInternalPackage(t *testing.T) {
	modules := nestedModules(t)
	assert.Subset(t, modules, []string{filepath.Join("cmd", "headsctl"), "headsmcp", "headsotel", "headsredis", "inbox"})
	for _, dir := range modules {
		assert.Empty(t, internalImports(t, dir), dir)
	}
	dir := t.TempDir()
	source := "package p\n\nimport _ \"github.com/headsapi/heads-go/internal/mask\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600))
	assert.Len(t, internalImports(t, dir), 1, "an import is found")
}
