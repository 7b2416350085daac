package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// served returns the description that the command serves.
func served(t *testing.T, p *program) description {
	ans := p.control("GET", "openapi.json", "")
	ans.ok(t, nil)
	return describe(t, []byte(ans.body))
}

// openAPI returns the description that the emulator serves.
func openAPI(t *testing.T) []byte {
	text, err := os.ReadFile("../../headstest/openapi.json")
	require.NoError(t, err)
	return text
}

// described returns the operations in the form of the contract's table.
func (d description) described() map[string]any {
	operations := d.paths()
	maps.DeleteFunc(operations, func(route string, _ any) bool { return strings.Contains(route, controlPrefix) })
	return operations
}

// paths returns the operations and the control API.
func (d description) paths() map[string]any {
	operations := map[string]any{}
	for path, item := range d.root["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			operations[strings.ToUpper(method)+" "+path] = operation
		}
	}
	return operations
}

func TestDescriptionMarksWhatIsNotInTheContract(t *testing.T) {
	d := describe(t, openAPI(t))
	for route, operation := range d.described() {
		marked := slices.Contains(seen, route)
		assert.Equal(t, marked, d.at(operation, "x-not-in-contract") == true, route)
		text, _ := d.at(operation, "description").(string)
		assert.Equal(t, marked, strings.HasPrefix(text, "Not in the contract"), route)
	}
}

// What the tools that others wrote ask of a description, beyond the standard.
func TestDescriptionExplainsEveryKeyOfAFault(t *testing.T) {
	d := served(t, start(t))
	for kind, want := range map[string][]string{"requests": keysOf[requestFault](), "deliveries": keysOf[deliveryFault]()} {
		operation := d.at(d.root, "paths", "/_emulator/faults/"+kind, "post")
		keys := d.at(operation, "requestBody", "content", "application/json", "schema", "properties").(map[string]any)
		assert.ElementsMatch(t, want, slices.Collect(maps.Keys(keys)))
		for key, schema := range keys {
			assert.NotEmpty(t, d.at(schema, "description"), "%s %s", kind, key)
		}
	}
}

// The keys of the control API's faults.
type (
	requestFault struct {
		Method, Route, Status, Body, RetryAfter, Latency, Cut, CutBody, AfterEffect, Share, Times any
	}
	deliveryFault struct {
		WebhookID, Event, Times, Drop, Duplicate, Reorder, Delay, CorruptSignature, Encoding, Age, Status any
	}
)

// keysOf returns the JSON names of a struct's fields.
func keysOf[T any]() []string {
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name := strings.ToLower(f.Name[:1]) + f.Name[1:]
		keys = append(keys, strings.Replace(name, "ID", "Id", 1))
	}
	return keys
}

