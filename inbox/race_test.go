//go:build race

package inbox_test

const raceEnabled = true
