package heads_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every snippet of a page is a part of the body of an example, so a test compiles
// it.
func TestSnippetsArePartsOfExamples(t *testing.T) {
	bodies := exampleBodies(t)
	pages := heads.Must(filepath.Glob("docs/*.md"))(t)
	found := 0
	for _, page := range append(pages, "README.md") {
		text := heads.Must(os.ReadFile(page))(t)
		for _, block := range goBlock.FindAllSubmatch(text, -1) {
			if bytes.HasPrefix(block[1], []byte("package main")) {
				continue // scripts/pages.sh runs it
			}
			found++
			assert.NotRegexp(t, `(?m)^\s*_(, err)? :?= (client|srv|server|handler|in)\b`, string(block[1]), "%s: a snippet ignores a result", page)
			assert.True(t, contains(bodies, normalize(string(block[1]))), "%s: no example holds\n%s", page, block[1])
		}
	}
	assert.NotZero(t, found)
}

func TestPackageSnippetIsPartOfAnExample(t *testing.T) {
	file := heads.Must(parser.ParseFile(gotoken.NewFileSet(), "doc.go", nil, parser.ParseComments))(t)
	snippet := regexp.MustCompile(`(?m)^\t.*\n`).FindAllString(file.Doc.Text(), -1)
	require.NotEmpty(t, snippet)
	assert.True(t, contains(exampleBodies(t), normalize(strings.Join(snippet, ""))))
}

func TestVersionIsTheTopEntryOfTheChangelog(t *testing.T) {
	text := heads.Must(os.ReadFile("CHANGELOG.md"))(t)
	entries := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(string(text))
	require.NotNil(t, entries)
	assert.Equal(t, heads.Version, entries[1])
}

func TestEventOfTheWebhooksPageIsSigned(t *testing.T) {
	page := heads.Must(os.ReadFile("docs/webhooks.md"))(t)
	event := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindSubmatch(page)
	signature := regexp.MustCompile(`(?m)^X-Signature-256: (\w+)$`).FindSubmatch(page)
	require.NotNil(t, event)
	require.NotNil(t, signature)
	assert.NoError(t, heads.VerifySignature(event[1], string(signature[1]), "example-shared-key"))
}

func TestReadmeSaysHowToGetEveryModule(t *testing.T) {
	readme := heads.Must(os.ReadFile("README.md"))(t)
	modules := []string{"go.mod"}
	for _, pattern := range []string{"*/go.mod", "cmd/*/go.mod"} {
		found := heads.Must(filepath.Glob(pattern))(t)
		modules = append(modules, found...)
	}
	assert.Greater(t, len(modules), 5)
	for _, file := range modules {
		text := heads.Must(os.ReadFile(file))(t)
		module := regexp.MustCompile(`(?m)^module (\S+)`).FindSubmatch(text)[1]
		assert.Regexp(t, "(?m)^\\|.*`go (get|install) "+regexp.QuoteMeta(string(module))+"(@latest)?`", string(readme))
	}
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
	text := heads.Must(os.ReadFile("examples/README.md"))(t)
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

func contains(bodies []string, snippet string) bool {
	return slices.ContainsFunc(bodies, func(body string) bool { return strings.Contains(body, snippet) })
}

// exampleBodies returns the bodies of all examples and of the functions that they
// call, without indentation.
func exampleBodies(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go", "*/examples/*/*_test.go"} {
		files = append(files, heads.Must(filepath.Glob(pattern))(t)...)
	}
	var bodies []string
	for _, name := range files {
		source := heads.Must(os.ReadFile(name))(t)
		fset := gotoken.NewFileSet()
		file := heads.Must(parser.ParseFile(fset, name, source, parser.ParseComments))(t)
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
	programs := heads.Must(filepath.Glob("*/examples/*/*.go"))(t)
	for _, name := range programs {
		source := heads.Must(os.ReadFile(name))(t)
		bodies = append(bodies, normalize(string(source)))
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

// Modules are released together with one version, and a tagged one must name a root that
// exists.
func TestNestedModulesRequireTheVersionOfTheRoot(t *testing.T) {
	for _, dir := range []string{"inbox", "headsmcp", "headsotel", "headsredis", filepath.Join("cmd", "headsctl")} {
		text := heads.Must(os.ReadFile(filepath.Join(dir, "go.mod")))(t)
		required := regexp.MustCompile(`(?m)^(?:require)?\s*github\.com/headsapi/heads-go (\S+)$`).FindAllStringSubmatch(string(text), -1)
		if assert.Len(t, required, 1, dir) {
			assert.Equal(t, "v"+heads.Version, required[0][1], dir)
		}
		assert.Regexp(t, `(?m)^replace github\.com/headsapi/heads-go => \.\./(\.\.)?$`, string(text), "%s: the branch builds the root beside it", dir)
	}
}

func TestScriptsForgetTheVariablesOfGitAndCDPATH(t *testing.T) {
	files := heads.Must(filepath.Glob("scripts/*.sh"))(t)
	names := heads.Must(exec.Command("git", "rev-parse", "--local-env-vars").Output())(t)
	variables := append(strings.Fields(string(names)), "CDPATH")
	for _, file := range append(files, ".ci/run") {
		if file == "scripts/modules.sh" {
			continue // is sourced by the others
		}
		text := heads.Must(os.ReadFile(file))(t)
		begin, _, found := strings.Cut(string(text), "\ncd ")
		if !found || strings.Contains(begin, "\nhere=") {
			begin, _, _ = strings.Cut(string(text), "\nhere=")
		}
		script := exec.Command("bash", "-c", begin+"\nenv")
		script.Env = os.Environ()
		for _, name := range variables {
			script.Env = append(script.Env, name+"=elsewhere")
		}
		out, err := script.Output()
		require.NoError(t, err, file)
		assert.NotContains(t, string(out), "=elsewhere", file)
	}
}