func TestDescriptionIsWhole(t *testing.T) {
	d := describe(t, openAPI(t))
	assert.NotEmpty(t, d.at(d.root, "info", "contact", "url"))
	for route, operation := range d.paths() {
		assert.NotEmpty(t, d.at(operation, "description"), route)
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
	d := describe(t, openAPI(t))
	assert.Equal(t, "3.1.0", d.root["openapi"])
	operations := d.described()
	assert.ElementsMatch(t, append(slices.Collect(maps.Keys(contract)), seen...), slices.Collect(maps.Keys(operations)))
	ids := map[any]bool{}
	for route, operation := range operations {
		id := d.at(operation, "operationId")
		assert.NotEmpty(t, id, route)
		assert.False(t, ids[id], "%s has the operationId of another", route)
		ids[id] = true
		assert.NotEmpty(t, d.at(operation, "summary"), route)
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
	p := start(t)
	var index struct{ Requests []string }
	p.control("GET", "", "").ok(t, &index)
	paths := served(t, p).paths()
	maps.DeleteFunc(paths, func(route string, _ any) bool { return !strings.Contains(route, controlPrefix) })
	assert.ElementsMatch(t, index.Requests, slices.Collect(maps.Keys(paths)))
	d := served(t, p)
	for route, operation := range paths {
		assert.Equal(t, []any{}, d.at(operation, "security"), "%s needs no token", route)
		assert.NotEmpty(t, d.at(operation, "summary"), route)
	}
}

func TestDescriptionDeclaresEveryParameter(t *testing.T) {
	d := describe(t, openAPI(t))
	queries := map[string]string{"videoStreaming": "PUT /head/{headId}/video-streaming", "enableEvents": "PUT /head/{headId}/enable-events", "splitter": "PUT /head/{headId}/splitter", "headId": "GET /head-events"}
	for route, operation := range d.described() {
		want := map[string]string{}
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(route, -1) {
			want[name[1]] = "path"
		}
		for name, of := range queries {
			if of == route {
				want[name] = "query"
			}
		}
		got := map[string]string{}
		for _, parameter := range list(d.at(operation, "parameters")) {
			got[d.at(parameter, "name").(string)] = d.at(parameter, "in").(string)
			assert.Equal(t, true, d.at(parameter, "required"), route)
			assert.NotNil(t, d.at(parameter, "schema", "type"), route)
		}
		assert.Equal(t, want, got, route)
	}
}

func TestDescriptionHoldsEveryDocumentedField(t *testing.T) {
	d := describe(t, openAPI(t))
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
	isNull := func(v any) bool {
		m, ok := v.(map[string]any)
		return v == "null" || ok && m["type"] == "null"
	}
	for _, key := range []string{"type", "anyOf"} {
		given, ok := out[key].([]any)
		if !ok {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(given), isNull)
		out[key] = rest
		if len(rest) == 1 && key == "anyOf" {
			return rest[0]
		} else if len(rest) == 1 {
			out[key] = rest[0]
		}
	}
	return out
}

func TestDescriptionsReferencesLeadSomewhere(t *testing.T) {
	d := describe(t, openAPI(t))
	seen := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["$ref"].(string); ok {
				seen++
				assert.IsType(t, map[string]any{}, d.resolve(v))
			}
			for _, item := range v {
				walk(item)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(d.root)
	assert.Greater(t, seen, 30)
}

// The Allow header of a path lists the methods that it has.
func TestEmulatorRoutesExactlyWhatIsDescribed(t *testing.T) {
	p := start(t)
	methods := map[string][]string{}
	for route := range served(t, p).described() {
		method, path, _ := strings.Cut(route, " ")
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, p.Heads[0])
		methods[path] = append(methods[path], method)
	}
	for path, described := range methods {
		ans := p.api("PROBE", path, "")
		require.Equal(t, http.StatusMethodNotAllowed, ans.status, path)
		allowed := strings.Split(ans.header.Get("Allow"), ", ")
		allowed = slices.DeleteFunc(allowed, func(m string) bool { return m == http.MethodHead }) // comes with GET
		if path == "/head/update" {
			allowed = slices.DeleteFunc(allowed, func(m string) bool { return m == http.MethodGet }) // as an id of GET /head/{id}
		}
		assert.ElementsMatch(t, described, allowed, path)
	}
}

// walkOperations calls every operation once and returns the answers by route.
func walkOperations(t *testing.T, p *program) map[string]answer {
	const tool = `{"name":"hours","description":"Tells the hours.","parameters":[{"name":"day","type":"string","description":"Day of the week."}],"url":"https://tools.example.test/hours"}`
	head := "/head/" + p.Heads[0]
	answers := map[string]answer{}
	call := func(route, path, body string) {
		method, _, _ := strings.Cut(route, " ")
		answers[route] = p.api(method, path, body)
		answers[route].ok(t, nil)
	}
	call("PUT /head/update", "/head/update", `{"id":"`+p.Heads[0]+`","name":"Bea","customWords":{"AI":"A I"},"phrases":["Well"],"fileUrl":null}`)
	call("PUT /head/{headId}/conversation-settings", head+"/conversation-settings", `{"conversationSettings":{"tools":[`+tool+`]}}`)
	call("PUT /head/{headId}/video-streaming", head+"/video-streaming?videoStreaming=true", "")
	call("PUT /head/{headId}/enable-events", head+"/enable-events?enableEvents=true", "")
	call("GET /head/{id}", head, "")
	call("GET /head_visual/{headVisualId}", "/head_visual/"+p.Visuals[0], "")
	call("POST /head-events", "/head-events", `{"headId":"`+p.Heads[0]+`","webhookUrl":"https://hook.example.test","endConversation":true}`)
	call("PATCH /head-events/{webhookId}", "/head-events/1", `{"inactivityWarning":true}`)
	call("GET /head-events", "/head-events?headId="+p.Heads[0], "")
	call("GET /head-events/{webhookId}", "/head-events/1", "")
	call("DELETE /head-events/{webhookId}", "/head-events/1", "")
	call("GET /head/{headId}/conversation-settings", head+"/conversation-settings", "")
	call("GET /head/{headId}/enable-events", head+"/enable-events", "")
	call("PUT /head/{headId}/splitter", head+"/splitter?splitter=false", "")
	return answers
}

func TestAnswersAreAsDescribed(t *testing.T) {
	for _, style := range []string{"empty", "record", "bool"} {
		t.Run(style, func(t *testing.T) {
			p := start(t, "-responses", style)
			d, answers := served(t, p), walkOperations(t, p)
			require.Len(t, answers, len(contract)+len(seen))
			for route, operation := range d.described() {
				if schema := d.at(operation, "responses", "2XX", "content", "application/json", "schema"); schema != nil {
					assert.NoError(t, d.check(schema, value(t, answers[route].body), route))
				}
			}
		})
	}
}

func TestAnswersHoldEveryDocumentedField(t *testing.T) {
	p := start(t, "-responses", "record")
	d, answers := served(t, p), walkOperations(t, p)
	head := value(t, answers["GET /head/{id}"].body)
	settings := d.at(head, "conversationSettings")
	tool := d.at(settings, "tools").([]any)[0]
	records := map[string][]any{
		"Head":                 {head, value(t, answers["PUT /head/update"].body)},
		"PromptConfig":         {d.at(head, "promptConfig")},
		"Organisation":         {d.at(head, "organisation")},
		"ConversationSettings": {settings},
		"Tool":                 {tool},
		"ToolParameter":        {d.at(tool, "parameters").([]any)[0]},
		"HeadVisual":           {value(t, answers["GET /head_visual/{headVisualId}"].body)},
		"WebhookCreated":       {value(t, answers["POST /head-events"].body)},
		"Webhook":              {value(t, answers["GET /head-events/{webhookId}"].body), value(t, answers["GET /head-events"].body).([]any)[0]},
	}
	for name, list := range records {
		for _, record := range list {
			for field := range strings.FieldsSeq(documentedFields[name]) {
				assert.Contains(t, record, field, name)
			}
			assert.NoError(t, d.check(d.schema(name), record, name))
		}
	}
}

func TestOutboundRequestsAreAsDescribed(t *testing.T) {
	p := start(t)
	d := served(t, p)
	customer := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message":"Hi"}`)
	})
	p.hook(customer)
	p.api("PUT", "/head/"+p.Heads[0]+"/conversation-settings", `{"conversationSettings":{"tools":[{"name":"hours","url":"`+customer+`"}]}}`).ok(t, nil)
	session := p.session()
	p.control("POST", "sessions/"+session+"/inactive", "").ok(t, nil)
	event := p.deliveries("")[0]
	sent := value(t, event.Body)
	for field := range strings.FieldsSeq(documentedFields["Event"]) {
		assert.Contains(t, sent, field)
	}
	request := d.at(d.root, "webhooks", "event", "post")
	assert.NoError(t, d.check(d.at(request, "requestBody", "content", "application/json", "schema"), sent, "event"))
	header := d.at(request, "parameters").([]any)[0].(map[string]any)["name"].(string)
	assert.NotEmpty(t, event.Headers[http.CanonicalHeaderKey(header)])

	var called toolReply
	p.control("POST", "sessions/"+session+"/tool-calls", `{"tool":"hours"}`).ok(t, &called)
	assert.NoError(t, d.check(d.at(d.root, "webhooks", "toolCall", "post", "requestBody", "content", "application/json", "schema"), value(t, string(called.Sent)), "tool call"))
}

