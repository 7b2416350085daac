package mask

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMaskingKeepsOtherTexts(t *testing.T) {
	for _, text := range []string{"", "100% of &amp; and &#61; \\u003d", "%", "%4", "%zz", "&", "&;", "&#;", `\`, `\u`, `\u00`, "a%20b", "é%C3%A9 &eacute; \xff"} {
		assert.Equal(t, text, Secrets(text, "token-of-the-tests", ""))
	}
}

func TestEndOfATextThatIsCutIsNotShown(t *testing.T) {
	token := strings.Repeat("t=", 500)
	escaped := url.QueryEscape(token)
	fit := (maxForeign + maxEscaped*len(token)) / len(escaped)
	assert.Equal(t, Redacted, Answer(strings.Repeat(escaped, fit), 200, token))
	assert.Equal(t, Redacted, Answer(strings.Repeat(escaped, fit+1), 200, token))
	for _, form := range []string{token, escaped} {
		before := strings.Repeat("w ", (maxForeign+maxEscaped*len(token)-len(form)+2)/2) // the cut is 2 bytes before the end of form
		shown := Answer(before+form, len(before)+len(form), token)
		assert.True(t, strings.HasPrefix(before, strings.TrimSuffix(shown, "…")), "the beginning of the token is left before the cut")
	}
	long := strings.Repeat("word ", maxForeign)
	assert.Equal(t, strings.Repeat("word ", 40)[:199]+"…", Answer(long, 200, token))
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
		assert.Equal(t, want, BareURLs(text))
	}
}

// escapes are the ways in which a service or proxy may quote a text.
var escapes = map[string]func(string) string{
	"plain":                 func(s string) string { return s },
	"query":                 url.QueryEscape,
	"path":                  url.PathEscape,
	"query, lower case":     func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"query, twice":          func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"query, three times":    func(s string) string { return url.QueryEscape(url.QueryEscape(url.QueryEscape(s))) },
	"every byte in a query": func(s string) string { return each(s, "%%%02x") },
	"HTML":                  html.EscapeString,
	"HTML, twice":           func(s string) string { return html.EscapeString(html.EscapeString(s)) },
	"HTML, decimal":         func(s string) string { return each(s, "&#%d;") },
	"HTML, padded":          func(s string) string { return each(s, "&#x%04X;") },
	"HTML, named":           strings.NewReplacer("=", "&equals;", "+", "&plus;", "/", "&sol;", ".", "&period;", "&", "&amp;").Replace,
	"query in HTML":         func(s string) string { return html.EscapeString(url.QueryEscape(s)) },
	"HTML in a query":       func(s string) string { return url.QueryEscape(html.EscapeString(s)) },
	"JSON":                  func(s string) string { raw, _ := json.Marshal(s); return strings.Trim(string(raw), `"`) },
	"JSON, every byte":      func(s string) string { return each(s, `\u%04x`) },
	"JSON, slashes":         strings.NewReplacer(`/`, `\/`).Replace,
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func TestAnswerMasksTheTokenHoweverItIsEscaped(t *testing.T) {
	for _, token := range []string{"abc+def/ghi==", `a<b>&"c'd`, "abc%41def", "abcdef", "eyJ0.eyJ1-_~.x=", `a\u0041b`} {
		for name, escape := range escapes {
			if name == "query, lower case" && strings.ToLower(token) != token {
				continue
			}
			want := "before [redacted] [redacted]; after"
			if escape(token) != token {
				want = "[redacted]"
			}
			assert.Equal(t, want, Answer("before "+escape(token)+" "+escape(token)+"; after", 200, token), "%s, %s", token, name)
		}
	}
}

func TestAnswerMasksWhatFollowsAQuestionMark(t *testing.T) {
	for sent, want := range map[string]string{
		"see https://a.example.com/x?api_key=hush-hush for more":      "see https://a.example.com/x?[redacted] for more",
		"no route /head/1?key=hush-hush":                              "no route /head/1?[redacted]",
		"?hush-hush":                                                  "?[redacted]",
		`"/x?k=hush-hush","/y?k=hush-hush" and more`:                  `"/x?[redacted] and more`,
		"/x?a=1&amp;k=hush-hush&#x26;l=hush-hush;":                    "/x?[redacted]",
		"https%3A%2F%2Fa.example.com%2Fx%3Fapi_key%3Dhush-hush more":  "https%3A%2F%2Fa.example.com%2Fx%3F[redacted] more",
		"%253fk%253dhush-hush":                                        "%253f[redacted]",
		"x&#63;k=hush-hush y&#x3F;k=hush-hush z&quest;k=hush-hush":    "x&#63;[redacted] y&#x3F;[redacted] z&quest;[redacted]",
		"https://me:hush-hush@a.example.com/":                         "https://a.example.com/",
		"https://a.example.com/cb#access_token=hush-hush was refused": "https://a.example.com/cb#[redacted] was refused",
		"Is it there? No.":                                            "Is it there? No.",
		"what ?":                                                      "what ?",
		"ticket #17":                                                  "ticket #17",
		"a\nb?k=hush-hush\nc":                                         "a b?[redacted] c",
	} {
		assert.Equal(t, want, Answer(sent, 200, "token-of-the-tests"), sent)
	}
}
