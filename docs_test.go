package heads_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	heads "github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every snippet of a page is a part of the body of an example, so a test compiles
// it.
func TestSnippetsArePartsOfExamples(t *testing.T) {
	bodies := exampleBodies(t)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range goBlock.FindAllSubmatch(text, -1) {
			if bytes.HasPrefix(block[1], []byte("package main")) {
				continue // TestReadmeProgramPrintsWhatThePageSays
			}
			found++
			assert.NotRegexp(t, `(?m)^\s*_(, err)? :?= (client|srv|server|handler|in)\b`, string(block[1]), "%s: a snippet ignores a result", page)
			assert.True(t, contains(bodies, normalize(string(block[1]))), "%s: no example holds\n%s", page, block[1])
		}
	}
	assert.NotZero(t, found)
}

func TestPackageSnippetIsPartOfAnExample(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	snippet := regexp.MustCompile(`(?m)^\t.*\n`).FindAllString(file.Doc.Text(), -1)
	require.NotEmpty(t, snippet)
	assert.True(t, contains(exampleBodies(t), normalize(strings.Join(snippet, ""))))
}

func TestVersionIsTheTopEntryOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	require.NoError(t, err)
	entries := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(string(text))
	require.NotNil(t, entries)
	assert.Equal(t, heads.Version, entries[1])
}

// The front door is one that is read to its end.
func TestReadmeIsShort(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	assert.LessOrEqual(t, len(bytes.Fields(readme)), 700, "words")
}

func TestReadmeProgramPrintsWhatThePageSays(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n\n```text\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, block)
	assert.LessOrEqual(t, bytes.Count(block[1], []byte("\n")), 30, "lines")
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, block[1], 0o600))
	out, err := exec.Command("go", "run", program).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, string(block[2]), string(out))
}

func TestReadmeSaysHowToGetEveryModule(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	modules := []string{"go.mod"}
	for _, pattern := range []string{"*/go.mod", "cmd/*/go.mod"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		modules = append(modules, found...)
	}
	assert.Greater(t, len(modules), 5)
	for _, file := range modules {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		module := regexp.MustCompile(`(?m)^module (\S+)`).FindSubmatch(text)[1]
		assert.Regexp(t, "(?m)^\\|.*`go (get|install) "+regexp.QuoteMeta(string(module))+"(@latest)?`", string(readme))
	}
}

func TestArchitectureListsEveryFileOnce(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+?(?:\\.go|))/?` \\|").FindAllStringSubmatch(string(page), -1) {
		if strings.HasSuffix(row[1], ".go") || strings.HasPrefix(row[1], "internal/") {
			listed = append(listed, row[1])
		}
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	packages, err := filepath.Glob("internal/*")
	require.NoError(t, err)
	assert.ElementsMatch(t, append(files, packages...), listed)
}

// Every folder of an example has one row, with the time that it takes, and a command,
// which scripts/pages.sh runs.
func TestExamplesPageListsEveryExample(t *testing.T) {
	var folders []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		folder := filepath.Dir(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && strings.Contains(folder, "examples/") && !slices.Contains(folders, folder):
			folders = append(folders, folder)
		}
		return nil
	}))
	assert.Greater(t, len(folders), 11)
	text, err := os.ReadFile("examples/README.md")
	require.NoError(t, err)
	var listed []string
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindString(string(text))
	for _, row := range regexp.MustCompile(`(?m)^\| \[.*`).FindAllString(string(text), -1) {
		found := regexp.MustCompile(`^\| \[(.+)\]\((.+)\).* \| .+ \| [0-9.]+ s \|$`).FindStringSubmatch(row)
		require.NotNil(t, found, row)
		assert.Regexp(t, "(?m)^go .*/"+regexp.QuoteMeta(found[1])+`\b`, commands)
		listed = append(listed, filepath.Join("examples", found[2]))
	}
	assert.ElementsMatch(t, folders, listed)
}

// Prose is wrapped so that it can be read and compared in a terminal. Tables, code,
// headings and pictures are exempt.
func TestPagesWrapAt100Characters(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, pattern := range []string{"*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	assert.Greater(t, len(pages), 20)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.Empty(t, longLines(string(text)), page)
	}
}

