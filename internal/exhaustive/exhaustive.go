// Package exhaustive tells tests whether to try every case or a sample. They try all where
// the environment variable CI is set, as .ci/run sets it.
//
// It is for tests alone.
package exhaustive

import "os"

var all = os.Getenv("CI") != ""

// Count returns the number of rounds or cases: sample, or every if CI is set.
func Count(sample, every int) int {
	if all {
		return every
	}
	return sample
}

// Takes reports whether to try case i: every case if CI is set, or else one of nth.
func Takes(i, nth int) bool { return all || i%nth == 0 }
