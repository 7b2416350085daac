package heads_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/jarcoal/httpmock"
)

// An emulator stands in for the service in all examples.
var (
	srv     = headstest.NewServer(headstest.WithSeed(1), headstest.WithLoopbackHTTP())
	baseURL = srv.URL
	token   = srv.Token
	ctx     = context.Background()
	client  = srv.Client()
)

func newHead() string {
	return srv.AddHead(headstest.Head{
		Name: "Ada", TTSProvider: "azure", TTSVoice: "en-GB-SoniaNeural", OperationMode: heads.OperationModeOC,
		Fields: map[string]any{"phrases": []string{"hello"}, "voiceflowApiKey": "vf-key"},
	})
}

func Example() {
	headID := newHead()
	err := func() error {
		client, err := heads.New(baseURL, token)
		if err != nil {
			return err
		}
		update := heads.NewHeadUpdate().Greetings("Welcome back!")
		return client.Heads.Update(ctx, headID, update)
	}()
	head, _ := client.Heads.Get(ctx, headID)
	fmt.Println(head.Greetings, err)
	// Output: Welcome back! <nil>
}

func Example_quickStart() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada"})

	client, err := heads.New(srv.URL, srv.Token)
	if err != nil {
		log.Fatal(err)
	}
	update := heads.NewHeadUpdate().Greetings("Welcome back!")
	if err := client.Heads.Update(ctx, headID, update); err != nil {
		log.Fatal(err)
	}
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(head.Name, "says:", head.Greetings)
	// Output: Ada says: Welcome back!
}

func ExampleHeadsService_Get() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(head.Name, "speaks with", head.TTSVoice)
	// Output: Ada speaks with en-GB-SoniaNeural
}

func ExampleHeadsService_Update() {
	headID := newHead()
	update := heads.NewHeadUpdate().
		Greetings("").          // sends ""
		ClearVoiceflowAPIKey(). // sends null
		Phrases()               // sends []
	err := client.Heads.Update(ctx, headID, update)
	fmt.Println(update.Fields(), err)
	// Output: [greetings voiceflowApiKey phrases] <nil>
}

