package heads_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	gotoken "go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateAPI = flag.Bool("update-api", false, "write api.txt anew")

var apiPackages = map[string]string{".": "heads", "headstest": "headstest", "headstest/deduptest": "deduptest", "fleet": "fleet"}

// Every change of the exported API changes a line of api.txt, which a reviewer
// sees.
func TestAPIIsAsReviewed(t *testing.T) {
	var api bytes.Buffer
	for _, dir := range []string{".", "headstest", "headstest/deduptest", "fleet"} {
		for _, line := range exportedAPI(t, dir) {
			api.WriteString(line + "\n")
		}
	}
	if *updateAPI {
		require.NoError(t, os.WriteFile("testdata/api.txt", api.Bytes(), 0o644))
	}
	reviewed := heads.Must(os.ReadFile("testdata/api.txt"))(t)
	was, is := strings.Split(string(reviewed), "\n"), strings.Split(api.String(), "\n")
	without := func(lines, others []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(others, l) })
	}
	const remedy = "if the change is meant: go test -run TestAPIIsAsReviewed . -update-api"
	assert.Empty(t, without(was, is), "gone: "+remedy)
	assert.Empty(t, without(is, was), "new: "+remedy)
}

// parseDoc reads the package in dir, without its tests.
func parseDoc(t *testing.T, dir string) (*doc.Package, *gotoken.FileSet) {
	t.Helper()
	fset := gotoken.NewFileSet()
	names := heads.Must(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := heads.Must(parser.ParseFile(fset, name, nil, parser.ParseComments))(t)
		files = append(files, file)
	}
	pkg := heads.Must(doc.NewFromFiles(fset, files, apiPackages[dir]))(t)
	return pkg, fset
}

// exportedAPI is one line for each exported function, method, type, field,
// constant and variable of a package.
func exportedAPI(t *testing.T, dir string) []string {
	pkg, fset := parseDoc(t, dir)
	var lines []string
	add := func(node any) {
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, fset, node))
		lines = append(lines, pkg.Name+": "+strings.Join(strings.Fields(b.String()), " "))
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			f.Decl.Doc, f.Decl.Body = nil, nil
			add(f.Decl)
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					lines = append(lines, pkg.Name+": "+v.Decl.Tok.String()+" "+name)
				}
			}
		}
	}
	funcs(pkg.Funcs)
	values(pkg.Consts)
	values(pkg.Vars)
	for _, typ := range pkg.Types {
		for _, spec := range typ.Decl.Specs {
			spec := spec.(*ast.TypeSpec)
			spec.Doc, spec.Comment = nil, nil
			lines = append(lines, typeLines(t, pkg.Name, spec)...)
		}
		funcs(typ.Funcs)
		funcs(typ.Methods)
		values(typ.Consts)
		values(typ.Vars)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// typeLines returns one line for each field of a struct, so a new field is one
// new line.
func typeLines(t *testing.T, pkg string, spec *ast.TypeSpec) []string {
	t.Helper()
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		stripComments(spec)
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, gotoken.NewFileSet(), spec))
		return []string{pkg + ": type " + strings.Join(strings.Fields(b.String()), " ")}
	}
	lines := []string{pkg + ": type " + spec.Name.Name + " struct"}
	for _, field := range structure.Fields.List {
		var typ bytes.Buffer
		require.NoError(t, printer.Fprint(&typ, gotoken.NewFileSet(), field.Type))
		for _, name := range field.Names {
			if name.IsExported() {
				lines = append(lines, pkg+": field "+spec.Name.Name+"."+name.Name+" "+typ.String())
			}
		}
	}
	return lines
}

func stripComments(spec *ast.TypeSpec) {
	ast.Inspect(spec, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			field.Doc, field.Comment = nil, nil
		}
		return true
	})
}

// noDefaults are the numbers of each package with recorded defaults that are neither a
// limit nor a default of a caller.
var noDefaults = map[string][]string{
	".": {
		"defaultDeduplicatorSize", "defaultMaxAge", "defaultFutureSkew", "defaultHandlerTimeout", "eventBodyTimeout",
		"defaultToolTimeout", "defaultToolReplyLimit", "defaultToolConcurrency", // read where they apply
		"base64Len",                              // how it is done
		"maxErrorText", "maxLabel", "maxMessage", // texts of errors and logs
	},
	"fleet":     {"maxChange", "currentFormat"},
	"headstest": {"idStream", "tokenStream", "faultStream", "maxCompared", "maxKeys", "maxKey"},
	"inbox": {
		"searchBack", "farSearchBack", "farSearchEvery", "fullSearchEvery", "fullSearchShare", "timeSlack", "clockGrain", // how events are found
	},
	"inbox/postgres": {"lately"},
	"inbox/sqlite":   {"markLength"},
}

// A new limit is recorded, or said to be none.
func TestGoldenDefaultsHaveEveryConstant(t *testing.T) {
	tables := heads.Must(filepath.Glob("testdata/golden/defaults.txt"))(t)
	for _, pattern := range []string{"*", "*/*"} {
		more := heads.Must(filepath.Glob(pattern + "/testdata/golden/defaults.txt"))(t)
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
	f := heads.Must(parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
	return f
}

// numbers returns the names of a package's constants that are neither texts nor
// numbered by iota. Those that another package defines are its own.
func numbers(t *testing.T, folder string) []string {
	var names []string
	for path, file := range heads.Sources(t, filepath.Join(folder, "*.go")) {
		if strings.HasSuffix(path, "_windows.go") {
			continue
		}
		for _, d := range file.Decls {
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
