package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/schema"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/schemas"
)

// validatorOf returns the schema that a command prints, for another validator than the
// reader's.
func validatorOf(t *testing.T, file string) *jsonschema.Resolved {
	t.Helper()
	s := parse[jsonschema.Schema](t, newTerminal(t).ok("schema", file))
	return need(s.Resolve(nil))(t)
}

const (
	headOne     = "id: 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01"
	environment = "environments: {a: {base_url: \"https://api.example.com\", token: {env: HEADS_A}, values: {app: x, key: {file: f}, k: {env: K}}, protect: true}}\n"
	idInOne     = "heads: [{id: {a: 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01}}]"
	someBackend = "backend: {start: \"true\"}\n"
	someStep    = "scenarios: [{name: a, steps: [{say: a}]}]"
)

// corpus has documents by the file that they are, valid ones and those with a fault.
func corpus() (valid, invalid map[string][]string) {
	in := func(before, after string, texts ...string) (all []string) {
		for _, text := range texts {
			all = append(all, before+text+after)
		}
		return all
	}
	inStep := func(steps ...string) []string {
		return in(someBackend+"scenarios: [{name: a, steps: [", "]}]", steps...)
	}
	inHead := func(rests ...string) []string { return in("heads: [{"+headOne+", ", "}]", rests...) }
	valid = map[string][]string{
		"heads": append(inHead("label: {file: a}", "label: null", "set: {name: a, phrases: [a, {file: b}], voiceflowApiKey: null, semanticThreshold: 0.5}", "voice: {provider: a, id: b}",
			"streaming: true, delivery: null", "webhooks: [{url: u, events: [e, {file: f}]}]", "tools: {file: t}", "tools: [{name: a, more: 1, parameters: [{name: a, x: 1}]}]"),
			"{}", "null", environment+idInOne, environment+"defaults: {set: {name: a}}\n"+strings.Replace(idInOne, "0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", "null", 1), "environments: null\nheads: null"),
		"test": append(inStep("{user: close, head: a, session: b}", "{call: t, with: {a: [1]}, unchecked: true, expect: {status: 200, json: {$.a: {contains: {not: b}}}, within: 2s}, save: {a: $.b}}",
			"{http: GET /, body: {a: null}, headers: {A: b}, expect: {body: {equals: {contains: 1, a: 2}}}, within: 1m30s, stays: 0}", "{run: [sh, 1], expect: {exit: 3}}", "{run: \"true\"}",
			"{backend: kill}", "{fault: clear}", "{fault: {request: any, times: all, status: 503, share: 0.5, cut: after}}", "{fault: {event: \"${e}\", times: 2, age: -5m, encoding: hex}}",
			"{wait: 0}", "{events: [start_conversation, {event: end_conversation, outcome: failed, answers: [0, 503], within: 1s}], webhook: u}",
			"{requests: [GET /head/1, {request: GET /head/1, count: 2, query: {a: b}}], others: none}", "{state: {\"$.a\": {absent: true}}}"),
			someBackend+someStep, "backend: {url: u, service: s, token: t, ready: /x, ready_within: 1s, shared_key: {env: A}}\n"+someStep,
			someBackend+"heads: {file: f, env: e, replace: {a: b}, only: [c]}\nseed: s\nservice: {retry: [1s], timestamps: iso}\n"+someStep,
			someBackend+"heads: [{label: a, set: {name: b}}]\n"+someStep),
	}
	invalid = map[string][]string{
		"heads": append(inHead("lable: a", "label: 1", "label: {fil: a}", "set: {namf: a}", "set: {name: null}", "set: {phrases: [1]}", "set: {semanticThreshold: a}", "set: {promptConfig: a}",
			"voice: [a]", "streaming: 1", "webhooks: [{url: u, event: [e]}]", "webhooks: {url: u}", "tools: a", "tools: [a]", "tools: {file: 1}"),
			"[]", "haeds: []", "heads: a", "heads: [1]", "defaults: {label: a}", "environments: {}\nheads: []", "environments: {A: {base_url: u}}", "environments: {a: {token: t}}",
			"environments: {a: {base_url: null}}", "environments: {a: {base_url: 1}}", "environments: {a: {base_url: u, token: t}}", "environments: {a: {base_url: u, token: {env: a-b}}}",
			"environments: {a: {base_url: u, values: {a.b: x}}}", "environments: {a: {base_url: u, values: {a: 1}}}", "environments: {a: {base_url: u, values: {a: {file: \"\"}}}}",
			"environments: {a: {base_url: u, values: {a: {file: f, env: E}}}}", environment+"heads: [{label: a}]", environment+"heads: [{"+headOne+"}]", environment+"heads: [{id: {a: x}}]"),
		"test": append(inStep("{}", "{sya: a}", "{say: a, wait: 1s}", "{say: a, expect: {}}", "{user: leave}", "{call: t, expect: {exit: 0}}", "{call: t, save: {a-b: $.a}}", "{call: t, save: {a: b}}",
			"{http: /x}", "{http: GET /, expect: {json: {a: 1}}}", "{http: GET /, expect: {body: {contains: a, b: c}}}", "{http: GET /, expect: {body: {absent: false}}}",
			"{http: GET /, expect: {body: [{not: {matches: 1}}]}}", "{run: []}", "{run: \" \"}", "{backend: crash}", "{fault: cleat}", "{fault: {}}", "{fault: {request: any, event: any}}", "{fault: {request: any, drop: true}}",
			"{fault: {request: any, times: 0}}", "{fault: {request: any, share: 0}}", "{fault: {event: bogus}}", "{fault: {event: any, delay: 5}}", "{wait: 2}", "{wait: -1s}", "{wait: {s: 2}}",
			"{events: start_conversation}", "{events: [{outcome: failed}]}", "{events: [{event: end_conversation, answers: [1000]}]}", "{requests: [{request: GET /, count: -1}]}", "{requests: [], others: writes}", "{state: []}", "a"),
			"[]", someStep, someBackend, someBackend+"scenarios: []", someBackend+"scenarios: [{steps: [{say: a}]}]", someBackend+"scenarios: [{name: \"\", steps: [{say: a}]}]", someBackend+"scenarios: [{name: a, steps: []}]",
			"backend: {}\n"+someStep, "backend: {start: a, url: b}\n"+someStep, "backend: {start: a, token: b}\n"+someStep, "backend: {url: a, dir: b}\n"+someStep, "backend: {start: a, ready: x}\n"+someStep,
			"backend: {start: a, env: {A: 1}}\n"+someStep, "backend: {start: a, env: {a-b: c}}\n"+someStep, "backend: {start: a, shared_key: {evn: A}}\n"+someStep,
			someBackend+"heads: {fiel: f}\n"+someStep, someBackend+"heads: [{lable: a}]\n"+someStep, someBackend+"heads: [{id: {a: b}}]\n"+someStep, someBackend+"service: {retry: 1s}\n"+someStep, someBackend+"service: {responses: all}\n"+someStep),
	}
	return valid, invalid
}

