package mask_test

import (
	"testing"
	"unicode"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
)

func TestTextsAreClippedBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 4, ""}, {"four", 4, "four"}, {"fives", 4, "fiv…"}, {"äöüß", 4, "äöüß"}, {"äöüßé", 4, "äöü…"}, {"a  bcd", 3, "a…"},
	} {
		assert.Equal(t, tt.want, mask.Clip(tt.text, tt.limit))
	}
	assert.Equal(t, "a b…", mask.OneLine("a\r\n\tb\x00cdef", 4))
}

func TestOneLineIsSafeToShow(t *testing.T) {
	for given, want := range map[string]string{
		"":                                    "",
		"plain text":                          "plain text",
		" two  spaces ":                       "two spaces",
		"ä 多い 🙂":                              "ä 多い 🙂",
		"a\x9bb\xff\xfec":                     "a\uFFFDb\uFFFDc",
		"a\u009bb\u0085c\u0080d":              "a b c d",
		"a\x1b[31mb\x07\x00c\x7fd":            "a [31mb c d",
		"a\u202eb\u2066c\u200ed\u061ce\u2069": "a b c d e",
		"a\u2028b\u2029c\ufeffd":              "a b c d",
		"\xed\xa0\x80":                        "\uFFFD",
	} {
		assert.Equal(t, want, mask.OneLine(given, 100), "%q", given)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for _, shown := range mask.OneLine("a"+string(r)+"b", 100) {
			if !unicode.IsPrint(shown) || unicode.Is(unicode.Bidi_Control, shown) {
				t.Fatalf("%U is shown", shown)
			}
		}
	}
}
