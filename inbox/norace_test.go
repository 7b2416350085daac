//go:build !race

package inbox_test

const raceEnabled = false
