package main

import (
	"bytes"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// minToken is how long an access token is at least, in bytes. A shorter one can't be
// told from the words of a message.
const minToken = 8

const cutMark = "…" // where a text was shortened

// tokenMask takes an access token out of what is printed, by value: a text from
// elsewhere may hold it.
type tokenMask struct {
	token   string
	forms   *strings.Replacer // nil masks nothing
	earlier *tokenMask        // of another token; nil for none
}

func newTokenMask(token string) *tokenMask {
	token = strings.TrimSpace(token)
	if len(token) < minToken {
		return &tokenMask{}
	}
	quoted, _ := json.Marshal(token)
	forms := []string{token, string(quoted[1 : len(quoted)-1]), url.QueryEscape(token), url.PathEscape(token), html.EscapeString(token)}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, redacted)
	}
	return &tokenMask{token: token, forms: strings.NewReplacer(pairs...)}
}

// hide returns a text without the token, and without what is left of it where the
// text was shortened.
func (m *tokenMask) hide(text []byte) []byte {
	if m.earlier != nil {
		text = m.earlier.hide(text)
	}
	if m.forms == nil {
		return text
	}
	shown := text
	if found := m.forms.Replace(string(text)); found != string(text) {
		shown = []byte(found)
	}
	if !bytes.Contains(shown, []byte(cutMark)) {
		return shown
	}
	parts := strings.Split(string(shown), cutMark)
	for i := range parts {
		if i < len(parts)-1 {
			parts[i] = m.withoutStart(parts[i])
		}
		if i > 0 {
			parts[i] = m.withoutEnd(parts[i])
		}
	}
	return []byte(strings.Join(parts, cutMark))
}

// withoutStart masks the start of the token at the end of a text.
func (m *tokenMask) withoutStart(text string) string {
	for n := len(m.token) - 1; n >= minToken/2; n-- {
		if rest, found := strings.CutSuffix(text, m.token[:n]); found && utf8.ValidString(rest) {
			return rest + redacted
		}
	}
	return text
}

// withoutEnd masks the end of the token at the start of a text.
func (m *tokenMask) withoutEnd(text string) string {
	for n := len(m.token) - 1; n >= minToken/2; n-- {
		if rest, found := strings.CutPrefix(text, m.token[len(m.token)-n:]); found {
			return redacted + rest
		}
	}
	return text
}

// hideToken masks the token, too, in whatever is printed from now on.
func (a *app) hideToken(token string) {
	m := newTokenMask(token)
	m.earlier = a.tokenMask
	a.tokenMask = m
	for _, o := range []*output{a.stdout, a.stderr} {
		o.mu.Lock()
		o.mask = m
		o.mu.Unlock()
	}
}

// hideTokenFile masks the token of --token-file in the errors of a command that has
// not read it yet.
func (a *app) hideTokenFile() {
	if a.tokenFile == "" {
		return
	}
	if token, err := a.readSecret("--token-file", a.tokenFile); err == nil {
		a.hideToken(token)
	}
}
