package headstest

import (
	"maps"
	"slices"
)

// Routes are the operations that the emulator has.
func Routes() []string { return slices.Sorted(maps.Keys((&core{}).operations())) }
