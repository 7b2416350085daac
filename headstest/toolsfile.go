package headstest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strconv"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// TB is what ToolsFile needs of a test. A testing.TB is one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ToolsFile fails the test unless a file has exactly these tools, in order. It names
// those that differ. With HEADS_UPDATE=1 in the environment, or with a flag -update
// that the test itself defines, it writes the file.
//
// The file is a JSON list for the key tools of a heads.yaml. It has each URL as
// ${tools}/NAME, so it is the same in every environment and holds neither the host
// nor the path token. A tool whose URL does not end in its name is refused.
func ToolsFile(t TB, file string, tools []heads.Tool) {
	t.Helper()
	want := make([]any, len(tools))
	for i, tool := range tools {
		if !strings.HasSuffix(tool.URL, "/"+tool.Name) {
			t.Fatalf("the URL of the tool %q does not end in /%s; use the tools of ToolHandler.Tools", tool.Name, tool.Name)
			return
		}
		tool.URL = "/" + tool.Name
		document, err := json.Marshal(tool)
		if err == nil {
			err = json.Unmarshal(document, &want[i])
		}
		if err != nil {
			t.Fatalf("the tool %q can't be written as JSON: %v", tool.Name, err)
			return
		}
		want[i] = escaped(want[i])
		want[i].(map[string]any)["url"] = "${tools}/" + tool.Name //nolint:forcetypeassert // a tool with a URL is an object
	}
	if os.Getenv("HEADS_UPDATE") == "1" || updates() {
		if err := os.WriteFile(file, toolsDocument(want), 0o644); err != nil { //nolint:gosec // it holds no secret
			t.Fatalf("the tools can't be written: %v", err)
		}
		return
	}
	const remedy = "set HEADS_UPDATE=1 to write it, and look at the difference"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the file of tools can't be read: %v; %s", err, remedy)
		return
	}
	var got []any
	if err := json.Unmarshal(text, &got); err != nil || got == nil {
		t.Fatalf("%s is no JSON list of tools; %s", file, remedy)
		return
	}
	if differences := toolDifferences(got, want); len(differences) > 0 {
		t.Fatalf("%s does not have the tools of the program: %s; %s", file, strings.Join(differences, "; "), remedy)
	}
}

// updates reports whether the test has a flag -update that is set.
func updates() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// escaped writes ${ as $${ in all texts of a value, since a heads.yaml fills in ${name}.
func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "${", "$${")
	case []any:
		for i := range v {
			v[i] = escaped(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = escaped(v[key])
		}
	}
	return v
}

// toolsDocument returns the text of the file.
func toolsDocument(tools []any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(tools) // has only values that were read from JSON
	return text.Bytes()
}

// toolDifferences says which tools of a file differ from those that are wanted.
func toolDifferences(got, want []any) (differences []string) {
	file, program := byToolName(got), byToolName(want)
	for _, tool := range want {
		name := toolNameOf(tool)
		switch same, has := file[name]; {
		case !has:
			differences = append(differences, strconv.Quote(name)+" is missing")
		case !reflect.DeepEqual(same, tool):
			differences = append(differences, strconv.Quote(name)+" differs")
		}
	}
	for _, tool := range got {
		if name := toolNameOf(tool); program[name] == nil {
			differences = append(differences, strconv.Quote(name)+" is no tool of the program")
		}
	}
	if len(differences) > 0 || reflect.DeepEqual(got, want) {
		return differences
	}
	for i, tool := range got {
		name := toolNameOf(tool)
		if i >= len(want) {
			return append(differences, strconv.Quote(name)+" is there twice")
		}
		if other := toolNameOf(want[i]); name != other {
			return append(differences, strconv.Quote(name)+" is where "+strconv.Quote(other)+" belongs")
		}
	}
	return append(differences, "a tool of the program is given twice")
}

func byToolName(tools []any) map[string]any {
	names := map[string]any{}
	for _, tool := range tools {
		names[toolNameOf(tool)] = tool
	}
	return names
}

// toolNameOf returns the name of a tool, "" if it has none.
func toolNameOf(tool any) string {
	members, _ := tool.(map[string]any)
	name, _ := members["name"].(string)
	return name
}
