package heads

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// uses returns the values of the constants that InvalidError.Use and Finding.Use
// have, by their names.
func uses(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range useLists {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "use") {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				found[spec.Names[0].Name] = value
			}
			return true
		})
	}
	require.NotEmpty(t, found)
	return found
}

// useLists are the files with those constants.
var useLists = []string{"errors.go", "internal/check/fault.go"}

// Every Use is in one of two lists, and names what exists.
func TestEveryUseNamesWhatExists(t *testing.T) {
	api, err := os.ReadFile("testdata/api.txt")
	require.NoError(t, err)
	known := uses(t)
	for name, use := range known {
		receiver, method, dotted := strings.Cut(use, ".")
		switch {
		case receiver == "url" || receiver == "context": // of the standard library
		case !dotted:
			assert.Regexp(t, `(?m)^heads: func `+use+`\(`, string(api), name)
		default:
			assert.Regexp(t, `(?m)^heads: (func \(\w+ \*?`+receiver+`(Service)?\) `+method+`\(|field `+receiver+`\.`+method+` )`, string(api), name)
		}
	}
	// A literal in the place of a constant would be missing in the list.
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inside, err := filepath.Glob("internal/check/*.go")
	require.NoError(t, err)
	paths = append(paths, inside...)
	used := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && known[id.Name] != "" && !slices.Contains(useLists, path) {
				used[id.Name] = true
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				id, isName := lit.Type.(*ast.Ident)
				assert.False(t, isName && (id.Name == "InvalidError" || id.Name == "Finding") && path != "checks.go" && path != "examine.go", "%s makes one by itself", path)
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				assertUse(t, known, path, lit)
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := map[string]int{"invalid": 4, "toolFault": 5, "checkText": 4, "refuse": 2, "find": 5}[calledName(call)]
			if at > 0 && len(call.Args) > at {
				id, ok := call.Args[at].(*ast.Ident)
				assert.True(t, ok && (known[id.Name] != "" || id.Name == "use"), "%s: %s has a Use that is no constant", path, calledName(call))
			}
			return true
		})
	}
	assert.Len(t, used, len(known), "every constant is used")
}

// assertUse checks that the Use of a fault is a constant.
func assertUse(t *testing.T, known map[string]string, path string, lit *ast.CompositeLit) {
	if id, ok := lit.Type.(*ast.Ident); !ok || id.Name != "Fault" && id.Name != "fault" {
		return
	}
	for i, element := range lit.Elts {
		value := element
		if pair, keyed := element.(*ast.KeyValueExpr); keyed && pair.Key.(*ast.Ident).Name == "Use" {
			value = pair.Value
		} else if keyed || i != 2 {
			continue
		}
		switch use := value.(type) {
		case *ast.Ident:
			assert.NotEmpty(t, known[use.Name], "%s has a Use that is no constant", path)
		case *ast.BasicLit:
			assert.Fail(t, "a Use that is no constant", path)
		}
	}
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// A remedy that names something of this package says in Use what that is.
func TestRemediesSayWhatTheyUse(t *testing.T) {
	names := regexp.MustCompile(`\b(Heads|Webhooks|HeadVisuals|ConversationSettings|HeadUpdate|Client|ConvertOptions|EnsureOptions|Request|Secret|context|url)\.[A-Z]\w+|\bWith[A-Z]\w+|\bNew[A-Z]\w+`)
	checked := 0
	check := func(remedy, use string) {
		checked++
		if found := names.FindString(remedy); found != "" {
			assert.NotEmpty(t, use, remedy)
		}
		if use != "" {
			assert.Contains(t, remedy, use[strings.LastIndex(use, ".")+1:])
		}
	}
	for _, err := range allRefusals(t) {
		eachInvalid(err, func(e *InvalidError) {
			check(e.Remedy, e.Use)
			assert.NotEmpty(t, e.Remedy, e.Error())
		})
	}
	assert.Greater(t, checked, 90)
}

// legacyAPI answers as a head that streams until it is switched back.
func legacyAPI(t *testing.T, streams bool) *fakeAPI {
	api := newFakeAPI(t, map[string]string{"GET /head_visual/v": `{"id":"v","mode":"default"}`, "PUT /head/update": ""})
	head := func(streaming bool) string {
		return `{"id":"` + testHead + `","headVisualId":"v","videoStreaming":` + strconv.FormatBool(streaming) +
			`,"ttsProvider":"azure","ttsVoice":"a","publicUrl":"https://` + map[bool]string{true: "stream", false: "chat"}[streaming] + `.example.com/o/h?api_key=k"}`
	}
	api.answer("GET /head/"+testHead, head(streams))
	api.script.steps = []step{func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/video-streaming") {
			api.answer("GET /head/"+testHead, head(false))
			return answer(200, "")(r)
		}
		return api.responders.RoundTrip(r)
	}}
	return api
}

