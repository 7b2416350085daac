package addresses

import (
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is how the characters of an access URL are written.
type form struct {
	kind   byte // '/' plain, '\\' JSON, '&' HTML, '%' URL
	levels int  // of URL escapes
}

// formOf returns the form in which a slash is written.
func formOf(slash string) form {
	if slash[0] == '%' {
		return form{'%', 1 + strings.Count(slash, "25")}
	}
	return form{slash[0], 0}
}

var (
	jsonUnit = regexp.MustCompile(`^\\+(?:/|u([0-9A-Fa-f]{4}))`)
	htmlUnit = regexp.MustCompile(`^&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});`)
	urlUnit  = regexp.MustCompile(`^%((?:25)*)([0-9A-Fa-f]{2})`)
)

// unit decodes the first character. It returns how many bytes that takes, or 0
// at the end.
func (f form) unit(text []byte) (decoded string, n int) {
	if len(text) == 0 {
		return "", 0
	}
	text = text[:min(len(text), nearby)]
	switch {
	case f.kind == '\\' && text[0] == '\\':
		if found := jsonUnit.FindSubmatch(text); found != nil {
			code, err := strconv.ParseUint(string(found[1]), 16, 32)
			if err != nil {
				return "/", len(found[0])
			}
			return string(rune(code)), len(found[0])
		}
	case f.kind == '&' && text[0] == '&':
		if found := htmlUnit.Find(text); found != nil {
			return html.UnescapeString(string(found)), len(found)
		}
	case f.kind == '%' && text[0] == '%':
		return f.urlUnit(text)
	}
	_, size := utf8.DecodeRune(text)
	return string(text[:size]), size
}

// urlUnit decodes one %XX of the form's level.
func (f form) urlUnit(text []byte) (string, int) {
	found := urlUnit.FindSubmatch(text)
	if found == nil {
		return "%", 1
	}
	// %252F is a slash on the second level, and an escaped %2F on the first.
	if levels := 1 + len(found[1])/2; levels > f.levels {
		return "%", len("%") + len("25")*f.levels
	}
	code, _ := strconv.ParseUint(string(found[2]), 16, 8)
	return string([]byte{byte(code)}), len(found[0])
}

// segment decodes a segment of a path, as far as it can belong to an id. A dot
// belongs to it only within, a percent sign only as part of an escape.
func (f form) segment(text []byte) (decoded string, length int) {
	for {
		unit, n := f.unit(text[length:])
		next, more := f.unit(text[length+n:])
		switch unit {
		case ".":
			if !isOfID(next) {
				return decoded, length
			}
		case "%":
			last, _ := f.unit(text[length+n+more:])
			if !isHex(next) || !isHex(last) {
				return decoded, length
			}
		default:
			if !isOfID(unit) {
				return decoded, length
			}
		}
		decoded += unit
		length += n
	}
}

func isHex(unit string) bool {
	return len(unit) == 1 && strings.Contains("0123456789abcdefABCDEF", unit)
}

// isOfID reports whether a character can belong to an id.
func isOfID(unit string) bool {
	if len(unit) == 1 && unit[0] >= utf8.RuneSelf {
		return true // part of an escaped letter
	}
	r, _ := utf8.DecodeRuneInString(unit)
	return unit != "" && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_~", r))
}

// encode writes a text in the form.
func (f form) encode(text string) string {
	switch f.kind {
	case '&':
		return html.EscapeString(text)
	case '%':
		for range f.levels {
			text = url.QueryEscape(text)
		}
	}
	return text
}

var (
	escapeEnd = regexp.MustCompile(`%(?:25)*([0-9A-Fa-f]{2})$`)
	unicodeAt = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})$`)
	controlAt = regexp.MustCompile(`\\[bfnrt]$`)
)

// isBoundary reports whether a URL can begin behind a text: not within a word,
// a path or a host.
func isBoundary(before []byte) bool {
	if controlAt.Match(before) {
		return true
	}
	last := byte(' ')
	if found := escapeEnd.FindSubmatch(before); found != nil {
		code, _ := strconv.ParseUint(string(found[1]), 16, 8)
		last = byte(code)
	} else if found := unicodeAt.FindSubmatch(before); found != nil {
		code, _ := strconv.ParseUint(string(found[1]), 16, 16)
		return !isWithin(rune(code))
	} else if len(before) > 0 {
		r, _ := utf8.DecodeLastRune(before)
		return !isWithin(r)
	}
	return !isWithin(rune(last))
}

func isWithin(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-/+@", r)
}
