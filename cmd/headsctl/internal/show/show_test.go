package show

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextsFromOutsideAreOneLineThatSteersNothing(t *testing.T) {
	for text, want := range map[string]string{
		" a\r\n\tb ": "a   b", "\x1b[2J\u009b1m\x07": "\ufffd[2J\ufffd1m\ufffd", "a\u202eb\u2066c": "a\ufffdb\ufffdc", "a\xffb": "a\ufffdb",
	} {
		assert.Equal(t, want, Line(text), "%q", text)
	}
	assert.Equal(t, `{"a":"\u202e\u009b"}`, string(JSON([]byte("{\"a\":\"\u202e\u009b\"}"))))
}

func TestClippedTextsHaveTheLimitAtMost(t *testing.T) {
	for text, want := range map[string]string{
		"äöüäö": "äöüäö", "äöüäöü": "äöüä…", "abc de": "abc…", "a\n\x1b b": "a b",
	} {
		assert.Equal(t, want, Clip(text, 5), "%q", text)
	}
}

func TestShellWordsAreOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"a/b.csv": "a/b.csv", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
	} {
		assert.Equal(t, want, ShellWord(text))
	}
}
