package heads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/headsapi/heads-go"
)

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
