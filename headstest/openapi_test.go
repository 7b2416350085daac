package headstest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

// seen has the operations of the description that are not in the contract.
var seen = []string{"GET /head/{headId}/conversation-settings", "GET /head/{headId}/enable-events", "PUT /head/{headId}/splitter"}

// contract is what the description must have: the operations, and the fields of
// every record, as in the contract.
var contract = map[string]string{
	"PUT /head/update": "HeadUpdate", "GET /head/{id}": "", "GET /head_visual/{headVisualId}": "",
	"PUT /head/{headId}/video-streaming": "", "PUT /head/{headId}/conversation-settings": "ConversationSettingsUpdate",
	"POST /head-events": "WebhookCreate", "GET /head-events": "", "GET /head-events/{webhookId}": "",
	"PATCH /head-events/{webhookId}": "WebhookUpdate", "DELETE /head-events/{webhookId}": "", "PUT /head/{headId}/enable-events": "",
}

const (
	writableFields = "name alias language languageSpeechRecognition ttsProvider ttsVoice operationMode ocProvider promptConfig greetings " +
		"voiceflowApiKey isRandomSuggestions phrases suggestions customWords publicUrl fileUrl pluginOperationalModeConfig semanticThreshold"
	readOnlyFields = "createdAt updatedAt publicId documentJsonDto documentUrl encodedPath iconConfig headVisualId isActive orgId orgPublicId " +
		"allowedOrigins allowedIframeOrigins videoCache conversationSettings splitter expirationSeconds ttsStream headVisualVideoUrl " +
		"posterVideoImage ttsDisplayName organisation"
	eventFlags = "startConversation endConversation timeoutConversation inactivityWarning"
)

var documentedFields = map[string]string{
	"Head":                 "id videoStreaming enableEvents " + writableFields + " " + readOnlyFields,
	"HeadUpdate":           "id " + writableFields,
	"PromptConfig":         "id system_prompt",
	"Organisation":         "id createdAt updatedAt apiKey name publicId alias subscriptionType slots streaming isActive",
	"HeadVisual":           "id mode",
	"ConversationSettings": "tools",
	"Tool":                 "name description parameters url",
	"ToolParameter":        "name type description",
	"ToolReply":            "message",
	"Webhook":              "id createdAt updatedAt orgId headId webhookUrl sharedKey " + eventFlags,
	"WebhookCreate":        "headId webhookUrl " + eventFlags,
	"WebhookUpdate":        "headId webhookUrl " + eventFlags,
	"WebhookCreated":       "id createdAt updatedAt orgId headId webhookUrl sharedKey " + eventFlags,
	"Event":                "timestamp head_id session_id public_head_id public_org_id event_type",
}

// described reads the description of the package.
func described(t testing.TB) description {
	text := need(os.ReadFile("openapi.json"))(t)
	return description{t, object(t, string(text)), map[string]*jsonschema.Resolved{}}
}

// description is an OpenAPI document.
type description struct {
	t        testing.TB
	root     map[string]any
	resolved map[string]*jsonschema.Resolved // by the schema, since each takes milliseconds
}

// operations returns the operations in the form of the contract's table, or the control API.
func (d description) operations(control bool) map[string]any {
	operations := map[string]any{}
	for path, item := range d.root["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if strings.HasPrefix(path, "/_emulator/") == control {
				operations[strings.ToUpper(method)+" "+path] = operation
			}
		}
	}
	return operations
}

// at follows a path of keys, and references on the way.
func (d description) at(v any, keys ...string) any {
	for _, key := range keys {
		m, ok := d.resolve(v).(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return d.resolve(v)
}

func (d description) resolve(v any) any {
	for {
		m, _ := v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			return v
		}
		path, local := strings.CutPrefix(ref, "#/")
		require.True(d.t, local, ref)
		v = any(d.root)
		for key := range strings.SplitSeq(path, "/") {
			m, _ := v.(map[string]any)
			require.Contains(d.t, m, key, "%s leads nowhere", ref)
			v = m[key]
		}
	}
}

func (d description) schema(name string) map[string]any {
	s, _ := d.at(d.root, "components", "schemas", name).(map[string]any)
	require.NotNil(d.t, s, name)
	return s
}

// formats are the patterns of the formats that the description uses.
var formats = map[any]string{
	"uuid":      `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
	"date-time": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`,
	"uri":       `^https?://[^/]+`,
}

// check returns what is wrong with a value. A field that is not in the schema is
// wrong, and so is a text that does not have its format.
func (d description) check(schema, v any, where string) error {
	text := string(need(json.Marshal(schema))(d.t))
	if d.resolved[text] == nil {
		d.resolved[text] = d.compile(schema, where)
	}
	if err := d.resolved[text].Validate(v); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func (d description) compile(schema any, where string) *jsonschema.Resolved {
	components := d.at(d.root, "components", "schemas")
	text := need(json.Marshal(strict(map[string]any{"$defs": components, "allOf": []any{schema}})))(d.t)
	var s jsonschema.Schema
	require.NoError(d.t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), &s), where)
	return need(s.Resolve(nil))(d.t)
}