// longLines returns the lines of a page's prose that are longer than 100 characters.
func longLines(page string) (long []string) {
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		exempt := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#") ||
			strings.HasPrefix(line, "<img ") || strings.HasPrefix(line, "![")
		if !exempt && utf8.RuneCountInString(line) > 100 {
			long = append(long, line)
		}
	}
	return long
}

// Comments wrap like pages. Code in them and the output of an example are exempt.
func TestCommentsWrapAt100Characters(t *testing.T) {
	var files int
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
			exempt := strings.HasSuffix(path, "example_test.go")
			assert.False(t, ok && !exempt && utf8.RuneCountInString(comment) > 97, "%s: %s", path, comment)
		}
		return err
	}))
	assert.Greater(t, files, 500)
}

func TestLongLinesAreThoseOfProse(t *testing.T) {
	wide := strings.Repeat("word ", 21)
	assert.Equal(t, []string{wide}, longLines("short\n"+wide+"\n| "+wide+"|\n```text\n"+wide+"\n```\n    "+wide+"\n"))
}

func contains(bodies []string, snippet string) bool {
	for _, body := range bodies {
		if strings.Contains(body, snippet) {
			return true
		}
	}
	return false
}

// exampleBodies returns the bodies of all examples and of the functions that they
// call, without indentation.
func exampleBodies(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	nested, err := filepath.Glob("*/*_test.go") // of the other packages and modules
	require.NoError(t, err)
	deeper, err := filepath.Glob("*/*/*_test.go")
	require.NoError(t, err)
	deepest, err := filepath.Glob("*/examples/*/*_test.go")
	require.NoError(t, err)
	files = slices.Concat(files, nested, deeper, deepest)
	var bodies []string
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		fset := gotoken.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
		require.NoError(t, err)
		for _, example := range doc.Examples(file) {
			from, to := example.Code.Pos(), example.Code.End()
			if block, ok := example.Code.(*ast.BlockStmt); ok {
				from, to = block.Lbrace+1, block.Rbrace
			}
			bodies = append(bodies, normalize(string(source[fset.Position(from).Offset:fset.Position(to).Offset])))
		}
		if !strings.HasPrefix(filepath.Base(name), "example_") {
			continue
		}
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok { // one that an example calls
				bodies = append(bodies, normalize(string(source[fset.Position(function.Pos()).Offset:fset.Position(function.End()).Offset])))
			}
		}
	}
	return bodies
}

// normalize removes indentation, and empty lines at both ends.
func normalize(text string) string {
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return strings.TrimSpace(b.String())
}

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
// nothing. A program is built with the root that its go.mod names. Their tests are checked too: they are run against the root of the day.
func TestNestedModulesImportNoInternalPackage(t *testing.T) {
	modules := nestedModules(t)
	assert.Subset(t, modules, []string{filepath.Join("cmd", "headsctl"), "headsmcp", "headsotel", "headsredis", "inbox"})
	for _, dir := range modules {
		if dir != filepath.Join("cmd", "headsctl") {
			assert.Empty(t, internalImports(t, dir), dir)
		}
	}
	dir := t.TempDir()
	source := "package p\n\nimport _ \"github.com/headsapi/heads-go/internal/mask\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600))
	assert.Len(t, internalImports(t, dir), 1, "an import is found")
}

// Modules are released together with one version, and a tagged one must name a root that
// exists.
func TestNestedModulesRequireTheVersionOfTheRoot(t *testing.T) {
	for _, dir := range []string{"inbox", "headsmcp", "headsotel", "headsredis", filepath.Join("cmd", "headsctl")} {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		require.NoError(t, err)
		required := regexp.MustCompile(`(?m)^(?:require)?\s*github\.com/headsapi/heads-go (\S+)$`).FindAllStringSubmatch(string(text), -1)
		if assert.Len(t, required, 1, dir) {
			assert.Equal(t, "v"+heads.Version, required[0][1], dir)
		}
		assert.Regexp(t, `(?m)^replace github\.com/headsapi/heads-go => \.\./(\.\.)?$`, string(text), "%s: the branch builds the root beside it", dir)
	}
}