func stepNames(steps []ConversionStep) (names []string) {
	for _, s := range steps {
		name := string(s.Name)
		if s.Skipped {
			name += " skipped"
		}
		names = append(names, name)
	}
	return names
}

func TestConvertToLegacyHonoursItsOptions(t *testing.T) {
	for name, row := range map[string]struct {
		streams bool
		voice   *Voice
		steps   []string
		update  string
	}{
		"no voice":                     {true, nil, []string{"check", "disable", "address"}, ""},
		"a voice that does not stream": {true, &Voice{"acme", "b"}, []string{"check", "disable", "voice", "address"}, `{"id":"` + testHead + `","ttsProvider":"acme","ttsVoice":"b"}`},
		"the voice that it has":        {true, &Voice{"Azure", "a"}, []string{"check", "disable", "voice skipped", "address"}, ""},
		"in legacy mode already":       {false, &Voice{"acme", "b"}, []string{"check", "disable skipped", "voice", "address skipped"}, `{"id":"` + testHead + `","ttsProvider":"acme","ttsVoice":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := legacyAPI(t, row.streams)
				var told []ConversionStep
				done, err := api.Heads.ConvertToLegacy(t.Context(), testHead, ConvertOptions{Voice: row.voice, OnStep: func(s ConversionStep) { told = append(told, s) }})
				require.NoError(t, err)
				assert.Equal(t, row.steps, stepNames(done.Steps))
				assert.Equal(t, done.Steps, told)
				assert.Equal(t, "https://chat.example.com", done.After.Base)
				var routes []string
				update := ""
				for _, sent := range api.since() {
					if strings.HasPrefix(sent.route, "PUT") {
						routes = append(routes, sent.route)
					}
					if sent.route == "PUT /head/update" {
						update = sent.body
					}
				}
				assert.Equal(t, row.update, update)
				if row.streams && row.update != "" {
					assert.Equal(t, []string{"PUT /head/" + testHead + "/video-streaming", "PUT /head/update"}, routes, "the voice comes after the switch")
				}
			})
		})
	}
}

func TestConvertToLegacyWaitsAsLongAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := legacyAPI(t, true)
		api.answer("PUT /head/"+testHead+"/video-streaming", "")
		api.script.steps = []step{api.responders.RoundTrip} // the head never shows the switch
		begun, waits := time.Now(), 0
		_, err := api.Heads.ConvertToLegacy(t.Context(), testHead, ConvertOptions{ConfirmTimeout: 3 * time.Second, OnStep: func(s ConversionStep) {
			if s.Waiting {
				waits++
			}
		}})
		var failure *ConversionError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, ReasonUnknownOutcome, failure.Reason)
		assert.LessOrEqual(t, time.Since(begun), 3*time.Second)
		assert.Greater(t, time.Since(begun), 2*time.Second)
		assert.Positive(t, waits)
	})
	_, err := legacyAPI(t, true).Heads.ConvertToLegacy(t.Context(), testHead, ConvertOptions{ConfirmTimeout: -1, SettleTimeout: -1, Voice: &Voice{}})
	assert.Equal(t, []string{"voice", "confirm timeout", "settle timeout"}, invalidFields(t, err))
}

func TestConvertToLegacyReportsAVoiceThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := legacyAPI(t, true)
		usual := api.script.steps[0]
		api.script.steps = []step{func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/head/update") {
				return answer(400, `{"message":"no such voice"}`)(r)
			}
			return usual(r)
		}}
		_, err := api.Heads.ConvertToLegacy(t.Context(), testHead, ConvertOptions{Voice: &Voice{"acme", "b"}})
		var failure *ConversionError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, StepVoice, failure.Step)
		assert.Equal(t, ReasonRefused, failure.Reason)
		assert.True(t, failure.Accepted)
		assert.Equal(t, []string{"check", "disable"}, stepNames(failure.Done))
	})
}

func TestEnsuredSaysWhatWasDone(t *testing.T) {
	const url = "https://hooks.example.com/a"
	spec := WebhookSpec{HeadID: testHead, URL: url, Events: []EventType{EventEndConversation}}
	record := func(id string) string {
		return `{"id":` + id + `,"headId":"` + testHead + `","webhookUrl":"` + url + `","sharedKey":"k` + id + `","endConversation":true}`
	}
	delivery := "PUT /head/" + testHead + "/enable-events"
	for name, row := range map[string]struct {
		list       string
		o          EnsureOptions
		created    bool
		duplicates []int64
		writes     []string
	}{
		"created":             {"[]", EnsureOptions{}, true, nil, []string{delivery, "POST /head-events"}},
		"found":               {"[" + record("7") + "]", EnsureOptions{}, false, nil, []string{delivery}},
		"delivery kept":       {"[" + record("7") + "]", EnsureOptions{KeepDelivery: true}, false, nil, nil},
		"duplicates reported": {"[" + record("7") + "," + record("8") + "]", EnsureOptions{}, false, []int64{8}, []string{delivery}},
		"duplicates removed":  {"[" + record("7") + "," + record("8") + "]", EnsureOptions{RemoveDuplicates: true}, false, nil, []string{delivery, "DELETE /head-events/8"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t, map[string]string{"GET /head-events": row.list, "POST /head-events": record("7"), "DELETE /head-events/8": "", delivery: ""})
			api.script.steps = []step{func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost {
					api.answer("GET /head-events", "["+record("7")+"]") // it is listed from now on
				}
				return api.responders.RoundTrip(r)
			}}
			ensured, err := api.Webhooks.Ensure(t.Context(), spec, row.o)
			require.NoError(t, err)
			assert.EqualValues(t, 7, ensured.ID)
			assert.Equal(t, "k7", ensured.SharedKey.Reveal())
			assert.Equal(t, row.created, ensured.Created)
			assert.Equal(t, row.duplicates, ensured.Duplicates)
			var writes []string
			for _, route := range api.routes() {
				if !strings.HasPrefix(route, "GET") {
					writes = append(writes, route)
				}
			}
			assert.Equal(t, row.writes, writes)
		})
	}
}

func TestWithoutDeduplicatorEveryEventIsPassedOn(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, c.handle, WithoutDeduplicator())
	body := recentEventBody(testHeadA, "s")
	for range 3 {
		assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	}
	assert.EqualValues(t, 3, c.calls.Load(), "of one event")
	assert.Equal(t, 24*time.Hour+6*time.Minute, h.Memory())
}

func TestWithoutDeduplicatorExcludesADeduplicatorAndAQueue(t *testing.T) {
	for _, other := range []EventHandlerOption{WithDeduplicator(NewMemoryDeduplicator(10)), WithQueue(1, 10)} {
		for _, opts := range [][]EventHandlerOption{{WithoutDeduplicator(), other}, {other, WithoutDeduplicator()}} {
			_, err := NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil }, opts...)
			assert.Equal(t, []string{"WithoutDeduplicator"}, invalidFields(t, err))
		}
	}
}
