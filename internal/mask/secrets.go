package mask

import (
	"bytes"
	"html"
	"strconv"
	"strings"
)

// maxEscapes is how often a secret may be escaped and still be recognized: %3D, %253D
// and %25253D for =.
const maxEscapes = 3

// Secrets replaces secrets in a text. If the text holds a secret whose characters are
// escaped as in URLs, HTML or JSON, Secrets returns "[redacted]" for the whole text.
// Empty secrets are ignored.
func Secrets(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		text = strings.ReplaceAll(text, secret, Redacted)
		if strings.ContainsAny(text, `%&\`) && holdsEscaped([]byte(text), []byte(secret)) {
			return Redacted
		}
	}
	return text
}

func holdsEscaped(text, secret []byte) bool {
	for range maxEscapes {
		text = unescape(text)
		if bytes.Contains(text, secret) {
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
			if meant := html.UnescapeString(string(text[:end+2])); len(meant) == 1 {
				return meant[0], end + 2
			}
		}
	}
	return text[0], 1
}

// hexByte reads the given number of hexadecimal digits.
func hexByte(text []byte, digits int) (c byte, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	code, err := strconv.ParseUint(string(text[:digits]), 16, 8)
	return byte(code), err == nil
}
