package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

// inspect walks the sources in folders, without their tests. The folders are patterns.
func inspect(t *testing.T, visit func(ast.Node) bool, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		paths := need(filepath.Glob(filepath.Join(folder, "*.go")))(t)
		require.NotEmpty(t, paths, folder)
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				ast.Inspect(need(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t), visit)
			}
		}
	}
}

// Each constant use… of the library has a remedy, and no other text has one.
func TestEveryUseHasARemedy(t *testing.T) {
	t.Parallel()
	var uses []string
	inspect(t, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && regexp.MustCompile(`^use[A-Z]`).MatchString(spec.Names[0].Name) {
			uses = append(uses, need(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t))
		}
		return true
	}, "../../internal/*", "../..", "../../fleet")
	assert.Greater(t, len(uses), 20)
	assert.Subset(t, uses, slices.Collect(maps.Keys(remedies)), "a remedy of no Use")
	name := goNames(t)
	for _, use := range uses {
		assert.NotEmpty(t, remedies[use], use)
		for _, text := range []string{
			plainError(fmt.Errorf("not done: %w", &heads.InvalidError{Operation: "Heads.Get", Field: "field", Problem: "is wrong", Remedy: "use " + use, Use: use})),
			plainError(&heads.InvalidError{Operation: "fleet.Plan", Field: `specs[1] (label "", id "x") id`, Problem: "is wrong", Remedy: "use " + use, Use: use}),
		} {
			assert.NotRegexp(t, name, text)
			assert.Contains(t, text, "is wrong; "+remedies[use])
		}
	}
}

// goNames matches what a program in Go would call: every exported name of the library that
// is no plain word, and what is written like a selector.
func goNames(t *testing.T) *regexp.Regexp {
	names := []string{`specs\[`, `\b(Heads|HeadVisuals|Webhooks|ConversationSettings|Client|HeadUpdate|WebhookUpdate|Request|Secret|Raw|ConvertOptions|EnsureOptions|fleet|heads|context|url)\.[A-Z]\w*`}
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident.IsExported() && regexp.MustCompile(`[a-z0-9][A-Z]`).MatchString(ident.Name) {
				names = append(names, `\b`+ident.Name+`\b`)
			}
		}
	}
	inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.StructType:
			for _, field := range n.Fields.List {
				add(field.Names...)
			}
		}
		return true
	}, "../..", "../../fleet", "../../headstest")
	return regexp.MustCompile(strings.Join(names, "|"))
}

// The texts that headsctl has itself: of commands, flags, errors and remedies.
func TestNoTextNamesAGoFunction(t *testing.T) {
	t.Parallel()
	name, checked := goNames(t), 0
	require.Regexp(t, name, "use Heads.Get, or WithPathToken")
	inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.KeyValueExpr: // of the table of remedies, whose keys are names in Go
			if key, ok := n.Key.(*ast.BasicLit); ok && remedies[strings.Trim(key.Value, `"`)] != "" {
				n.Key = ast.NewIdent("_")
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, " ") {
				assert.NotRegexp(t, name, n.Value)
				checked++
			}
		}
		return true
	}, "internal/*", ".")
	assert.Greater(t, checked, 300)
}

// What the library says of a finding or of a fault without a Use goes to the terminal
// as it is.
func TestTheLibraryNamesAGoFunctionOnlyWithItsUse(t *testing.T) {
	t.Parallel()
	name, checked := goNames(t), 0
	firstText := map[string]int{"invalid": 2, "find": 3} // the argument with the problem, before the remedy and the Use
	inspect(t, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee, _ := call.Fun.(*ast.Ident)
		if method, ok := call.Fun.(*ast.SelectorExpr); ok {
			callee = method.Sel
		}
		if callee == nil || firstText[callee.Name] == 0 || len(call.Args) < firstText[callee.Name]+2 {
			return true
		}
		texts := call.Args[firstText[callee.Name]:]
		if len(texts) > 2 {
			texts = texts[:1] // the remedy has a Use
		}
		for _, text := range texts {
			ast.Inspect(text, func(n ast.Node) bool {
				// headsctl does not set how often is retried.
				if literal, ok := n.(*ast.BasicLit); ok && !strings.Contains(literal.Value, "MaxRetries") {
					assert.NotRegexp(t, name, literal.Value)
					checked++
				}
				return true
			})
		}
		return true
	}, "../..", "../../fleet")
	assert.Greater(t, checked, 100)
}

