package heads

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callOf calls one method of the client and returns its error.
type callOf func(context.Context, *Client) error

const hookJSON = `{"id":7,"headId":"` + testHead + `","sharedKey":"k"}`

// onTheWire has each operation, once with every form of its request.
var onTheWire = []struct {
	name   string
	call   callOf
	line   string
	body   string
	length string // Content-Length; "" for none
	answer string
}{
	{
		name: "Heads.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Heads.Get(ctx, testHead)
			return err
		},
		line:   "GET /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6 HTTP/1.1",
		answer: `{"id":"3fa85f64-5717-4562-b3fc-2c963f66afa6"}`,
	},
	{
		name: "Heads.Update",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.Update(ctx, testHead, NewHeadUpdate().Voice("elevenlabs", "rachel_eleven_turbo_v2_5"))
			return err
		},
		line:   "PUT /api/v3/head/update HTTP/1.1",
		body:   `{"id":"3fa85f64-5717-4562-b3fc-2c963f66afa6","ttsProvider":"elevenlabs","ttsVoice":"rachel_eleven_turbo_v2_5"}`,
		length: "110",
	},
	{
		name: "HeadVisuals.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.HeadVisuals.Get(ctx, "8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f")
			return err
		},
		line:   "GET /api/v3/head_visual/8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f HTTP/1.1",
		answer: `{"id":"8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f","mode":"default"}`,
	},
	{
		name: "HeadVisuals.Get with an id that has to be escaped",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.HeadVisuals.Get(ctx, "a/b c?d#e%2F..é")
			return err
		},
		line:   "GET /api/v3/head_visual/a%2Fb%20c%3Fd%23e%252F..%C3%A9 HTTP/1.1",
		answer: `{"id":"a/b c?d#e%2F..é","mode":"default"}`,
	},
	{
		name: "Heads.SetVideoStreaming on",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.SetVideoStreaming(ctx, testHead, true)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/video-streaming?videoStreaming=true HTTP/1.1",
		length: "0",
	},
	{
		name: "Heads.SetVideoStreaming off",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.SetVideoStreaming(ctx, testHead, false)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/video-streaming?videoStreaming=false HTTP/1.1",
		length: "0",
	},
	{
		name: "ConversationSettings.Replace",
		call: func(ctx context.Context, c *Client) error {
			err := c.ConversationSettings.Replace(ctx, testHead, &ConversationSettings{Tools: []Tool{{
				Name: "weather", Description: "Tells the weather", URL: "https://tools.example.com/weather",
				Parameters: []ToolParameter{{Name: "city", Type: "string", Description: "Where"}},
			}}})
			return err
		},
		line: "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/conversation-settings HTTP/1.1",
		body: `{"conversationSettings":{"tools":[{"name":"weather","description":"Tells the weather",` +
			`"parameters":[{"name":"city","type":"string","description":"Where"}],"url":"https://tools.example.com/weather"}]}}`,
		length: "200",
	},
	{
		name: "Webhooks.Create",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com/heads", Events: []EventType{EventEndConversation}})
			return err
		},
		line: "POST /api/v3/head-events HTTP/1.1",
		body: `{"headId":"3fa85f64-5717-4562-b3fc-2c963f66afa6","webhookUrl":"https://hooks.example.com/heads",` +
			`"startConversation":false,"endConversation":true,"timeoutConversation":false,"inactivityWarning":false}`,
		length: "199",
		answer: `{"sharedKey":"k"}`,
	},
	{
		name: "Webhooks.List",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.List(ctx, testHead)
			return err
		},
		line:   "GET /api/v3/head-events?headId=3fa85f64-5717-4562-b3fc-2c963f66afa6 HTTP/1.1",
		answer: `[` + hookJSON + `]`,
	},
	{
		name: "Webhooks.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.Get(ctx, 9007199254740993) // no float64 holds this
			return err
		},
		line:   "GET /api/v3/head-events/9007199254740993 HTTP/1.1",
		answer: strings.Replace(hookJSON, "7", "9007199254740993", 1),
	},
	{
		name: "Webhooks.Update",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, false))
			return err
		},
		line:   "PATCH /api/v3/head-events/7 HTTP/1.1",
		body:   `{"endConversation":false}`,
		length: "25",
	},
	{
		name: "Webhooks.Delete",
		call: func(ctx context.Context, c *Client) error { return c.Webhooks.Delete(ctx, 7) },
		line: "DELETE /api/v3/head-events/7 HTTP/1.1",
	},
	{
		name: "Webhooks.SetDelivery on",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.SetDelivery(ctx, testHead, true)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/enable-events?enableEvents=true HTTP/1.1",
		length: "0",
	},
	{
		name: "Webhooks.SetDelivery off",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.SetDelivery(ctx, testHead, false)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/enable-events?enableEvents=false HTTP/1.1",
		length: "0",
	},
}

