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

// Secrets replaces secrets in a text, including those whose characters are
// escaped as in URLs, HTML or JSON. Empty secrets are ignored.
func Secrets(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		text = strings.ReplaceAll(text, secret, Redacted)
		if strings.ContainsAny(text, `%&\`) {
			text = maskEscaped(text, secret)
		}
	}
	return text
}

func maskEscaped(text, secret string) string {
	hidden := make([]bool, len(text))
	read := unescaped{text: []byte(text), ends: make([]int, len(text))}
	for i := range read.ends {
		read.ends[i] = i + 1
	}
	for range maxEscapes {
		read = read.unescape()
		for i := bytes.Index(read.text, []byte(secret)); i >= 0; {
			end := i + len(secret)
			for j := read.start(i); j < read.ends[end-1]; j++ {
				hidden[j] = true
			}
			next := bytes.Index(read.text[end:], []byte(secret))
			if next < 0 {
				break
			}
			i = end + next
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(Redacted)
		}
	}
	return b.String()
}

// unescaped is a text together with the place of each character in the original.
type unescaped struct {
	text []byte
	ends []int
}

func (u unescaped) start(i int) int {
	if i == 0 {
		return 0
	}
	return u.ends[i-1]
}

// unescape replaces each escape sequence with its character.
func (u unescaped) unescape() unescaped {
	next := unescaped{text: make([]byte, 0, len(u.text)), ends: make([]int, 0, len(u.text))}
	for i := 0; i < len(u.text); {
		c, size := unescapeFirst(u.text[i:])
		i += size
		next.text = append(next.text, c)
		next.ends = append(next.ends, u.ends[i-1])
	}
	return next
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
