package heads_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examined is a head without faults, and the changes that a test makes.
type examined struct {
	srv  *headstest.Server
	head headstest.Head
	mode heads.VisualMode

	// after the head exists
	prepare func(t *testing.T, client *heads.Client, headID string)
}

const healthyPrompt = "Call get_weather with the city that the user names."

func weatherTool() map[string]any {
	return map[string]any{
		"name": "get_weather", "description": "Weather in a city.", "url": "https://tools.example.com/get_weather",
		"parameters": []any{map[string]any{"name": "city", "type": "string", "description": "City."}},
	}
}

// healthy returns a head without faults.
func healthy(srv *headstest.Server) *examined {
	return &examined{
		srv:  srv,
		mode: heads.VisualModeDefault,
		head: headstest.Head{
			Name: "Ada", TTSProvider: "azure", TTSVoice: "en-GB-SoniaNeural", OperationMode: heads.OperationModeOC, EnableEvents: true,
			Fields: map[string]any{
				"language":             "en-GB",
				"promptConfig":         map[string]any{"system_prompt": healthyPrompt},
				"conversationSettings": map[string]any{"tools": []any{weatherTool()}},
			},
		},
		prepare: func(t *testing.T, client *heads.Client, headID string) {
			register(t, client, headID, "https://app.example.com/hooks")
		},
	}
}

func register(t *testing.T, client *heads.Client, headID, url string) {
	t.Helper()
	heads.Must(client.Webhooks.Create(t.Context(), heads.WebhookSpec{HeadID: headID, URL: url, Events: []heads.EventType{heads.EventStartConversation}}))(t)
}

// examine returns the codes of the findings with their severities and subjects.
func (x *examined) examine(t *testing.T, opts ...heads.Option) map[string]string {
	t.Helper()
	x.head.HeadVisualID = x.srv.AddVisual(headstest.Visual{Mode: x.mode})
	headID := x.srv.AddHead(x.head)
	client := x.srv.Client(opts...)
	if x.prepare != nil {
		x.prepare(t, client, headID)
	}
	before := len(x.srv.Requests())
	examination := heads.Must(client.Heads.Examine(t.Context(), headID))(t)
	for _, request := range x.srv.Requests()[before:] {
		assert.Equal(t, http.MethodGet, request.Method)
	}
	found := map[string]string{}
	for _, finding := range examination.Findings {
		assert.NotEmpty(t, finding.Problem)
		assert.NotEmpty(t, finding.Remedy)
		found[finding.Code] = string(finding.Severity) + " " + finding.Subject
	}
	return found
}

func TestExamineFindsNothingOnAHealthyHead(t *testing.T) {
	srv := headstest.NewServer()
	defer srv.Close()
	assert.Empty(t, healthy(srv).examine(t))
}