func TestRemediesAreCommands(t *testing.T) {
	id := func(n string) string { return strings.Replace(someID, "0b9d6c1a", n, 1) }
	hook := object{"headId": id("00000002"), "webhookUrl": "https://a.example.com/x", "endConversation": true}
	c := emulator(t, object{
		"visuals": []object{{"id": id("11111111"), "mode": "default"}, {"id": id("22222222")}, {"id": id("33333333"), "mode": "twoLoops"}},
		"heads": []object{
			{"id": id("00000001"), "enableEvents": true, "publicUrl": "nowhere"},
			{"id": id("00000002"), "headVisualId": id("22222222"), "operationMode": "ttt"},
			{"id": id("00000003"), "headVisualId": id("11111111"), "ttsProvider": "polly", "ttsVoice": "x", "splitter": true, "videoStreaming": true},
			{"id": id("00000004"), "publicUrl": "https://stream.example.test/MyOrg-1/li-28379?api_key=0123"},
			{"id": id("00000005"), "headVisualId": id("33333333"), "isActive": false, "language": "english", "greetings": "string", "operationMode": "oc"},
			{"id": id("00000006"), "headVisualId": id("44444444")},
		},
		"registrations": []object{hook, hook},
		"tools":         []object{{"headId": id("00000003"), "name": "order", "description": "x", "url": "https://a.example.com/order", "parameters": object{}}},
	}).with("HEADS_STREAM_URL=https://stream.example.test")
	all := c.ids
	doctor := c.run(append([]string{"doctor"}, all...)...).stdout
	for _, remedy := range []string{
		"Register one with headsctl webhooks ensure " + id("00000001") + " --url URL --event EVENT.",
		"Turn delivery on with headsctl delivery on " + id("00000002") + ", or off with headsctl delivery off " + id("00000002") + ".",
		"Delete the others with headsctl webhooks delete.",
		"Switch it with headsctl call PUT /head/" + id("00000003") + "/video-streaming --query videoStreaming=true, which turns the splitter off, or use headsctl convert " + id("00000003") + ".",
		"Correct it with headsctl tools put " + id("00000003") + " -f TOOL.yaml, or remove it with headsctl tools remove " + id("00000003") + " NAME.",
		"if it stays so, put its path below the base URL of its mode.",
	} {
		assert.Contains(t, doctor, remedy)
	}
	c.write("tool.yaml", toolFile)
	c.write("bad.yaml", "heads:\n  - {id: "+id("00000001")+", set: {nam: x, splitter: true}, voice: {provider: azure}}\n"+
		"  - {id: "+id("00000001")+", set: {publicUrl: string}, webhooks: [{url: 'http://a.example.com', events: [x]}], tools: [{name: a b}]}\n")
	outputs := []string{doctor}
	for _, args := range [][]string{
		append([]string{"convert", "--dry-run"}, all...), append([]string{"convert", "--dry-run", "--voice", "polly/x"}, all...), append([]string{"doctor", "-o", "json"}, all...),
		{"tools", "check", id("00000003")}, {"tools", "put", id("00000002"), "-f", "tool.yaml"}, {"plan", "-f", "bad.yaml"},
		{"set", id("00000001"), "videoStreaming:=true"}, {"set", id("00000001"), "enableEvents:=true"},
		{"set", id("00000001"), "id=x"}, {"set", id("00000001"), "conversationSettings:={}"},
		{"call", "GET", "/a b"}, {"call", "GET", "/a?b=c"}, {"call", "GET", "/a", "--data", "{}"}, {"call", "PUT", "/head/update", "--data", `{"id":"[redacted]"}`},
		{"webhooks", "ensure", id("00000001"), "--url", "http://a.example.com", "--event", "end_conversation"},
		{"get", "li-28379"}, {"get", id("00000009")},
	} {
		r := c.run(args...)
		assert.NotZero(t, r.code, "%v", args)
		outputs = append(outputs, r.stdout+r.stderr)
	}
	none := newTerminal(t)
	outputs = append(outputs, none.at("http://a.example.com", "token").run("get", someID).stderr, none.at("https://a.example.com", " ").run("get", someID).stderr)
	m := c.mcp()
	for _, head := range all {
		text, _ := m.call("heads_examine", object{"id": head})
		checked, _ := m.call("tools_check", object{"id": head})
		outputs = append(outputs, text, checked)
	}
	name := goNames(t)
	assert.Equal(t, 1, strings.Count(doctor, "→ Delete the others"))
	for _, text := range outputs {
		require.NotEmpty(t, text)
		assert.NotRegexp(t, name, text)
	}
}
