package headstest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// failure is a test that notes how it failed.
type failure struct{ text string }

func (f *failure) Helper() {}

func (f *failure) Fatalf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

const toolsToken = "Zm9ydHktdHdvLWJ5dGVzLW9mLXRva2Vu"

// toolsOf returns the tools of a program.
func toolsOf(t *testing.T) []heads.Tool {
	t.Helper()
	h := need(heads.NewToolHandler("https://tools.museum.example/voice", heads.WithPathToken(toolsToken)))(t)
	type day struct {
		Day string `json:"day" jsonschema:"The day of the visit, '${today}' & later."`
	}
	hours := func(context.Context, day) (string, error) { return "", nil }
	require.NoError(t, heads.AddTool(h, "opening_hours", "Returns when the museum is open.", hours))
	require.NoError(t, heads.AddTool(h, "book_tour", "Books a tour.", hours))
	return h.Tools()
}

// written returns the path of a file with the tools.
func written(t *testing.T, tools []heads.Tool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	t.Setenv("HEADS_UPDATE", "1")
	headstest.ToolsFile(t, path, tools)
	t.Setenv("HEADS_UPDATE", "")
	return path
}

func TestToolsFileHoldsNeitherHostNorToken(t *testing.T) {
	tools := toolsOf(t)
	require.Contains(t, tools[0].URL, toolsToken)
	path := written(t, tools)
	headstest.ToolsFile(t, path, tools)
	text := need(os.ReadFile(path))(t)
	assert.NotContains(t, string(text), "museum.example")
	assert.NotContains(t, string(text), toolsToken)
	assert.Contains(t, string(text), `"url": "${tools}/opening_hours"`)
	assert.Contains(t, string(text), `'$${today}' & later`, "a heads.yaml would fill it in")

	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600))
	headstest.ToolsFile(t, path, tools) // as Git writes it on Windows
}

func TestToolsFileNamesTheToolsThatDiffer(t *testing.T) {
	path := written(t, toolsOf(t))
	for name, c := range map[string]struct {
		change func(tools []heads.Tool) []heads.Tool
		says   string
	}{
		"description": {func(tools []heads.Tool) []heads.Tool { tools[1].Description = "Books."; return tools }, `: "book_tour" differs;`},
		"parameter":   {func(tools []heads.Tool) []heads.Tool { tools[0].Parameters[0].Name = "date"; return tools }, `: "opening_hours" differs;`},
		"order":       {func(tools []heads.Tool) []heads.Tool { return []heads.Tool{tools[1], tools[0]} }, `: "opening_hours" is where "book_tour" belongs;`},
		"removed":     {func(tools []heads.Tool) []heads.Tool { return tools[:1] }, `: "book_tour" is no tool of the program;`},
		"all removed": {func([]heads.Tool) []heads.Tool { return nil }, `: "opening_hours" is no tool of the program; "book_tour" is no tool`},
		"new": {func(tools []heads.Tool) []heads.Tool {
			tools[0].Name, tools[0].URL = "new", "https://a.example/new"
			return tools
		}, `: "new" is missing; "opening_hours" is no tool`},
		"twice":     {func(tools []heads.Tool) []heads.Tool { return append(tools, tools[1]) }, "is given twice"},
		"other URL": {func(tools []heads.Tool) []heads.Tool { tools[0].URL = "https://a.example/" + toolsToken; return tools }, `the URL of the tool "opening_hours" does not end in /opening_hours`},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failure{}
			headstest.ToolsFile(f, path, c.change(toolsOf(t)))
			assert.Contains(t, f.text, c.says)
			assert.NotContains(t, f.text, toolsToken)
		})
	}
}

func TestToolsFileSaysHowToWriteAFileThatIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.json")
	f := &failure{}
	headstest.ToolsFile(f, path, toolsOf(t))
	assert.Contains(t, f.text, "set HEADS_UPDATE=1 to write it")
	for _, text := range []string{"", "null", "{}", "[", "[1]"} {
		f := &failure{}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		headstest.ToolsFile(f, path, nil)
		assert.NotEmpty(t, f.text, text)
	}
	require.NoError(t, os.WriteFile(path, []byte("[]"), 0o600))
	headstest.ToolsFile(t, path, nil)
}