// The seed that an export makes of a head with null must be one, too.
func TestHeadHasNullWhereASeedMayHaveIt(t *testing.T) {
	p := start(t)
	d := served(t, p)
	nulls := 0
	for field := range strings.FieldsSeq(documentedFields["Head"]) {
		var added struct{ Heads []string }
		ans := p.control("POST", "seed", `{"heads":[{"`+field+`":null}]}`)
		if ans.status >= 300 {
			continue
		}
		nulls++
		ans.ok(t, &added)
		head := value(t, p.api("GET", "/head/"+added.Heads[0], "").body).(map[string]any)
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
func walkControlAPI(t *testing.T, p *program) map[string]answer {
	answers := map[string]answer{}
	call := func(route, id, body string) answer {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		req := p.request(method, regexp.MustCompile(`\{id\}`).ReplaceAllString(path, id), body)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", p.BaseURL) // for what holds a secret
		answers[route] = p.send(req)
		answers[route].ok(t, nil)
		return answers[route]
	}
	customer := receiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"message":"Hi"}`) })
	p.hook(customer)
	p.api("POST", "/head-events", `{"headId":"`+p.Heads[0]+`","webhookUrl":"https://hook.example.test"}`).ok(t, nil)
	p.api("PUT", "/head/"+p.Heads[0]+"/conversation-settings", `{"conversationSettings":{"tools":[{"name":"hours","url":"`+customer+
		`","parameters":[{"name":"day","type":"string","description":"Day"}]}]}}`).ok(t, nil)
	for _, route := range []string{"GET /_emulator/", "GET /_emulator/health", "GET /_emulator/openapi.json"} {
		call(route, "", "")
	}
	call("POST /_emulator/seed", "", `{"visuals":[{"id":"v","mode":"default"}],"heads":[{"headVisualId":"v"}]}`)
	call("POST /_emulator/heads/{id}/update", p.Heads[0], `{"name":"Bea","createdAt":"now"}`)
	call("POST /_emulator/heads/{id}/splitter", p.Heads[0], "")
	call("POST /_emulator/heads/{id}/video-streaming", p.Heads[0], `{"videoStreaming":true}`)
	call("POST /_emulator/heads/{id}/enable-events", p.Heads[0], `{"enableEvents":true}`)
	call("GET /_emulator/heads/{id}", p.Heads[0], "")
	call("GET /_emulator/heads/{id}/address", p.Heads[0], "")
	call("POST /_emulator/sessions", "", `{"headId":"`+p.Heads[0]+`"}`)
	session := p.session()
	action := call("POST /_emulator/sessions/{id}/message", session, `{"text":"Hello"}`)
	delete(answers, "POST /_emulator/sessions/{id}/message")
	answers["POST /_emulator/sessions/{id}/{action}"] = action
	call("POST /_emulator/sessions/{id}/tool-calls", session, `{"tool":"hours","arguments":{"day":"Monday"}}`)
	call("POST /_emulator/tool-calls", "", `{"headId":"`+p.Heads[0]+`","tool":"hours"}`)
	call("GET /_emulator/sessions", "", "")
	call("GET /_emulator/sessions/{id}", session, "")
	p.deliveries("final=true")
	for _, route := range []string{"", "/{id}", "/{id}/body", "/{id}/curl", "/{id}/go-test"} {
		call("GET /_emulator/deliveries"+route, "1", "")
	}
	call("POST /_emulator/deliveries/{id}/resend", "1", "")
	changed := slices.IndexFunc(value(t, call("GET /_emulator/requests", "", "").body).([]any), func(r any) bool {
		return r.(map[string]any)["path"] == "/head/update"
	})
	call("GET /_emulator/requests/{id}", fmt.Sprint(changed+1), "")
	call("POST /_emulator/faults/requests", "", `{"status":503,"times":2,"retryAfter":"1s","route":"/head/{id}","share":0.5}`)
	call("POST /_emulator/faults/deliveries", "", `{"webhookId":1,"event":"end_conversation","delay":"1ms","encoding":"base64"}`)
	call("GET /_emulator/faults", "", "")
	call("GET /_emulator/state", "", "")
	call("GET /_emulator/export", "", "")
	fault := call("DELETE /_emulator/faults/1", "", "")
	delete(answers, "DELETE /_emulator/faults/1")
	answers["DELETE /_emulator/faults/{n}"] = fault
	call("DELETE /_emulator/webhooks/{id}", "1", "")
	call("DELETE /_emulator/faults", "", "")
	call("POST /_emulator/reset", "", "")
	return answers
}

func TestControlAnswersAreAsDescribed(t *testing.T) {
	p := start(t, "-responses", "record")
	d, answers := served(t, p), walkControlAPI(t, p)
	for route, operation := range d.paths() {
		if _, service := d.described()[route]; service {
			continue
		}
		content := d.at(operation, "responses", "2XX", "content").(map[string]any)
		for kind, media := range content {
			schema := d.at(media, "schema")
			require.NotNil(t, schema, "%s has no schema of its answer", route)
			if kind != "application/json" {
				continue
			}
			require.Contains(t, answers, route)
			assert.NoError(t, d.check(schema, value(t, answers[route].body), route))
		}
	}
}

func TestRefusalsAreAsDescribed(t *testing.T) {
	p := start(t)
	d := served(t, p)
	for route, operation := range d.described() {
		method, path, _ := strings.Cut(route, " ")
		ans := p.api(method, regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "nobody"), "")
		require.GreaterOrEqual(t, ans.status, 400, route)
		schema := d.at(operation, "responses", "default", "content", "application/json", "schema")
		assert.NoError(t, d.check(schema, value(t, ans.body), route))
	}
}

func value(t *testing.T, body string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	return v
}
