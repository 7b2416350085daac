// Package goldens compares what tests make with files that show what a release
// promises: the bytes that are sent, the defaults, the flags. A changed file is a break
// that scripts/compat.sh reports. The flag -update-golden writes the files.
//
// It is for tests alone.
package goldens

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

const folder = "testdata/golden"

// Compare compares got with a file of testdata/golden, or writes the file.
func Compare(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update-golden to write it", err)
	}
	if string(want) != got {
		t.Errorf("%s is no longer what was recorded, on which users rely.\nrecorded:\n%s\nnow:\n%s", path, want, got)
	}
}

// Only asserts that a folder of testdata/golden has no other files than these. What is
// no longer made must be removed by hand, since that is a break.
func Only(t testing.TB, dir string, names ...string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(folder, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("%s/%s/%s is no longer made", folder, dir, f.Name())
		}
	}
}

// Defaults compares the values with defaults.txt, one line each, sorted by name.
func Defaults(t testing.TB, values map[string]any) {
	t.Helper()
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("%s: %v\n", name, value))
	}
	slices.Sort(lines)
	Compare(t, "defaults.txt", strings.Join(lines, ""))
}

// Constants asserts that golden_test.go uses every number and every time that is a
// constant of the package in the current folder, so no new limit is forgotten. besides
// are the constants that are no limit or default of a caller.
func Constants(t testing.TB, besides ...string) {
	t.Helper()
	used := map[string]bool{}
	ast.Inspect(parse(t, "golden_test.go"), func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	})
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parse(t, file).Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				found = append(found, numbers(g)...)
			}
		}
	}
	for _, name := range found {
		if !used[name] && !slices.Contains(besides, name) {
			t.Errorf("the constant %s is not among the defaults; add it, or name it as no limit of a caller", name)
		}
	}
	for _, name := range besides {
		if !slices.Contains(found, name) {
			t.Errorf("there is no constant %s", name)
		}
	}
}

func parse(t testing.TB, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// numbers returns the names of constants that are neither texts nor numbered by iota.
// Those that another package defines are its own.
func numbers(g *ast.GenDecl) []string {
	var names []string
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		number := len(spec.Values) > 0
		for _, value := range spec.Values {
			ast.Inspect(value, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					number = number && n.Kind != token.STRING
				case *ast.Ident:
					number = number && n.Name != "iota"
				case *ast.SelectorExpr:
					number = number && fmt.Sprint(n.X) == "time"
				}
				return true
			})
		}
		if !number {
			continue
		}
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	}
	return names
}
