package heads

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reads are the operations whose answer is a document, by the way in which its
// error must name them.
var reads = map[string]func(*testing.T, *Client) error{
	"Heads.Get": func(t *testing.T, c *Client) error {
		_, err := c.Heads.Get(t.Context(), testHead)
		return err
	},
	"HeadVisuals.Get": func(t *testing.T, c *Client) error {
		_, err := c.HeadVisuals.Get(t.Context(), "v-1")
		return err
	},
	"Webhooks.Get": func(t *testing.T, c *Client) error {
		_, err := c.Webhooks.Get(t.Context(), 7)
		return err
	},
	"Webhooks.List": func(t *testing.T, c *Client) error {
		_, err := c.Webhooks.List(t.Context(), testHead)
		return err
	},
	"Webhooks.Create": func(t *testing.T, c *Client) error {
		_, err := c.Webhooks.Create(t.Context(), hookSpec())
		return err
	},
}

// goTypes are words of Go that mean nothing to someone who reads about JSON.
var goTypes = regexp.MustCompile(`\b(bool|u?int[0-9]*|float64|struct|map|heads|webhookList|createdWebhook|Go)\b|\[\]|\*`)

func TestDecodeErrorsUseTheWordsOfJSON(t *testing.T) {
	values := map[string]string{"string": `"x"`, "number": "5", "boolean": "true", "array": "[1]", "object": `{"a":1}`, "list of records": `[{"id":[]}]`, "null": "null"}
	for operation, read := range reads {
		for kind, value := range values {
			documents := []string{value}
			for _, field := range []string{"id", "name", "promptConfig", "phrases", "customWords", "semanticThreshold", "videoStreaming", "conversationSettings", "voiceflowApiKey",
				"mode", "headId", "webhookUrl", "sharedKey", "startConversation", "createdAt"} {
				record := fmt.Sprintf("{%q:%s}", field, value)
				documents = append(documents, record, "["+record+"]")
			}
			for _, document := range documents {
				err := read(t, newTestClient(t, memoryURL, newScript(answer(200, document))))
				if err == nil {
					continue // an empty list, or the form of a create
				}
				var wrong *DecodeError
				require.ErrorAs(t, err, &wrong, "%s %s %s", operation, kind, document)
				text := strings.TrimPrefix(err.Error(), "heads: "+operation+": ")
				assert.NotRegexp(t, goTypes, text, document)
			}
		}
	}
	for document, says := range map[string]string{
		`{"id":5}`:     "it is a JSON object; want a JSON array",
		`5`:            "it is a JSON number; want a JSON array",
		`[[]]`:         "it is a JSON array; want a JSON object",
		`[{"id":"x"}]`: `field "id" holds a JSON string; want a JSON number without a fraction`,
	} {
		assert.ErrorContains(t, reads["Webhooks.List"](t, newTestClient(t, memoryURL, newScript(answer(200, document)))), says)
	}
	response := &Response{Body: NewRaw([]byte(`{"a":"x","b":["x"]}`)), operation: opDo}
	for _, v := range []any{new([]Webhook), new(map[string]int), new(map[string][]float64), new(struct{ A bool }), new(struct{ A *[]byte }), new(struct{ B [2]uint8 }), new(struct{ B []struct{ C int } })} {
		err := response.Decode(v)
		if err == nil {
			continue
		}
		text := strings.TrimPrefix(err.Error(), "heads: Client.Do: ")
		assert.NotRegexp(t, goTypes, text, "%T", v)
	}
}

// hostileAnswers are answers of someone who wants to break the client.
var hostileAnswers = map[string]string{
	"nothing": "", "space": " \r\n", "null": "null", "true": "true", "a number": "17", "a string": `"` + testHead + `"`, "an array": `[]`, "an empty object": `{}`,
	"an array of the head":   `[{"id":"` + testHead + `"}]`,
	"a wrapped head":         `{"data":{"id":"` + testHead + `"}}`,
	"another head":           `{"id":"` + otherID + `"}`,
	"id twice":               `{"id":"` + testHead + `","id":"` + testHead + `"}`,
	"two ids":                `{"id":"` + otherID + `","id":"` + testHead + `"}`,
	"two ids, one escaped":   `{"id":"` + otherID + `","\u0069d":"` + testHead + `"}`,
	"id in another case":     `{"ID":"` + testHead + `"}`,
	"a long s for an s":      `{"i\u0064\u017f":"` + testHead + `"}`,
	"id with a NUL":          `{"id":"` + testHead + `\u0000"}`,
	"id with white space":    `{"id":" ` + testHead + `"}`,
	"id in a list":           `{"id":["` + testHead + `"]}`,
	"id as a number":         `{"id":1e999}`,
	"an id inside":           `{"organisation":{"id":"` + testHead + `"}}`,
	"broken off":             `{"id":"` + testHead + `"`,
	"broken off in a string": `{"id":"` + testHead,
	"two documents":          `{"id":"` + testHead + `"}{"id":"` + testHead + `"}`,
	"text after it":          `{"id":"` + testHead + `"} <!-- x -->`,
	"a trailing comma":       `{"id":"` + testHead + `",}`,
	"single quotes":          `{'id':'` + testHead + `'}`,
	"a comment":              `{"id":"` + testHead + `"/*x*/}`,
	"a byte order mark":      "\ufeff" + `{"id":"` + testHead + `"}`,
	"UTF-16":                 "\xff\xfe{\x00\"\x00i\x00d\x00",
	"not a number":           `{"id":"` + testHead + `","semanticThreshold":NaN}`,
	"a page":                 "<html><body>maintenance</body></html>",
	"10,001 arrays":          `{"id":"` + testHead + `","x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
	"arrays without end":     strings.Repeat("[", 200_000),
	"objects without end":    strings.Repeat(`{"a":`, 100_000),
	"a name twice inside":    `{"id":"` + testHead + `","conversationSettings":{"tools":[],"tools":[]}}`,
}

// No such answer is taken for the head, and each is refused in no time.
func TestHostileAnswersAreDecodeErrors(t *testing.T) {
	require.Len(t, hostileAnswers, 36)
	for name, body := range hostileAnswers {
		t.Run(name, func(t *testing.T) {
			sent := newScript(answer(http.StatusOK, body))
			client := newTestClient(t, memoryURL, sent)
			begun := time.Now()
			_, err := client.Heads.Modify(t.Context(), testHead, func(h *Head) error {
				h.Name = "changed"
				return nil
			})
			assert.Less(t, time.Since(begun), 5*time.Second)
			var wrong *DecodeError
			require.ErrorAs(t, err, &wrong)
			assertClean(t, err.Error())
			assert.Less(t, len(err.Error()), 300)
			assert.LessOrEqual(t, wrong.Body.Len(), maxDecodeBody)
			assert.Equal(t, 1, sent.sent(), "nothing is written, and nothing is asked again")
			for _, read := range reads {
				if err := read(t, newTestClient(t, memoryURL, newScript(answer(http.StatusOK, body)))); err != nil {
					require.ErrorAs(t, err, &wrong)
					assertClean(t, err.Error())
				}
			}
		})
	}
}