func TestTheReaderAgreesWithAnotherValidator(t *testing.T) {
	valid, invalid := corpus()
	for _, path := range []string{"goshop", "pyshop"} {
		valid["test"] = append(valid["test"], contents(t, filepath.Join(exampleScenarios, path, "shop.test.yaml")))
	}
	for file, text := range map[string][]byte{"heads": schemas.Heads, "test": schemas.Test} {
		validator, reader := validatorOf(t, file), schema.MustParse(text)
		for want, texts := range map[bool][]string{true: valid[file], false: invalid[file]} {
			for _, text := range texts {
				v := need(yamltext.Parse([]byte(text)))(t)
				found := validator.Validate(parse[any](t, string(need(v.AppendJSON(nil))(t))))
				assert.Equal(t, want, found == nil, "%s\n%v", text, found)
				faults := reader.Check(v, "", nil)
				assert.Equal(t, want, len(faults) == 0, "%s\n%v", text, faults)
				for _, fault := range faults {
					assert.Regexp(t, `^\d+:\d+: .*[a-z]`, fault.Error())
				}
			}
		}
	}
}

// Of set in heads.yaml, with the types that the library takes.
func TestSetHasTheFieldsThatCanBeWritten(t *testing.T) {
	s := parse[jsonschema.Schema](t, string(schemas.Heads))
	names := slices.Collect(maps.Keys(s.Defs["set"].Properties))
	assert.ElementsMatch(t, heads.WritableFields(), names)
	reader := schema.MustParse(schemas.Heads)
	for _, name := range names {
		for _, value := range []string{`null`, `"nova"`, `0.5`, `true`, `[]`, `["a"]`, `[1]`, `{}`, `{"a":"b"}`, `{"a":1}`, `{"system_prompt":"s"}`, `{"system_prompt":1}`} {
			err := heads.NewHeadUpdate().Set(name, json.RawMessage(value)).Validate()
			if err != nil && !regexp.MustCompile(`is (a JSON|null)`).MatchString(err.Error()) {
				continue // it has the type
			}
			v := need(yamltext.Parse([]byte(`{"` + name + `":` + value + `}`)))(t)
			assert.Equal(t, err == nil, len(reader.Check(v, "set", nil)) == 0, "%s: %s: %v", name, value, err)
		}
	}
}

func TestTheReaderKnowsTheKeywordsOfTheSchemas(t *testing.T) {
	known := []string{"$schema", "title", "description", "default", "examples", "type", "properties", "required", "additionalProperties", "propertyNames", "items", "minItems", "minProperties",
		"minLength", "pattern", "patternErrorMessage", "errorMessage", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "oneOf", "anyOf", "if", "then", "else", "$ref", "$defs"}
	var walk func(any)
	walk = func(v any) {
		if _, ok := v.(bool); ok {
			return
		}
		schema := v.(object)
		for keyword, value := range schema {
			assert.Contains(t, known, keyword)
			if schema["$ref"] != nil {
				assert.Contains(t, []string{"$ref", "description", "default", "examples", "errorMessage"}, keyword, "the reader ignores others beside $ref")
			}
			switch keyword {
			case "properties", "$defs":
				for _, inner := range value.(object) {
					walk(inner)
				}
			case "oneOf", "anyOf":
				for _, inner := range value.([]any) {
					walk(inner)
				}
			case "items", "additionalProperties", "propertyNames", "if", "then", "else":
				walk(value)
			}
		}
	}
	for _, text := range [][]byte{schemas.Heads, schemas.Test} {
		walk(parse[any](t, string(text)))
	}
}
