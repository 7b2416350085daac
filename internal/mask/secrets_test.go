package mask_test

import (
	"fmt"
	"html"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A character of ASCII has a few names in HTML, and more numbers.
func TestSecretIsFoundHoweverHTMLSpellsIt(t *testing.T) {
	spellings := mask.NamedCharacters()
	require.NotEmpty(t, spellings)
	for c := byte('!'); c < 127; c++ {
		for _, form := range []string{"#%d", "#x%x", "#X%X", "#0%d"} {
			spellings = append(spellings, fmt.Sprintf(form, c))
		}
	}
	for _, s := range spellings {
		plain := "to" + html.UnescapeString("&"+s+";") + "ken"
		require.NotRegexp(t, "&.+;", plain, "package html knows no %s", s)
		assert.Equal(t, mask.Redacted, mask.Secrets("to&"+s+";ken", plain), s)
	}
	for _, text := range []string{"&eacute;", "&#;", "&#x;", "&#233;", "&#xx3d;", "&nothing;"} {
		assert.Equal(t, text, mask.Secrets(text, "é", "="), text)
	}
}
