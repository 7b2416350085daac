package mask

import (
	"bytes"
	"strconv"
	"strings"
)

// maxEscapes is how often a secret may be escaped and still be recognized: %3D, %253D
// and %25253D for =.
const maxEscapes = 3

// Secrets replaces secrets in a text. If the text holds a secret whose characters are
// escaped as in URLs, HTML or JSON, Secrets returns "[redacted]" for the whole text.
// Empty secrets are ignored.
func Secrets(text string, secrets ...string) string { return newFinder(secrets).hide(text) }

// hide is Secrets for the finder's secrets.
func (f *finder) hide(text string) string {
	if f == nil {
		return text
	}
	text = f.replace(text)
	if strings.ContainsAny(text, `%&\`) && f.findsEscaped([]byte(text)) {
		return Redacted
	}
	return text
}

func (f *finder) findsEscaped(text []byte) bool {
	for range maxEscapes {
		plain := unescape(text)
		if len(plain) == len(text) {
			return false // there was nothing to unescape
		}
		text = plain
		for range f.matches(string(text)) {
			return true
		}
	}
	return false
}

// unescape replaces each escape sequence with its character.
func unescape(text []byte) []byte {
	plain := make([]byte, 0, len(text))
	for len(text) > 0 {
		c, size := unescapeFirst(text)
		plain, text = append(plain, c), text[size:]
	}
	return plain
}

// unescapeFirst returns the first character of a text and its length there.
// The sequences are %3D, &#61; &#x3d; &equals;, \u003d and \/.
func unescapeFirst(text []byte) (c byte, size int) {
	rest := text[1:]
	switch text[0] {
	case '%':
		if code, ok := hexByte(rest, 2); ok {
			return code, 3
		}
	case '\\':
		if code, ok := hexByte(bytes.TrimPrefix(rest, []byte("u")), 4); ok && rest[0] == 'u' {
			return code, 6
		}
		if len(rest) > 0 && rest[0] != 'u' {
			return rest[0], 2
		}
	case '&':
		if end := bytes.IndexByte(rest[:min(len(rest), 12)], ';'); end > 0 {
			if c := character(string(rest[:end])); c != 0 {
				return c, end + 2
			}
		}
	}
	return text[0], 1
}

// named are the characters of ASCII that have names in HTML. Package html would add 74 kB to
// every program.
var named = map[string]byte{
	"AMP": '&', "GT": '>', "Hat": '^', "LT": '<', "NewLine": '\n', "QUOT": '"', "Tab": '\t', "UnderBar": '_',
	"amp": '&', "apos": '\'', "ast": '*', "bsol": '\\', "colon": ':', "comma": ',', "commat": '@', "dollar": '$',
	"equals": '=', "excl": '!', "grave": '`', "gt": '>', "lbrace": '{', "lbrack": '[', "lcub": '{', "lowbar": '_',
	"lpar": '(', "lsqb": '[', "lt": '<', "midast": '*', "num": '#', "percnt": '%', "period": '.', "plus": '+',
	"quest": '?', "quot": '"', "rbrace": '}', "rbrack": ']', "rcub": '}', "rpar": ')', "rsqb": ']', "semi": ';',
	"sol": '/', "verbar": '|', "vert": '|',
}

// character returns the character of ASCII that a name or a number in HTML stands for, or 0.
func character(reference string) byte {
	digits, numeric := strings.CutPrefix(reference, "#")
	if !numeric {
		return named[reference]
	}
	base := 10
	if hex := strings.TrimLeft(digits, "xX"); len(hex) == len(digits)-1 {
		digits, base = hex, 16
	}
	code, err := strconv.ParseUint(digits, base, 7)
	if err != nil {
		return 0
	}
	return byte(code)
}

// hexByte reads the given number of hexadecimal digits.
func hexByte(text []byte, digits int) (c byte, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	code := 0
	for _, c := range text[:digits] {
		digit := strings.IndexByte(hexDigits, c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		code = code<<4 | digit
	}
	return byte(code), code <= 0xFF
}

const hexDigits = "0123456789abcdef"
