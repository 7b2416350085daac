package headstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/headsapi/heads-go/internal/mask"
)

// maxToolReply is the longest reply of a tool.
const maxToolReply = 1 << 20

// wantedReply begins the description of a reply in another form.
const wantedReply = `expected {"message": "…"}, `

// At most maxKeys keys of a wrong reply are named, each with at most maxKey
// characters.
const (
	maxKeys = 3
	maxKey  = 40
)

// readReply checks a reply against the contract: status 200, JSON, an object with a
// string message. The problem says what was expected and what came instead.
func readReply(status int, header http.Header, reply []byte) (message, problem string) {
	if status != http.StatusOK {
		return "", fmt.Sprintf("expected status 200, the reply has status %d", status)
	}
	if mt, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || mt != "application/json" {
		return "", fmt.Sprintf("expected the content type application/json, the reply has %s", quoteOr(header.Get("Content-Type"), "none"))
	}
	if len(reply) > maxToolReply {
		return "", fmt.Sprintf(wantedReply+"the reply is larger than %d bytes", maxToolReply)
	}
	if !json.Valid(reply) {
		if len(bytes.TrimSpace(reply)) == 0 {
			return "", wantedReply + "the reply is empty"
		}
		return "", wantedReply + "the reply is not JSON"
	}
	switch v := decode(reply).(type) {
	case map[string]any:
		message, ok := v["message"].(string)
		switch {
		case ok:
			return message, ""
		case hasKey(v, "message"):
			return "", wantedReply + "the message is " + kindOf(v["message"])
		default:
			return "", wantedReply + "the reply has " + keysOf(v)
		}
	default:
		return "", wantedReply + "the reply is " + kindOf(v)
	}
}

// keysOf lists the keys of an object.
func keysOf(v map[string]any) string {
	if len(v) == 0 {
		return "no key"
	}
	var quoted []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		quoted = append(quoted, quoteOr(key, `""`))
	}
	if more := len(quoted) - maxKeys; more > 0 {
		quoted = append(quoted[:maxKeys], fmt.Sprintf("%d more", more))
	}
	if last := len(quoted) - 1; last > 0 {
		return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
	}
	return quoted[0]
}

// quoteOr quotes a short form of a text, without control characters, or returns
// another text for the empty one.
func quoteOr(text, empty string) string {
	if text == "" {
		return empty
	}
	return strconv.Quote(mask.Clip(text, maxKey))
}

// kindOf names the type of a JSON value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
