package headstest

import (
	"maps"
	"slices"
)

// Routes returns the operations of the emulator.
func Routes() []string { return slices.Sorted(maps.Keys((&core{}).operations())) }

// Patterns returns the patterns for which a fault can be injected.
func Patterns() []string { return patterns }
