package mask_test

import (
	"testing"

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