func ExampleHeadUpdate_Validate() {
	headID := newHead()
	update := heads.NewHeadUpdate().Name("string").Voice("", "rachel")
	err := client.Heads.Update(ctx, headID, update)
	fmt.Println(errors.Is(err, heads.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// heads: Heads.Update: name holds the placeholder "string"; give a real value or don't set the field
	// heads: Heads.Update: ttsVoice "rachel" and ttsProvider "" must be set together, but the provider is blank; give both with HeadUpdate.Voice
}

func ExampleHeadsService_SetVideoStreaming() {
	headID := newHead()
	if err := client.Heads.SetVideoStreaming(ctx, headID, true); err != nil {
		fmt.Println(err)
		return
	}
	head, _ := client.Heads.Get(ctx, headID)
	fmt.Println(head.VideoStreaming, head.Splitter)
	// Output: true false
}

func ExampleHeadVisualsService_Get() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	visual, err := client.HeadVisuals.Get(ctx, head.HeadVisualID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(visual.Mode)
	// Output: default
}

func ExampleWebhooksService_Create() {
	headID := newHead()
	hook, err := client.Webhooks.Create(ctx, heads.WebhookSpec{
		HeadID: headID,
		URL:    "https://app.example.com/events",
		Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hook.Events(), hook.SharedKey)
	// Output: [start_conversation end_conversation] [redacted]
}

func ExampleConversationSettingsService_PutTool() {
	headID := newHead()
	settings, err := client.ConversationSettings.PutTool(ctx, headID, heads.Tool{
		Name:        "opening_hours",
		Description: "Tells when the museum is open on a day.",
		URL:         "https://app.example.com/tools/opening_hours",
		Parameters:  []heads.ToolParameter{{Name: "day", Type: "string", Description: "Day of the week."}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(settings.Tools), settings.Tools[0].Name)
	// Output: 1 opening_hours
}

func ExampleClient_AccessURL() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	address, err := client.AccessURL(head)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(address.Base, address.APIKey) // address.Reveal() has the key
	// Output: https://chat.example.test [redacted]
}

func Example_errors() {
	headID := "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	_, err := client.Heads.Get(ctx, headID)

	var answer *heads.Error
	switch {
	case errors.Is(err, heads.ErrInvalid):
		fmt.Println("refused before anything was sent:", err)
	case errors.Is(err, heads.ErrNotFound):
		fmt.Println("there is no such head")
	case errors.As(err, &answer):
		fmt.Println("the service answered", answer.StatusCode, answer.Message, answer.RequestID)
	case err != nil:
		fmt.Println("no answer:", err)
	}
	// Output: there is no such head
}

func ExampleNew_options() {
	client, err := heads.New(baseURL, token,
		heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 5, MinWait: time.Second, MaxWait: time.Minute}),
		heads.WithAttemptTimeout(10*time.Second),
		heads.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		heads.WithObserver(heads.Observer[heads.Attempt]{End: func(_ context.Context, a heads.Attempt) {
			fmt.Println(a.Operation, a.Route, a.StatusCode, a.Number)
		}}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	headID := newHead()
	_, _ = client.Heads.Get(ctx, headID)
	// Output: Heads.Get /head/{id} 200 1
}

func Example_emulator() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada", TTSProvider: "azure"})

	client := srv.Client()
	head, err := client.Heads.Get(ctx, headID)
	fmt.Println(head.Name, err)
	// Output: Ada <nil>
}

const (
	exampleEventHead = "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b"
	exampleEventKey  = "example-shared-key" // from your secret store
)

// exampleDelivery returns a delivery as the service sends it.
func exampleDelivery(timestamp time.Time) *http.Request {
	body := fmt.Sprintf(`{"timestamp":%q,"head_id":%q,"session_id":"session-1","public_head_id":"li-28379","public_org_id":"MyOrg-1234","event_type":"start_conversation"}`,
		timestamp.UTC().Format("2006-01-02 15:04:05"), exampleEventHead)
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set(heads.SignatureHeader, heads.Sign([]byte(body), exampleEventKey))
	return r
}

func ExampleNewEventHandler() {
	handler, err := heads.NewEventHandler(heads.SharedKeys(exampleEventKey), func(ctx context.Context, e *heads.Event) error {
		fmt.Println(e.Type, "in", e.SessionID)
		return nil // answered with 200; after an error the service redelivers the event
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	r := exampleDelivery(time.Now())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)

	forged := exampleDelivery(time.Now())
	forged.Header.Set(heads.SignatureHeader, heads.Sign([]byte("something else"), exampleEventKey))
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, forged)
	fmt.Println(w.Code)
	// Output:
	// start_conversation in session-1
	// 200
	// 401
}

func ExampleHeadKeys() {
	handler, err := heads.NewEventHandler(heads.HeadKeys(map[string][]string{
		"3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b": {"key of this head"},
		"8d0e6c52-1f3b-4a7c-8e9d-2b4c6d8e0f1a": {"new key of that head", "its key until yesterday"},
	}), func(context.Context, *heads.Event) error { return nil })
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}

// In a framework that has its own handlers, read the bytes as they arrived
// before anything decodes them.
func ExampleVerifySignature() {
	handle := func(r *http.Request) (status int) {
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 64<<10))
		if err != nil {
			return http.StatusRequestEntityTooLarge
		}
		if err := heads.VerifySignature(body, r.Header.Get(heads.SignatureHeader), exampleEventKey); err != nil {
			return http.StatusUnauthorized
		}
		e, err := heads.ParseEvent(body)
		if err != nil {
			return http.StatusBadRequest
		}
		fmt.Println(e)
		return http.StatusOK
	}
	fmt.Println(handle(exampleDelivery(time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC))))
	// Output:
	// start_conversation at 2026-08-31 06:56:30, head 3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b, session session-1
	// 200
}

// Serverless gateways pass the body as text, some of them in base64, and change
// the case of header names. The signature is over the bytes.
func ExampleVerifySignature_gateway() {
	type gatewayRequest struct {
		Headers         map[string]string
		Body            string
		IsBase64Encoded bool
	}
	handle := func(r gatewayRequest) (status int) {
		body := []byte(r.Body)
		if r.IsBase64Encoded {
			decoded, err := base64.StdEncoding.DecodeString(r.Body)
			if err != nil {
				return http.StatusBadRequest
			}
			body = decoded
		}
		var signature string
		for name, value := range r.Headers {
			if strings.EqualFold(name, heads.SignatureHeader) {
				signature = value
			}
		}
		switch err := heads.VerifySignature(body, signature, exampleEventKey); {
		case errors.Is(err, heads.ErrSignatureMissing):
			fmt.Println("not from the service at all")
			return http.StatusUnauthorized
		case err != nil:
			fmt.Println(err)
			return http.StatusUnauthorized
		}
		e, err := heads.ParseEvent(body)
		if err != nil {
			return http.StatusBadRequest
		}
		fmt.Println(e.Type, e.Key()[:8]) // remember e.Key() to notice a redelivery
		return http.StatusOK
	}

	body := `{"event_type":"end_conversation","head_id":"` + exampleEventHead + `","session_id":"session-1","timestamp":"2026-08-31 06:56:30"}`
	request := gatewayRequest{
		Headers:         map[string]string{"x-signature-256": heads.Sign([]byte(body), exampleEventKey)},
		Body:            base64.StdEncoding.EncodeToString([]byte(body)),
		IsBase64Encoded: true,
	}
	fmt.Println(handle(request))
	request.IsBase64Encoded = false
	fmt.Println(handle(request))
	request.Headers = nil
	fmt.Println(handle(request))
	// Output:
	// end_conversation e14f10a2
	// 200
	// heads: the signature does not match the body with any of the shared keys
	// 401
	// not from the service at all
	// 401
}