func TestOperationsOnTheWire(t *testing.T) {
	var named []string
	for _, tt := range onTheWire {
		name, _, _ := strings.Cut(tt.name, " ")
		named = append(named, name)
		t.Run(tt.name, func(t *testing.T) {
			server := serveWire(t, http.StatusOK, tt.answer)
			require.NoError(t, tt.call(t.Context(), server.client(t)))
			sent := <-server.requests
			assert.Equal(t, tt.line, sent.line)
			assert.Equal(t, tt.body, sent.body)
			header := http.Header{
				"Host":            {server.addr},
				"User-Agent":      {"heads-go/" + Version},
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // net/http's own
				"Authorization":   {"Bearer " + pathToken},
			}
			if tt.length != "" {
				header.Set("Content-Length", tt.length)
			}
			if tt.body != "" {
				header.Set("Content-Type", "application/json")
			}
			assert.Equal(t, header, sent.header)
			assert.Empty(t, server.requests, "one call is one request")
		})
	}
	for _, name := range declaredOperations(t) {
		assert.Contains(t, named, name)
	}
}

// undescribed are the operations whose answer the contract does not describe.
var undescribed = map[string]callOf{
	"Heads.Update": func(ctx context.Context, c *Client) error {
		return c.Heads.Update(ctx, testHead, NewHeadUpdate().Name("n"))
	},
	"Heads.SetVideoStreaming": func(ctx context.Context, c *Client) error {
		return c.Heads.SetVideoStreaming(ctx, testHead, true)
	},
	"ConversationSettings.Replace": func(ctx context.Context, c *Client) error {
		return c.ConversationSettings.Replace(ctx, testHead, &ConversationSettings{})
	},
	"Webhooks.Update": func(ctx context.Context, c *Client) error {
		return c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, true))
	},
	"Webhooks.SetDelivery": func(ctx context.Context, c *Client) error {
		return c.Webhooks.SetDelivery(ctx, testHead, true)
	},
}

func TestUndescribedAnswersAreSuccessWhateverTheyHold(t *testing.T) {
	for name, call := range undescribed {
		for _, body := range []string{"", "true", "false", "null", "done", `{"id":5}`, "[1,", "<html>"} {
			t.Run(name+" "+strconv.Quote(body), func(t *testing.T) {
				require.NoError(t, call(t.Context(), serveWire(t, http.StatusAccepted, body).client(t)))
			})
		}
	}
	t.Run("Webhooks.Delete", func(t *testing.T) {
		for _, body := range []string{"", "true", "gone"} {
			assert.NoError(t, serveWire(t, http.StatusOK, body).client(t).Webhooks.Delete(t.Context(), 7))
		}
	})
}

// described are the operations whose answer the contract describes.
var described = map[string]callOf{
	"Heads.Get": func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Get(ctx, testHead)
		return err
	},
	"HeadVisuals.Get": func(ctx context.Context, c *Client) error {
		_, err := c.HeadVisuals.Get(ctx, "v")
		return err
	},
	"Webhooks.Create": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}})
		return err
	},
	"Webhooks.List": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.List(ctx, testHead)
		return err
	},
	"Webhooks.Get": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Get(ctx, 7)
		return err
	},
}