func TestExamineFindsEachFaultAndNoOther(t *testing.T) {
	srv := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer srv.Close()
	field := func(name string, value any) func(*examined) {
		return func(x *examined) { x.head.Fields[name] = value }
	}
	tool := func(change func(map[string]any)) func(*examined) {
		return func(x *examined) {
			tool := weatherTool()
			change(tool)
			x.head.Fields["conversationSettings"] = map[string]any{"tools": []any{tool}}
		}
	}
	for name, row := range map[string]struct {
		spoil func(*examined)
		found map[string]string
	}{
		"inactive":              {field("isActive", false), map[string]string{"inactive": "error isActive"}},
		"no access URL":         {field("publicUrl", "https://chat.example.com/"), map[string]string{"access_url": "error publicUrl"}},
		"placeholder":           {field("greetings", "string"), map[string]string{"placeholder": "error greetings"}},
		"placeholder in a list": {field("phrases", []string{"hi", "<NAME>"}), map[string]string{"placeholder": "error phrases"}},
		"language":              {field("language", "german"), map[string]string{"language": "warning language"}},
		"recognized language":   {field("languageSpeechRecognition", "german"), map[string]string{"language": "warning languageSpeechRecognition"}},
		"malformed tool":        {tool(func(tool map[string]any) { tool["description"] = "" }), map[string]string{"tool_invalid": "error tool get_weather"}},
		"tool of an odd shape": {tool(func(tool map[string]any) { tool["parameters"] = map[string]any{"city": "string"} }),
			map[string]string{"tool_invalid": "error tool get_weather"}},
		"parameters without a type": {tool(func(tool map[string]any) {
			tool["parameters"] = []any{map[string]any{"name": "city", "description": "City."}}
		}), map[string]string{"parameter_untyped": "note tool get_weather.city"}},
		"a parameter of an unknown type": {tool(func(tool map[string]any) {
			tool["parameters"] = []any{map[string]any{"name": "city", "type": "strnig", "description": "City."}}
		}), map[string]string{"parameter_type": "note tool get_weather.city"}},
		"two tools of a name": {field("conversationSettings", map[string]any{"tools": []any{weatherTool(), weatherTool()}}),
			map[string]string{"tool_duplicate": "error tool get_weather"}},
		"tools without oc": {func(x *examined) { x.head.OperationMode = heads.OperationModeTTT }, map[string]string{"tools_without_oc": "warning operationMode"}},
		"tool not in the prompt": {field("promptConfig", map[string]any{"system_prompt": "Be kind."}),
			map[string]string{"tool_not_in_prompt": "warning tool get_weather"}},
		"no prompt": {field("promptConfig", nil), map[string]string{"tool_not_in_prompt": "warning tool get_weather"}},
		"parameter not in the prompt": {field("promptConfig", map[string]any{"system_prompt": "Call get_weather."}),
			map[string]string{"parameter_not_in_prompt": "warning tool get_weather.city"}},
		"delivery without webhook": {func(x *examined) { x.prepare = nil }, map[string]string{"delivery_without_webhook": "warning enableEvents"}},
		"webhook without delivery": {func(x *examined) { x.head.EnableEvents = false }, map[string]string{"webhook_without_delivery": "warning enableEvents"}},
		"loopback webhook": {func(x *examined) {
			x.prepare = func(t *testing.T, client *heads.Client, headID string) {
				register(t, client, headID, "http://127.0.0.1:1/hooks")
			}
		}, map[string]string{}},
		"visual that can't stream": {func(x *examined) { x.mode = heads.VisualModeTwoLoops }, map[string]string{"visual_mode": "note headVisualId"}},
		"visual that is gone": {func(x *examined) {
			x.prepare = func(t *testing.T, client *heads.Client, headID string) {
				register(t, client, headID, "https://app.example.com/hooks")
				x.srv.Inject(headstest.Fault{Method: "GET", Route: "/head_visual/{headVisualId}", Status: 404})
			}
		}, map[string]string{"visual_unknown": "note headVisualId"}},
		"provider":          {func(x *examined) { x.head.TTSProvider = "polly" }, map[string]string{"provider": "note ttsProvider"}},
		"voice model":       {func(x *examined) { x.head.TTSProvider, x.head.TTSVoice = "elevenlabs", "rachel" }, map[string]string{"voice_model": "note ttsVoice"}},
		"recommended voice": {func(x *examined) { x.head.TTSProvider, x.head.TTSVoice = "elevenlabs", "x_eleven_turbo_v2_5" }, map[string]string{}},
		"streaming with another visual": {func(x *examined) { x.head.VideoStreaming, x.mode = true, heads.VisualModeTwoLoops },
			map[string]string{"visual_mode": "error headVisualId"}},
		"streaming with another provider": {func(x *examined) { x.head.VideoStreaming, x.head.TTSProvider = true, "polly" },
			map[string]string{"provider": "error ttsProvider"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := healthy(srv)
			x.head.Fields = maps.Clone(x.head.Fields)
			row.spoil(x)
			assert.Equal(t, row.found, x.examine(t))
		})
		srv.Reset()
	}
}

const examinedID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"

// examineDocuments examines documents that the emulator would never return.
func examineDocuments(t *testing.T, head, hooks, visual string, opts ...heads.Option) (*heads.Examination, error) {
	t.Helper()
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder("GET", "https://api.example.com/head/"+examinedID, httpmock.NewStringResponder(200, head))
	transport.RegisterResponder("GET", "https://api.example.com/head-events?headId="+examinedID, httpmock.NewStringResponder(200, hooks))
	transport.RegisterResponder("GET", "https://api.example.com/head_visual/v", httpmock.NewStringResponder(200, visual))
	client := heads.Must(heads.New("https://api.example.com", "token", append(opts,
		heads.WithHTTPClient(&http.Client{Transport: transport}), heads.WithRetryPolicy(heads.RetryPolicy{}))...))(t)
	return client.Heads.Examine(t.Context(), examinedID)
}