func ExampleDiagnoseSignature() {
	sent := `{"event_type":"end_conversation","session_id":"session-1"}`
	signature := heads.Sign([]byte(sent), exampleEventKey)
	recorded := `{"event_type": "end_conversation", "session_id": "session-1"}`
	fmt.Println(heads.DiagnoseSignature([]byte(recorded), signature, exampleEventKey))
	fmt.Println(heads.DiagnoseSignature([]byte(sent+"\n"), signature, exampleEventKey+"\n"))
	// Output:
	// The signature would match with key 1 of 1: verify the bytes as they arrive: those signed were JSON without spaces (escaped as here).
	// The signature would match with key 1 of 1: trim the space around the key; remove the line end after the body.
}

func ExampleHeadsService_ConvertToStreaming() {
	headID := srv.AddHead(headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna"})
	conversion, err := client.Heads.ConvertToStreaming(ctx, headID, heads.ConvertOptions{
		Voice: &heads.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"},
	})
	var failed *heads.ConversionError
	switch {
	case errors.Is(err, heads.ErrVisualMode):
		fmt.Println("not with the visual of this head:", err)
	case errors.As(err, &failed):
		fmt.Println("stopped at", failed.Step, "old voice put back:", failed.RolledBack, err)
	case err == nil:
		fmt.Println("embed from now on:", conversion.After.Base) // After.Reveal() has the key
	}
	// Output: embed from now on: https://stream.example.test
}

func ExampleHeadsService_PlanStreaming() {
	visualID := srv.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	headID := srv.AddHead(headstest.Head{HeadVisualID: visualID, TTSProvider: "polly", TTSVoice: "Joanna"})
	plan, err := client.Heads.PlanStreaming(ctx, headID, heads.ConvertOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready:", plan.Ready())
	for _, blocker := range plan.Blockers {
		fmt.Println(errors.Is(blocker, heads.ErrVisualMode), errors.Is(blocker, heads.ErrProviderNotStreaming))
	}
	// Output:
	// ready: false
	// true false
	// false true
}

func ExampleHeadsService_Modify() {
	headID := newHead()
	head, err := client.Heads.Modify(ctx, headID, func(h *heads.Head) error {
		h.Greetings = "Welcome back!"
		h.Phrases = append(h.Phrases, "goodbye")
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(head.Phrases)

	_, err = client.Heads.Modify(ctx, headID, func(h *heads.Head) error {
		h.VideoStreaming = true
		return nil
	})
	fmt.Println(err)
	// Output:
	// [hello goodbye]
	// heads: Heads.Modify: videoStreaming can't be changed by an update; use Heads.SetVideoStreaming, or Heads.ConvertToStreaming and Heads.ConvertToLegacy
}

func ExampleHeadUpdateFromJSON() {
	headID := newHead()
	document := func() []byte {
		head, _ := client.Heads.Get(ctx, headID)
		return head.Raw.Bytes()
	}()
	update, err := heads.HeadUpdateFromJSON(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = client.Heads.Update(ctx, headID, update.Greetings("Welcome back!"))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleParseAccessURL() {
	address, err := heads.ParseAccessURL("https://chat.example.com/MyOrg-1234/li-28379?api_key=0123456789abcdef0123456789abcdef")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(address.PublicOrgID, address.PublicHeadID)
	fmt.Println(address)
	// Output:
	// MyOrg-1234 li-28379
	// https://chat.example.com/MyOrg-1234/li-28379?api_key=[redacted]
}

// greet is the code under test. It takes a client.
func greet(client *heads.Client, headID, text string) error {
	return client.Heads.Update(ctx, headID, heads.NewHeadUpdate().Greetings(text))
}

// The emulator keeps state, so a test can read the head after the call.
func Example_testWithTheEmulator() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada", TTSProvider: "azure", TTSVoice: "en-GB-SoniaNeural"})

	if err := greet(srv.Client(), headID, "Welcome back!"); err != nil {
		fmt.Println(err)
		return
	}

	head, err := srv.Client().Heads.Get(ctx, headID)
	fmt.Println(head.Greetings, err)
	// Output: Welcome back! <nil>
}

// The emulator can inject faults. Here the first two requests fail.
func Example_testAFailingService() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada"})
	srv.Inject(headstest.Fault{Method: http.MethodPut, Route: "/head/update", Status: http.StatusServiceUnavailable, Times: 2})

	err := greet(srv.Client(), headID, "Welcome back!")

	fmt.Println(len(srv.Requests()), "requests,", err)
	// Output: 3 requests, <nil>
}

// A handler is tested with signed deliveries. That needs neither a network nor the
// emulator.
func Example_testAHandler() {
	const sharedKey = "example-shared-key"
	var greeted []string
	handler, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), func(_ context.Context, e *heads.Event) error {
		greeted = append(greeted, e.SessionID)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	event := heads.Event{Type: heads.EventStartConversation, HeadID: newHead(), SessionID: "session-1"}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.com/webhooks/heads", event, sharedKey))

	fmt.Println(answer.Code, greeted)
	// Output: 200 [session-1]
}

// With httpmock, a test registers each answer. The client must not retry, or it
// would try a route without a responder four times.
func Example_testWithHTTPMock() {
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder("PUT", "https://api.example.com/head/update", httpmock.NewStringResponder(200, ""))
	client, err := heads.New("https://api.example.com", "token",
		heads.WithHTTPClient(&http.Client{Transport: transport}),
		heads.WithRetryPolicy(heads.RetryPolicy{}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = greet(client, "3fa85f64-5717-4562-b3fc-2c963f66afa6", "Welcome back!")

	fmt.Println(transport.GetTotalCallCount(), "request,", err)
	// Output: 1 request, <nil>
}

// The emulator calls a registered tool as the service does.
func Example_testATool() {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	tools, err := heads.NewToolHandler(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	type weatherArguments struct {
		City string `json:"city" jsonschema:"City to report on"`
	}
	err = heads.AddTool(tools, "get_weather", "Weather in a city.", func(_ context.Context, in weatherArguments) (string, error) {
		return "Sunny in " + in.City, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux.Handle("/", tools)

	srv := headstest.NewServer(headstest.WithLoopbackHTTP()) // your handler is on this machine
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
	settings, err := srv.Client().ConversationSettings.SetTools(ctx, headID, tools.Tools()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tools of the head:", len(settings.Tools))

	called, err := srv.CallTool(ctx, headID, "get_weather", map[string]any{"city": "Lisbon"})
	fmt.Println(called.Message, err)
	called, err = srv.CallTool(ctx, headID, "get_weather", nil)
	fmt.Println(called.Message, err)
	// Output:
	// tools of the head: 1
	// Sunny in Lisbon <nil>
	// city is missing; ask the user for it <nil>
}

// The first event has a wrong signature, and all others come twice. Two minutes pass in
// no time.
func TestEventsAreHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		emulator := headstest.NewEmulator(headstest.WithDeliveryHandler(mux))
		defer emulator.Close()
		client := emulator.Client()
		handled := make(chan heads.EventType, 100)
		events, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(_ context.Context, e *heads.Event) error {
			handled <- e.Type
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/events", events)
		headID := emulator.AddHead(headstest.Head{Name: "Ada"})
		hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{HeadID: headID, URL: "https://app.example.com/events",
			Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation}}, heads.EnsureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("registered as webhook", hook.ID)
		emulator.InjectDelivery(headstest.DeliveryFault{CorruptSignature: true, Times: 1})
		emulator.InjectDelivery(headstest.DeliveryFault{Duplicate: true})

		for range 2 {
			session := emulator.StartSession(headID)
			if err := errors.Join(session.UserMessage("Hello"), session.Close()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}

		if n := len(handled); n != 3 {
			t.Error(n, "events were handled")
		}
	})
}

func ExampleAddTool() {
	type orderArguments struct {
		Number int  `json:"order_number" jsonschema:"Number of the order, as on the invoice"`
		Brief  bool `json:"brief,omitempty" jsonschema:"Whether to leave out the details"`
	}
	orderStatus := func(ctx context.Context, in orderArguments) (string, error) {
		if in.Number != 4711 {
			return "", heads.ToolError{Message: "There is no order with that number; ask the user to check it"}
		}
		return "The order left the warehouse this morning", nil
	}

	tools, err := heads.NewToolHandler("https://tools.example.com/heads")
	if err != nil {
		log.Fatal(err)
	}
	if err := heads.AddTool(tools, "order_status", "Tells where an order is", orderStatus); err != nil {
		log.Fatal(err)
	}
	for _, p := range tools.Tools()[0].Parameters {
		fmt.Printf("%s (%s): %s\n", p.Name, p.Type, p.Description)
	}

	// Calls as the service sends them.
	for _, body := range []string{`{"order_number": "4711"}`, `{"order_number": 12}`, `{}`} {
		reply := httptest.NewRecorder()
		tools.ServeHTTP(reply, httptest.NewRequest(http.MethodPost, "/heads/order_status", strings.NewReader(body)))
		fmt.Println(reply.Body)
	}
	// Output:
	// order_number (integer): Number of the order, as on the invoice
	// brief (boolean): Whether to leave out the details
	// {"message":"The order left the warehouse this morning"}
	// {"message":"There is no order with that number; ask the user to check it"}
	// {"message":"order_number is missing; ask the user for it"}
}

func ExampleAddToolFunc() {
	tools, _ := heads.NewToolHandler("https://tools.example.com/heads")
	find := func(_ context.Context, arguments json.RawMessage) (string, error) {
		return "Found " + string(arguments), nil
	}

	spec := heads.ToolSpec{
		Name:        "find_order",
		Description: "Finds an order.",
		Parameters:  []heads.ToolParameter{{Name: "number", Type: "integer", Description: "Number of the order."}},
		Required:    []string{"number"},
	}
	err := heads.AddToolFunc(tools, spec, func(ctx context.Context, arguments json.RawMessage) (string, error) {
		return find(ctx, arguments) // {"number":5}
	})

	reply := httptest.NewRecorder()
	tools.ServeHTTP(reply, httptest.NewRequest(http.MethodPost, "/heads/find_order", strings.NewReader(`{"number": "5", "name": "Ada"}`)))
	fmt.Println(err, reply.Body)
	// Output: <nil> {"message":"Found {\"number\":5}"}
}

func ExampleToolHandler() {
	headID := newHead()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	toolsURL, pathToken := server.URL+"/tools", "6ab1d4e77c0f4b0e9d2f6ab1d4e77c0f"
	err := func() error {
		type weatherArguments struct {
			City string `json:"city" jsonschema:"City to report on, in English"`
			Days int    `json:"days,omitempty" jsonschema:"Days ahead, 0 for today"`
		}
		tools, err := heads.NewToolHandler(toolsURL, heads.WithPathToken(pathToken))
		if err != nil {
			return err
		}
		err = heads.AddTool(tools, "get_weather", "Weather in a city.",
			func(ctx context.Context, in weatherArguments) (string, error) {
				if in.City == "Atlantis" {
					return "", heads.ToolError{Message: "There is no such city; ask the user for another"}
				}
				return "Sunny in " + in.City + ", 22 degrees", nil
			})
		if err != nil {
			return err
		}
		mux.Handle("/tools/", tools)
		settings, err := client.ConversationSettings.SetTools(ctx, headID, tools.Tools()...)
		if err != nil {
			return err
		}
		fmt.Println("tools of the head:", len(settings.Tools))
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		return
	}
	// The emulator calls the tool as the service does.
	for _, city := range []string{"Lisbon", "Atlantis"} {
		call, err := srv.CallTool(ctx, headID, "get_weather", map[string]any{"city": city})
		fmt.Println(call.Message, err)
	}
	// Output:
	// tools of the head: 1
	// Sunny in Lisbon, 22 degrees <nil>
	// There is no such city; ask the user for another <nil>
}

func ExampleToolHandler_Shutdown() {
	tools, err := heads.NewToolHandler("https://tools.example.com/heads")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: tools}
	err = func() error {
		// Calls end within WithToolTimeout, so this leaves 20 seconds for functions that outlive theirs.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), tools.Shutdown(ctx))
	}()
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithToolObserver() {
	tools, err := heads.NewToolHandler("https://tools.example.com/heads",
		heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: func(_ context.Context, call heads.ToolCallInfo) {
			fmt.Println(call.Tool, call.Outcome) // count them by these two
		}}))
	if err != nil {
		log.Fatal(err)
	}
	err = heads.AddTool(tools, "wait", "Waits",
		func(_ context.Context, in struct {
			For time.Duration `json:"for" jsonschema:"How long, like 90s"`
		}) (string, error) {
			return "I wait " + in.For.String(), nil
		})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{`{"for": "PT30M"}`, `{"for": "soon"}`} {
		tools.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/wait", strings.NewReader(body)))
	}
	// Output:
	// wait answered
	// wait arguments
}

func ExampleCheckPrompt() {
	systemPrompt := "You are a weather presenter. Use get_weather when the user asks for the weather."
	tools := []heads.Tool{{
		Name:       "get_weather",
		Parameters: []heads.ToolParameter{{Name: "city", Type: "string", Description: "City to report on"}},
	}}
	for _, p := range heads.CheckPrompt(systemPrompt, tools...) {
		fmt.Println(p.Problem)
	}
	// Output: The prompt never names "city", a parameter of the tool "get_weather". Say where its value comes from.
}

func ExampleEventHandler() {
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	sharedKey := "example-shared-key"
	save := func(_ context.Context, sessionID string, t heads.EventType, _ time.Time) error {
		fmt.Println(sessionID, t)
		return nil
	}
	err := func() error {
		handler, err := heads.NewEventHandler(
			heads.SharedKeys(sharedKey),
			func(ctx context.Context, e *heads.Event) error {
				return save(ctx, e.SessionID, e.Type, e.Timestamp.Time)
			},
			heads.WithEventLogger(slog.Default()),
		)
		if err != nil {
			return err
		}
		mux.Handle("/webhooks/heads", handler)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		return
	}
	request := headstest.NewEventRequest(server.URL+"/webhooks/heads", heads.Event{
		Type: heads.EventStartConversation, SessionID: "session-1", Timestamp: heads.Time{Time: time.Now()},
		HeadID: "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
	}, sharedKey)
	response, err := server.Client().Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output:
	// session-1 start_conversation
	// 200
}

func ExampleWebhooksService_Ensure() {
	headID := newHead()
	for range 3 { // at every start of the program
		hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
			HeadID: headID,
			URL:    "https://app.example.com/webhooks/heads",
			Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
		}, heads.EnsureOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(hook.Events(), len(hook.Duplicates))
	}
	hooks, _ := client.Webhooks.List(ctx, headID)
	fmt.Println(len(hooks), "registration")
	// Output:
	// [start_conversation end_conversation] 0
	// [start_conversation end_conversation] 0
	// [start_conversation end_conversation] 0
	// 1 registration
}

func ExampleWebhooksService_KeySource() {
	handle := func(context.Context, *heads.Event) error { return nil }
	handler, err := heads.NewEventHandler(client.Webhooks.KeySource(), handle,
		heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{End: func(ctx context.Context, d heads.DeliveryInfo) {
			fmt.Println(d.Outcome, d.Type)
		}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The emulator plays a session on a head that has a registration.
	headID := newHead()
	server := httptest.NewServer(handler)
	defer server.Close()
	if _, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: headID, URL: server.URL, Events: []heads.EventType{heads.EventStartConversation},
	}, heads.EnsureOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.StartSession(headID).UserMessage("Hello"); err != nil {
		fmt.Println(err)
		return
	}
	delivered, err := srv.WaitDelivery(ctx, func(d headstest.Delivery) bool { return d.Final && d.Event.HeadID == headID })
	fmt.Println(delivered.Status, err)
	// Output:
	// handled start_conversation
	// 200 <nil>
}

// The heads of an organisation are known before their first event arrives.
func ExampleWithHeads() {
	headIDs := []string{newHead(), newHead()}
	keys := client.Webhooks.KeySource(heads.WithHeads(headIDs...))
	handler, err := heads.NewEventHandler(keys, func(context.Context, *heads.Event) error { return nil })
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}

func ExampleEventHandler_Shutdown() {
	handle := func(context.Context, *heads.Event) error { return nil }
	handler, err := heads.NewEventHandler(heads.SharedKeys("example-shared-key"), handle)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Handler: handler}
	{
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := server.Shutdown(ctx) // the http.Server
		ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(err, handler.Shutdown(ctx)); err != nil { // then what its deliveries have left
			log.Print(err)
		}
	}
	fmt.Println("done")
	// Output: done
}
