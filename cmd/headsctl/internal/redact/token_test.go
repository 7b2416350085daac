package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsLeftOfAShortenedTokenIsMasked(t *testing.T) {
	m := NewToken("0123456789abcdef", nil)
	for text, want := range map[string]string{
		"a 0123456789abcdef b":       "a [redacted] b",
		"a 01234567…":                "a [redacted]…",
		"…89abcdef b":                "…[redacted] b",
		"0123…cdef":                  "[redacted]…[redacted]",
		"012…def":                    "012…def",
		"a … b":                      "a … b",
		"0123456789abcdef012345678…": "[redacted][redacted]…",
	} {
		assert.Equal(t, want, string(m.Hide([]byte(text))))
	}
	short := NewToken("word", nil)
	require.Equal(t, "a word", string(short.Hide([]byte("a word"))), "a message keeps its words")
}

func TestThePartOfATokenThatIsCutAtBothEndsIsMasked(t *testing.T) {
	mask := NewToken("https://a.example.com/"+strings.Repeat("0123456789", 30), nil)
	assert.Equal(t, "prompt: …"+Mark+"… → …other text…", string(mask.Hide([]byte("prompt: …3456789012345678901…"+" → …other text…"))))
}
