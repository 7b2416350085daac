package redact

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsLeftOfAShortenedTokenIsMasked(t *testing.T) {
	m := NewToken("0123456789abcdef", nil)
	for text, want := range map[string]string{
		"a 0123456789abcdef b": "a [redacted] b", "a 01234567…": "a [redacted]…", "…89abcdef b": "…[redacted] b", "0123…cdef": "[redacted]…[redacted]",
		"012…def": "012…def", "a … b": "a … b", "0123456789abcdef012345678…": "[redacted][redacted]…",
	} {
		assert.Equal(t, want, string(m.Hide([]byte(text))))
	}
	short := NewToken("word", nil)
	require.Equal(t, "a word", string(short.Hide([]byte("a word"))), "a message keeps its words")
}

func TestATokenIsMaskedHoweverItIsWritten(t *testing.T) {
	const token = "a \"word\" & <é\u0080>\\"
	m := NewToken(token, nil)
	inJSON, _ := json.Marshal(token)
	plain := strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(inJSON))
	inError, _ := json.Marshal(map[string]string{"error": fmt.Sprintf("%q is no event", token)})
	for text, want := range map[string]string{
		string(inJSON): `"[redacted]"`, plain: `"[redacted]"`, strconv.Quote(token): `"[redacted]"`, url.QueryEscape(token): Mark, html.EscapeString(token): Mark,
		string(inError): `{"error":"\"[redacted]\" is no event"}`, html.EscapeString(plain): html.EscapeString(`"[redacted]"`),
	} {
		assert.Equal(t, want, string(m.Hide([]byte(text))), text)
	}
}

func TestThePartOfATokenThatIsCutAtBothEndsIsMasked(t *testing.T) {
	mask := NewToken("https://a.example.com/"+strings.Repeat("0123456789", 30), nil)
	assert.Equal(t, "prompt: …"+Mark+"… → …other text…", string(mask.Hide([]byte("prompt: …3456789012345678901…"+" → …other text…"))))
}
