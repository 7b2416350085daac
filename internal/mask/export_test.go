package mask

import (
	"maps"
	"slices"
)

const (
	MaxEscaped = maxEscaped
	MaxForeign = maxForeign
)

// NamedCharacters returns the names of characters in HTML.
func NamedCharacters() []string { return slices.Collect(maps.Keys(named)) }