func TestExamineFindsFaultsOfRegistrationsAndModes(t *testing.T) {
	const (
		legacy    = `"videoStreaming":false,"publicUrl":"https://chat.example.com/MyOrg-1/li-1?api_key=k"`
		streaming = `"videoStreaming":true,"publicUrl":"https://stream.example.com/MyOrg-1/li-1?api_key=k"`
		hook      = `{"id":7,"headId":"` + examinedID + `","webhookUrl":"https://a.example.com/","startConversation":true}`
		visual    = `{"id":"v","mode":"default"}`
	)
	bases := heads.WithAccessBases("https://chat.example.com", "https://stream.example.com")
	for name, row := range map[string]struct {
		head, hooks, visual string
		found               []heads.Finding // without Problem, Remedy and Use
	}{
		"healthy":                   {legacy + `,"isActive":true`, "[" + hook + "]", visual, nil},
		"streaming":                 {streaming, "[" + hook + "]", visual, nil},
		"splitter":                  {streaming + `,"splitter":true`, "[" + hook + "]", visual, []heads.Finding{{Code: "splitter", Severity: "error", Subject: "splitter"}}},
		"splitter of a legacy head": {legacy + `,"splitter":true`, "[" + hook + "]", visual, nil},
		"address of the other mode": {`"videoStreaming":true,"publicUrl":"https://chat.example.com/MyOrg-1/li-1?api_key=k"`, "[" + hook + "]", visual,
			[]heads.Finding{{Code: "access_url_mode", Severity: "warning", Subject: "publicUrl"}}},
		"plain http": {legacy, strings.Replace("["+hook+"]", "https:", "http:", 1), visual, []heads.Finding{{Code: "webhook_http", Severity: "error", Subject: "webhook 7"}}},
		"no event":   {legacy, strings.Replace("["+hook+"]", "true", "false", 1), visual, []heads.Finding{{Code: "webhook_without_event", Severity: "warning", Subject: "webhook 7"}}},
		"three registrations of a URL": {legacy, "[" + strings.Replace(hook, "7", "9", 1) + "," + hook + "," + strings.Replace(hook, "7", "8", 1) + "]", visual,
			[]heads.Finding{{Code: "webhook_duplicate", Severity: "warning", Subject: "webhook 7"}}},
		"inactive":               {legacy + `,"isActive":false`, "[" + hook + "]", visual, []heads.Finding{{Code: "inactive", Severity: "error", Subject: "isActive"}}},
		"isActive of other type": {legacy + `,"isActive":1`, "[" + hook + "]", visual, nil},
		"no mode":                {legacy, "[" + hook + "]", `{"id":"v"}`, []heads.Finding{{Code: "visual_unknown", Severity: "note", Subject: "headVisualId"}}},
	} {
		t.Run(name, func(t *testing.T) {
			document := `{"id":"` + examinedID + `","name":"Ada","enableEvents":true,"headVisualId":"v","ttsProvider":"azure","ttsVoice":"a",` + row.head + `}`
			examination := heads.Must(examineDocuments(t, document, row.hooks, row.visual, bases))(t)
			found := examination.Findings
			for i := range found {
				found[i].Problem, found[i].Remedy, found[i].Use = "", "", ""
			}
			assert.Equal(t, append([]heads.Finding{}, row.found...), found)
		})
	}
}

func TestExamineFailsIfItCannotRead(t *testing.T) {
	const head = `{"id":"` + examinedID + `","headVisualId":"v"}`
	for name, documents := range map[string][3]string{
		"head":          {"maintenance", "[]", `{"id":"v"}`},
		"registrations": {head, "maintenance", `{"id":"v"}`},
		"visual":        {head, "[]", "maintenance"},
	} {
		_, err := examineDocuments(t, documents[0], documents[1], documents[2])
		var unread *heads.DecodeError
		require.ErrorAs(t, err, &unread, name)
	}
}

func TestExaminationAsJSONHasNoNull(t *testing.T) {
	const visual = `{"id":"v","mode":"default"}`
	document := `{"id":"` + examinedID + `","name":"Ada","isActive":true,"headVisualId":"v","publicUrl":"https://chat.example.com/MyOrg-1/li-1?api_key=k","ttsProvider":"azure"}`
	examination := heads.Must(examineDocuments(t, document, "[]", visual))(t)
	raw := heads.Must(json.Marshal(examination))(t)
	assert.Equal(t, `{"head_id":"`+examinedID+`","name":"Ada","mode":"legacy","findings":[]}`, string(raw))
	raw = heads.Must(json.Marshal(&heads.Examination{Findings: []heads.Finding{{Code: "inactive", Severity: heads.SeverityError, Subject: "isActive", Problem: "p", Remedy: "r"}}}))(t)
	assert.Contains(t, string(raw), `"findings":[{"code":"inactive","severity":"error","subject":"isActive","problem":"p","remedy":"r"}]`)
}

func TestExaminationHoldsNoSecret(t *testing.T) {
	const head = `{"id":"` + examinedID + `","headVisualId":"v","operationMode":"oc","enableEvents":true,"voiceflowApiKey":"s3cret","fileUrl":"https://a.example.com/?k=s3cret<API_KEY>",
		"publicUrl":"https://chat.example.com/MyOrg-1?api_key=s3cret","organisation":{"apiKey":"s3cret"},
		"conversationSettings":{"llm":{"api_key":"s3cret"},"tools":[{"name":"find","description":"d","url":"http://u:s3cret@t.example.com/s3cret/find?k=s3cret"},"s3cret"]}}`
	const hooks = `[{"id":7,"headId":"` + examinedID + `","webhookUrl":"http://a.example.com/s3cret?k=s3cret","sharedKey":"s3cret"}]`
	examination := heads.Must(examineDocuments(t, head, hooks, `{"id":"v","mode":"two_loops"}`))(t)
	require.GreaterOrEqual(t, len(examination.Findings), 6)
	raw := heads.Must(json.Marshal(examination))(t)
	assert.NotContains(t, string(raw), "s3cret")
}