func TestDescribedAnswersMustHaveTheirShape(t *testing.T) {
	for name, call := range described {
		for _, body := range []string{"", "  \n", "true", "5", `"text"`, "null", "done", `{"id":`, `{"id":"x"} x`, "<html>"} {
			if name == "Webhooks.List" && body == "null" {
				continue // an empty list
			}
			t.Run(name+" "+strconv.Quote(body), func(t *testing.T) {
				err := call(t.Context(), serveWire(t, http.StatusOK, body).client(t))
				var wrong *DecodeError
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, name, wrong.Operation)
				assert.Equal(t, body, string(wrong.Body.Bytes()))
				assert.NotErrorIs(t, err, ErrInvalid)
			})
		}
	}
	t.Run("an object is no list", func(t *testing.T) {
		_, err := serveWire(t, http.StatusOK, `{"id":7}`).client(t).Webhooks.List(t.Context(), testHead)
		assert.ErrorAs(t, err, new(*DecodeError))
	})
	for name, call := range described {
		if name == "Webhooks.List" {
			continue
		}
		t.Run(name+": a list is no object", func(t *testing.T) {
			assert.ErrorAs(t, call(t.Context(), serveWire(t, http.StatusOK, `[{"id":7}]`).client(t)), new(*DecodeError))
		})
	}
}

// headCalls are the methods that take a head's id.
var headCalls = map[string]func(context.Context, *Client, string) error{
	"Heads.Get": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Get(ctx, id)
		return err
	},
	"Heads.Update": func(ctx context.Context, c *Client, id string) error {
		err := c.Heads.Update(ctx, id, NewHeadUpdate().Name("n"))
		return err
	},
	"Heads.Modify": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Modify(ctx, id, func(*Head) error { return nil })
		return err
	},
	"Heads.SetVideoStreaming": func(ctx context.Context, c *Client, id string) error {
		err := c.Heads.SetVideoStreaming(ctx, id, true)
		return err
	},
	"Heads.Examine": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Examine(ctx, id)
		return err
	},
	"Heads.PlanStreaming": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.PlanStreaming(ctx, id, ConvertOptions{})
		return err
	},
	"Heads.ConvertToStreaming": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.ConvertToStreaming(ctx, id, ConvertOptions{})
		return err
	},
	"Heads.ConvertToLegacy": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.ConvertToLegacy(ctx, id, ConvertOptions{})
		return err
	},
	"ConversationSettings.Get": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.Get(ctx, id)
		return err
	},
	"ConversationSettings.Replace": func(ctx context.Context, c *Client, id string) error {
		err := c.ConversationSettings.Replace(ctx, id, &ConversationSettings{})
		return err
	},
	"ConversationSettings.Modify": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.Modify(ctx, id, func(*ConversationSettings) error { return nil })
		return err
	},
	"ConversationSettings.SetTools": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.SetTools(ctx, id)
		return err
	},
	"ConversationSettings.PutTool": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.PutTool(ctx, id, weatherTool())
		return err
	},
	"ConversationSettings.RemoveTool": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.RemoveTool(ctx, id, "weather")
		return err
	},
	"Webhooks.Create": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: id, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}})
		return err
	},
	"Webhooks.List": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.List(ctx, id)
		return err
	},
	"Webhooks.Update": func(ctx context.Context, c *Client, id string) error {
		err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().HeadID(id))
		return err
	},
	"Webhooks.SetDelivery": func(ctx context.Context, c *Client, id string) error {
		err := c.Webhooks.SetDelivery(ctx, id, true)
		return err
	},
	"Webhooks.Ensure": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.Ensure(ctx, WebhookSpec{HeadID: id, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}}, EnsureOptions{})
		return err
	},
}

// The test fails with the name of a new method that is not tested.
func TestEveryMethodThatTakesAHeadIDIsTested(t *testing.T) {
	api, err := os.ReadFile("testdata/api.txt")
	require.NoError(t, err)
	methods := regexp.MustCompile(`(?m)^heads: func \(s \*(\w+)Service\) (\w+)\(ctx context\.Context, headID string`).FindAllStringSubmatch(string(api), -1)
	require.NotEmpty(t, methods)
	for _, m := range methods {
		assert.Contains(t, headCalls, m[1]+"."+m[2])
	}
}

