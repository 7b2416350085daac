package redact

import (
	"bytes"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// MinToken is the length of the shortest token that is masked, in bytes. A shorter one could
// be a word of a message.
const MinToken = 8

// escapes are how a token is written in JSON, with & and < as they are or as \u0026 and \u003c, in
// a quoted text of Go, in URLs and in HTML.
var escapes = []func(string) string{
	func(text string) string { return inside(string(rawjson.String(text))) },
	func(text string) string {
		quoted, _ := json.Marshal(text)
		return inside(string(quoted))
	},
	func(text string) string { return inside(strconv.Quote(text)) },
	url.QueryEscape, url.PathEscape, html.EscapeString,
}

func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

// Token masks an access token by value wherever it is printed, since a text from elsewhere may
// hold it.
type Token struct {
	token   string
	forms   *strings.Replacer // nil masks nothing
	earlier *Token            // of another token; nil for none
}

// NewToken returns a mask of a token, and of those that earlier masks; nil for none.
func NewToken(token string, earlier *Token) *Token {
	token = strings.TrimSpace(token)
	if len(token) < MinToken {
		return &Token{earlier: earlier}
	}
	forms := []string{token}
	for range 2 { // a quoted value may stand in JSON
		for _, form := range forms {
			for _, escape := range escapes {
				forms = append(forms, escape(form))
			}
		}
		slices.Sort(forms)
		forms = slices.Compact(forms)
	}
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Mark)
	}
	return &Token{token: token, forms: strings.NewReplacer(pairs...), earlier: earlier}
}

// Hide returns a text without the token, and without what is left of it where the
// text was shortened.
func (m *Token) Hide(text []byte) []byte {
	if m.earlier != nil {
		text = m.earlier.Hide(text)
	}
	if m.forms == nil {
		return text
	}
	shown := text
	if found := m.forms.Replace(string(text)); found != string(text) {
		shown = []byte(found)
	}
	if !bytes.Contains(shown, []byte(show.CutMark)) {
		return shown
	}
	parts := strings.Split(string(shown), show.CutMark)
	for i := range parts {
		if i > 0 && i < len(parts)-1 && len(parts[i]) >= MinToken && strings.Contains(m.token, parts[i]) {
			parts[i] = Mark // cut at both ends
			continue
		}
		if i < len(parts)-1 {
			parts[i] = m.withoutStart(parts[i])
		}
		if i > 0 {
			parts[i] = m.withoutEnd(parts[i])
		}
	}
	return []byte(strings.Join(parts, show.CutMark))
}

// withoutStart masks the start of the token at the end of a text.
func (m *Token) withoutStart(text string) string {
	for n := len(m.token) - 1; n >= MinToken/2; n-- {
		if rest, found := strings.CutSuffix(text, m.token[:n]); found && utf8.ValidString(rest) {
			return rest + Mark
		}
	}
	return text
}

// withoutEnd masks the end of the token at the start of a text.
func (m *Token) withoutEnd(text string) string {
	for n := len(m.token) - 1; n >= MinToken/2; n-- {
		if rest, found := strings.CutPrefix(text, m.token[len(m.token)-n:]); found {
			return Mark + rest
		}
	}
	return text
}
