package headstest

import (
	"maps"
	"slices"
)

// Routes returns the operations of the emulator.
func Routes() []string { return slices.Sorted(maps.Keys((&core{}).operations())) }