func TestHeadIDMustBeAUUID(t *testing.T) {
	tests := []struct{ name, id, says string }{
		{"empty", "", "is blank; give the UUID in the head's id field"},
		{"a blank", " ", "is blank; give the UUID"},
		{"a public id", "li-28379", `"li-28379" is a public id; use the UUID in the head's id field`},
		{"an organisation's public id", "MyOrg-1234", `"MyOrg-1234" is a public id`},
		{"a public id with two dashes", "my-org-1234", `"my-org-1234" is a public id`},
		{"an address", "https://chat.example.com/MyOrg-1234/li-28379?api_key=canary-key", "is a URL or a path"},
		{"the end of an address", "MyOrg-1234/li-28379", "is a URL or a path"},
		{"a public id with its key", "li-28379?api_key=canary-key", "is a URL or a path"},
		{"a path", "../head-events/1", "is a URL or a path"},
		{"a step in a path", ".", `"." is not a UUID`},
		{"two steps in a path", "..", `".." is not a UUID`},
		{"white space before it", " " + testHead, "has white space around it; trim it"},
		{"a line break behind it", testHead + "\n", "has white space around it; trim it"},
		{"without dashes", "3fa85f6457174562b3fc2c963f66afa6", "is not a UUID"},
		{"in braces", "{" + testHead + "}", "is not a UUID"},
		{"as a URN", "urn:uuid:" + testHead, "is not a UUID"},
		{"a digit short", testHead[:35], "is not a UUID"},
		{"a digit too many", testHead + "a", "is not a UUID"},
		{"no hexadecimal", "3fa85f64-5717-4562-b3fc-2c963f66afag", "is not a UUID"},
		{"dashes elsewhere", "3fa85f645-717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"a digit for a dash", "3fa85f64a5717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"wide digits", "３fa85f64-5717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"a placeholder", "<HEAD_ID>", "is not a UUID"},
	}
	service := newFakeAPI(t, nil)
	for name, call := range headCalls {
		for _, tt := range tests {
			t.Run(name+": "+tt.name, func(t *testing.T) {
				err := call(t.Context(), service.Client, tt.id)
				faults := invalidErrors(t, err)
				require.Len(t, faults, 1)
				assert.Equal(t, "head id", faults[0].Field)
				assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, tt.says)
				assert.NotContains(t, err.Error(), "canary")
				assert.Empty(t, service.since())
			})
		}
	}
}

func TestHeadIDMayHaveAnyCase(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"GET /head/3FA85F64-5717-4562-B3FC-2C963F66AFA6": `{"id":"` + testHead + `","name":"n"}`})
	head, err := service.Heads.Get(t.Context(), "3FA85F64-5717-4562-B3FC-2C963F66AFA6")
	require.NoError(t, err)
	assert.Equal(t, "n", head.Name)
}

func TestErrorsOfTheServiceNameTheOperation(t *testing.T) {
	calls := map[string]callOf{
		"Webhooks.Delete": func(ctx context.Context, c *Client) error { return c.Webhooks.Delete(ctx, 7) },
	}
	for name, call := range described {
		calls[name] = call
	}
	for name, call := range undescribed {
		calls[name] = func(ctx context.Context, c *Client) error {
			err := call(ctx, c)
			return err
		}
	}
	assert.ElementsMatch(t, declaredOperations(t), slices.Collect(maps.Keys(calls)), "every operation is described or undescribed")
	body, err := json.Marshal(map[string]any{"statusCode": 409, "message": "wrong order"})
	require.NoError(t, err)
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context(), serveWire(t, http.StatusConflict, string(body)).client(t))
			var refused *Error
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, ErrConflict)
			assert.Equal(t, name, refused.Operation)
			assert.Equal(t, "wrong order", refused.Message)
			assert.NotContains(t, refused.Path, prefix)
		})
	}
}

// declaredOperations returns the names in the package's calls of transport.NewOperation.
func declaredOperations(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`NewOperation\("([^"]+)"`).FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
