package mask

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A character of ASCII has a few names in HTML, and more numbers.
func TestSecretIsFoundHoweverHTMLSpellsIt(t *testing.T) {
	spellings := slices.Collect(maps.Keys(named))
	require.NotEmpty(t, spellings)
	for c := byte('!'); c < 127; c++ {
		for _, form := range []string{"#%d", "#x%x", "#X%X", "#0%d"} {
			spellings = append(spellings, fmt.Sprintf(form, c))
		}
	}
	for _, s := range spellings {
		plain := "to" + html.UnescapeString("&"+s+";") + "ken"
		require.NotRegexp(t, "&.+;", plain, "package html knows no %s", s)
		assert.Equal(t, Redacted, Secrets("to&"+s+";ken", plain), s)
	}
	for _, text := range []string{"&eacute;", "&#;", "&#x;", "&#233;", "&#xx3d;", "&nothing;"} {
		assert.Equal(t, text, Secrets(text, "é", "="), text)
	}
}
