package mask_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
)

func TestMaskingKeepsOtherTexts(t *testing.T) {
	for _, text := range []string{"", "100% of &amp; and &#61; \\u003d", "%", "%4", "%zz", "&", "&;", "&#;", `\`, `\u`, `\u00`, "a%20b", "é%C3%A9 &eacute; \xff"} {
		assert.Equal(t, text, mask.Secrets(text, "token-of-the-tests", ""))
	}
}

func TestEndOfATextThatIsCutIsNotShown(t *testing.T) {
	token := strings.Repeat("t=", 500)
	escaped := url.QueryEscape(token)
	fit := (mask.MaxForeign + mask.MaxEscaped*len(token)) / len(escaped)
	assert.Equal(t, mask.Redacted, mask.Answer(strings.Repeat(escaped, fit), 200, token))
	assert.Equal(t, mask.Redacted, mask.Answer(strings.Repeat(escaped, fit+1), 200, token))
	for _, form := range []string{token, escaped} {
		before := strings.Repeat("w ", (mask.MaxForeign+mask.MaxEscaped*len(token)-len(form)+2)/2) // the cut is 2 bytes before the end of form
		shown := mask.Answer(before+form, len(before)+len(form), token)
		assert.True(t, strings.HasPrefix(before, strings.TrimSuffix(shown, "…")), "the beginning of the token is left before the cut")
	}
	long := strings.Repeat("word ", mask.MaxForeign)
	assert.Equal(t, strings.Repeat("word ", 40)[:199]+"…", mask.Answer(long, 200, token))
}

func TestBareURLsLoseWhatMayBeSecret(t *testing.T) {
	for text, want := range map[string]string{
		"no URL at all? none":                       "no URL at all? none",
		"https://a.example.com/x":                   "https://a.example.com/x",
		"https://a.example.com/x?k=v&l=w":           "https://a.example.com/x",
		`Get "https://a.example.com/x?k=v": lost`:   `Get "https://a.example.com/x": lost`,
		"see 'https://a.example.com?k=v' and more":  "see 'https://a.example.com' and more",
		"https://a.example.com/x#frag and text":     "https://a.example.com/x and text",
		"https://me:pw@a.example.com/x":             "https://a.example.com/x",
		"https://me@a.example.com?k=v":              "https://a.example.com",
		"https://me:p@w@a.example.com/":             "https://a.example.com/",
		"a https://a.test?k=v b wss://b.test?k=v c": "a https://a.test b wss://b.test c",
		"HTTPS://A.example.com?k=v":                 "HTTPS://A.example.com",
	} {
		assert.Equal(t, want, mask.BareURLs(text))
	}
}