// strict returns a schema that allows no further fields.
func strict(schema any) any {
	switch s := schema.(type) {
	case []any:
		out := make([]any, len(s))
		for i, item := range s {
			out[i] = strict(item)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, item := range s {
			out[key] = strict(item)
		}
		if _, open := s["additionalProperties"]; !open && s["type"] == "object" {
			out["additionalProperties"] = false
		}
		if pattern, ok := formats[s["format"]]; ok {
			out["pattern"] = pattern
		}
		return out
	default:
		return schema
	}
}

// list returns a single value as a list of one.
func list(v any) []any {
	if l, ok := v.([]any); ok || v == nil {
		return l
	}
	return []any{v}
}

func TestSchemaCheckFindsWhatIsWrong(t *testing.T) {
	d := description{t, object(t, `{"components":{"schemas":{"Word":{"type":"string"}}}}`), map[string]*jsonschema.Resolved{}}
	for _, row := range []struct {
		name, schema, value string
		right               bool
	}{
		{"right", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/components/schemas/Word"},"b":{"type":["integer","null"]}}}`, `{"a":"x","b":null}`, true},
		{"anything", `{"type":"object","additionalProperties":true}`, `{"a":1}`, true},
		{"too much", `{"type":"object","properties":{}}`, `{"a":1}`, false},
		{"too much in a part", `{"allOf":[{"type":"object","properties":{}}]}`, `{"a":1}`, false},
		{"type behind a reference", `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/Word"}}}`, `{"a":1}`, false},
		{"format", `{"type":"string","format":"uuid"}`, `"b"`, false},
	} {
		assert.Equal(t, row.right, d.check(decoded[any](t, row.schema), decoded[any](t, row.value), row.name) == nil, row.name)
	}
}

func TestDescriptionMarksWhatIsNotInTheContract(t *testing.T) {
	d := described(t)
	for route, operation := range d.operations(false) {
		marked := slices.Contains(seen, route)
		assert.Equal(t, marked, d.at(operation, "x-not-in-contract") == true, route)
		text, _ := d.at(operation, "description").(string)
		assert.Equal(t, marked, strings.HasPrefix(text, "Not in the contract"), route)
	}
}

// What the tools of scripts/suites.sh do not ask of a description.
func TestDescriptionIsWhole(t *testing.T) {
	d := described(t)
	operations := d.operations(false)
	maps.Copy(operations, d.operations(true))
	for route, operation := range operations {
		assert.NotEmpty(t, d.at(operation, "summary"), route)
		assert.NotEqual(t, d.at(operation, "summary"), d.at(operation, "description"), route)
	}
	checked := 0
	for name, schema := range d.at(d.root, "components", "schemas").(map[string]any) {
		for _, field := range list(d.at(schema, "required")) {
			checked++
			assert.Nil(t, d.at(schema, "properties", field.(string), "default"), "%s must have %s, so no default is ever used", name, field)
		}
	}
	assert.Greater(t, checked, 50)
}

func TestDescriptionHoldsTheElevenOperations(t *testing.T) {
	d := described(t)
	assert.Equal(t, "3.1.0", d.root["openapi"])
	routes := slices.Sorted(maps.Keys(d.operations(false)))
	assert.ElementsMatch(t, append(slices.Collect(maps.Keys(contract)), seen...), routes)
	assert.Equal(t, routes, headstest.Routes())
	assert.Equal(t, routes, headstest.Patterns())
	for route, operation := range d.operations(false) {
		assert.Equal(t, contract[route] != "", d.at(operation, "requestBody", "required") == true, "%s has a body", route)
		if name := contract[route]; name != "" {
			assert.Equal(t, d.schema(name), d.at(operation, "requestBody", "content", "application/json", "schema"), route)
		}
		assert.NotNil(t, d.at(operation, "responses", "2XX", "description"), route)
		assert.NotNil(t, d.at(operation, "responses", "default", "content", "application/json", "schema"), route)
	}
	assert.Equal(t, "bearer", d.at(d.root, "components", "securitySchemes", "bearer", "scheme"))
	assert.Equal(t, []any{map[string]any{"bearer": []any{}}}, d.root["security"])
}

func TestDescriptionHoldsTheWholeControlAPI(t *testing.T) {
	d, a := described(t), withConsole(t)
	assert.Equal(t, d.root, read[map[string]any](a, "openapi.json"))
	operations := d.operations(true)
	assert.ElementsMatch(t, read[struct{ Requests []string }](a, "").Requests, slices.Collect(maps.Keys(operations)))
	for route, operation := range operations {
		assert.Equal(t, []any{}, d.at(operation, "security"), "%s needs no token", route)
	}
}

func TestDescriptionDeclaresEveryParameter(t *testing.T) {
	d := described(t)
	queries := map[string]string{"PUT /head/{headId}/video-streaming": "videoStreaming", "PUT /head/{headId}/enable-events": "enableEvents",
		"PUT /head/{headId}/splitter": "splitter", "GET /head-events": "headId"}
	for route, operation := range d.operations(false) {
		want, got := map[any]any{}, map[any]any{}
		for _, name := range parameter.FindAllStringSubmatch(route, -1) {
			want[name[1]] = "path"
		}
		if name, ok := queries[route]; ok {
			want[name] = "query"
		}
		for _, parameter := range list(d.at(operation, "parameters")) {
			got[d.at(parameter, "name")] = d.at(parameter, "in")
			assert.Equal(t, true, d.at(parameter, "required"), route)
			assert.NotNil(t, d.at(parameter, "schema", "type"), route)
		}
		assert.Equal(t, want, got, route)
	}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

func TestDescriptionHoldsEveryDocumentedField(t *testing.T) {
	d := described(t)
	for name, fields := range documentedFields {
		assert.ElementsMatch(t, strings.Fields(fields), slices.Collect(maps.Keys(d.schema(name)["properties"].(map[string]any))), name)
	}
	head := d.schema("Head")["properties"].(map[string]any)
	for field := range strings.FieldsSeq(readOnlyFields + " id videoStreaming enableEvents") {
		assert.Equal(t, true, head[field].(map[string]any)["readOnly"], field)
	}
	for field := range strings.FieldsSeq(writableFields) {
		assert.Nil(t, d.at(head[field], "readOnly"), field)
		assert.Equal(t, notNull(head[field]), notNull(d.schema("HeadUpdate")["properties"].(map[string]any)[field]), "a field has one description")
	}
	assert.Len(t, list(d.schema("Head")["required"]), len(head))
	assert.Equal(t, "x-signature-256", d.at(d.root, "webhooks", "event", "post", "parameters").([]any)[0].(map[string]any)["name"])
}

// notNull returns a schema without the null that it allows.
func notNull(schema any) any {
	out := maps.Clone(schema.(map[string]any))
	for _, key := range []string{"type", "anyOf"} {
		rest := slices.DeleteFunc(slices.Clone(list(out[key])), func(v any) bool {
			return v == "null" || assert.ObjectsAreEqual(map[string]any{"type": "null"}, v)
		})
		if key == "anyOf" && len(rest) == 1 {
			return rest[0]
		} else if rest != nil {
			out[key] = rest
		}
	}
	return out
}

// walkOperations calls every operation once and returns the answers by route.
func walkOperations(a *api) map[string]answer {
	id := a.AddHead(headstest.Head{HeadVisualID: "v"})
	answers := map[string]answer{}
	for _, call := range []struct{ route, query, body string }{
		{"PUT /head/update", "", `{"id":"` + id + `","name":"Bea","customWords":{"AI":"A I"},"phrases":["Well"],"fileUrl":null}`},
		{"PUT /head/{headId}/conversation-settings", "", `{"conversationSettings":{"tools":[` + goodTool + `]}}`},
		{"PUT /head/{headId}/video-streaming", "?videoStreaming=true", ""},
		{"PUT /head/{headId}/enable-events", "?enableEvents=true", ""},
		{"GET /head/{id}", "", ""},
		{"GET /head_visual/{headVisualId}", "", ""},
		{"POST /head-events", "", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test","endConversation":true}`},
		{"PATCH /head-events/{webhookId}", "", `{"inactivityWarning":true}`},
		{"GET /head-events", "?headId=" + id, ""},
		{"GET /head-events/{webhookId}", "", ""},
		{"DELETE /head-events/{webhookId}", "", ""},
		{"GET /head/{headId}/conversation-settings", "", ""},
		{"GET /head/{headId}/enable-events", "", ""},
		{"PUT /head/{headId}/splitter", "?splitter=false", ""},
	} {
		path := strings.NewReplacer("{id}", id, "{headId}", id, "{headVisualId}", "v", "{webhookId}", "1").Replace(call.route)
		method, path, _ := strings.Cut(path, " ")
		answers[call.route] = a.ok(method, path+call.query, call.body)
	}
	return answers
}

func TestAnswersHoldEveryDocumentedField(t *testing.T) {
	d := described(t)
	for _, style := range []headstest.Responses{headstest.ResponsesEmpty, headstest.ResponsesBool, headstest.ResponsesRecord} {
		answers := walkOperations(newAPI(t, headstest.WithResponses(style)))
		for route, operation := range d.operations(false) {
			require.Contains(t, answers, route)
			if schema := d.at(operation, "responses", "2XX", "content", "application/json", "schema"); schema != nil {
				assert.NoError(t, d.check(schema, decoded[any](t, answers[route].body), route))
			}
		}
		if style != headstest.ResponsesRecord {
			continue
		}
		value := func(route string) any { return decoded[any](t, answers[route].body) }
		head, listed := value("GET /head/{id}"), value("GET /head-events").([]any)[0]
		settings := d.at(head, "conversationSettings")
		tool := list(d.at(settings, "tools"))[0]
		for name, records := range map[string][]any{
			"Head": {head, value("PUT /head/update")}, "PromptConfig": {d.at(head, "promptConfig")}, "Organisation": {d.at(head, "organisation")},
			"ConversationSettings": {settings}, "Tool": {tool}, "ToolParameter": {list(d.at(tool, "parameters"))[0]},
			"HeadVisual": {value("GET /head_visual/{headVisualId}")}, "WebhookCreated": {value("POST /head-events")}, "Webhook": {listed, value("GET /head-events/{webhookId}")},
		} {
			for _, record := range records {
				assert.Subset(t, slices.Collect(maps.Keys(record.(map[string]any))), strings.Fields(documentedFields[name]), name)
				assert.NoError(t, d.check(d.schema(name), record, name))
			}
		}
	}
}

func TestOutboundRequestsAreAsDescribed(t *testing.T) {
	d := described(t)
	body := func(webhook string) any {
		return d.at(d.root, "webhooks", webhook, "post", "requestBody", "content", "application/json", "schema")
	}
	play(t, &receiver{}, nil, func(s *scene) {
		s.converse("inactive")
		sent := object(t, string(s.all()[0].body))
		assert.Subset(t, slices.Collect(maps.Keys(sent)), strings.Fields(documentedFields["Event"]))
		assert.NoError(t, d.check(body("event"), any(sent), "event"))
		call := need(s.CallTool(s.t.Context(), withTool(s.Emulator, "https://tools.example.test"), "weather", nil))(t)
		assert.NoError(t, d.check(body("toolCall"), decoded[any](t, string(call.Body)), "tool call"))
	})
}

// The seed that an export makes of a head with null must be one, too.
func TestHeadHasNullWhereASeedMayHaveIt(t *testing.T) {
	a, d := newAPI(t), described(t)
	nulls := 0
	for field := range strings.FieldsSeq(documentedFields["Head"]) {
		seed, err := headstest.ParseSeed([]byte(`{"heads":[{"` + field + `":null}]}`))
		if err != nil {
			continue
		}
		nulls++
		added, err := a.Import(seed)
		require.NoError(t, err, field)
		head := a.head(added.Heads[0])
		assert.NoError(t, d.check(d.schema("Head"), head, field))
		if field != "id" {
			head[field] = nil // also where the emulator puts a value in its place
			assert.NoError(t, d.check(d.schema("Head"), head, field))
		}
	}
	assert.Greater(t, nulls, 20)
}

// walkControlAPI makes every request of the control API but the stream once, and returns the
// answers by route.
func walkControlAPI(t *testing.T, a *api) map[string]string {
	answers := map[string]string{}
	call := func(route, id, body string) string {
		t.Helper()
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", id, "{n}", id, "{action}", "message").Replace(route), " /_emulator/")
		answers[route] = a.controlled(method, path, body)
		return answers[route]
	}
	customer := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"message":"Hi"}`) })
	id := a.AddHead(headstest.Head{OperationMode: "oc", EnableEvents: true})
	addWebhook(t, a, id, customer, allEvents...)
	addWebhook(t, a, id, "https://hook.example.test")
	require.NoError(t, a.AddTool(id, json.RawMessage(`{"name":"hours","url":"`+customer+`","parameters":[{"name":"day","type":"string","description":"Day"}]}`)))
	for _, route := range []string{"", "health", "openapi.json"} {
		call("GET /_emulator/"+route, "", "")
	}
	call("POST /_emulator/seed", "", `{"visuals":[{"id":"v","mode":"default"}],"heads":[{"headVisualId":"v"}]}`)
	call("POST /_emulator/heads/{id}/update", id, `{"name":"Bea","createdAt":"now"}`)
	call("POST /_emulator/heads/{id}/splitter", id, "")
	call("POST /_emulator/heads/{id}/video-streaming", id, `{"videoStreaming":true}`)
	call("POST /_emulator/heads/{id}/enable-events", id, `{"enableEvents":true}`)
	call("GET /_emulator/heads/{id}", id, "")
	call("GET /_emulator/heads/{id}/address", id, "")
	session := object(t, call("POST /_emulator/sessions", "", `{"headId":"`+id+`"}`))["id"].(string)
	call("POST /_emulator/sessions/{id}/{action}", session, `{"text":"Hello"}`)
	call("POST /_emulator/sessions/{id}/tool-calls", session, `{"tool":"hours","arguments":{"day":"Monday"}}`)
	call("POST /_emulator/tool-calls", "", `{"headId":"`+id+`","tool":"hours"}`)
	call("GET /_emulator/sessions", "", "")
	call("GET /_emulator/sessions/{id}", session, "")
	a.ids("deliveries?wait=30s&final=true")
	for _, route := range []string{"", "/{id}", "/{id}/body", "/{id}/curl", "/{id}/go-test"} {
		call("GET /_emulator/deliveries"+route, "1", "")
	}
	call("POST /_emulator/deliveries/{id}/resend", "1", "")
	call("GET /_emulator/requests", "", "")
	call("GET /_emulator/requests/{id}", "1", "") // the update
	call("POST /_emulator/faults/requests", "", `{"status":503,"times":2,"retryAfter":"1s","route":"/head/{id}","share":0.5}`)
	call("POST /_emulator/faults/deliveries", "", `{"webhookId":1,"event":"end_conversation","delay":"1ms","encoding":"base64"}`)
	call("GET /_emulator/faults", "", "")
	call("GET /_emulator/state", "", "")
	call("GET /_emulator/export", "", "")
	call("DELETE /_emulator/faults/{n}", "1", "")
	call("DELETE /_emulator/webhooks/{id}", "1", "")
	call("DELETE /_emulator/faults", "", "")
	call("POST /_emulator/reset", "", "")
	return answers
}

func TestControlAnswersAreAsDescribed(t *testing.T) {
	d, answers := described(t), walkControlAPI(t, withConsole(t, headstest.WithResponses(headstest.ResponsesRecord)))
	for route, operation := range d.operations(true) {
		for kind, media := range d.at(operation, "responses", "2XX", "content").(map[string]any) {
			schema := d.at(media, "schema")
			require.NotNil(t, schema, "%s has no schema of its answer", route)
			if kind == "application/json" {
				require.Contains(t, answers, route)
				assert.NoError(t, d.check(schema, decoded[any](t, answers[route]), route))
			}
		}
	}
}

func TestRefusalsAreAsDescribed(t *testing.T) {
	d, a := described(t), newAPI(t)
	for route, operation := range d.operations(false) {
		method, path, _ := strings.Cut(route, " ")
		ans := a.do(method, parameter.ReplaceAllString(path, "nobody"), "")
		require.GreaterOrEqual(t, ans.status, 400, route)
		schema := d.at(operation, "responses", "default", "content", "application/json", "schema")
		assert.NoError(t, d.check(schema, decoded[any](t, ans.body), route))
	}
}
