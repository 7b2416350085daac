// Package nearest finds the name that a misspelt one was meant to be.
//
// The module cmd/headsctl imports it too, and may be built with any later version.
package nearest

import "strings"

// A text can have many wrong names, and long ones. So only this many names, and names of
// this many letters, are compared.
const (
	maxNames   = 1000
	maxLetters = 64
)

// Name returns the name with the fewest differences from a given one, at most a third of
// its letters and at least two, or "" if there is none. It is case-insensitive.
func Name(given string, names []string) string {
	best, fewest := "", 0
	if len(given) > 4*maxLetters {
		return ""
	}
	letters := []rune(strings.ToLower(given))
	for _, name := range names[:min(len(names), maxNames)] {
		other := []rune(strings.ToLower(name))
		limit := max(2, len(other)/3)
		if len(other) > maxLetters || max(len(letters)-len(other), len(other)-len(letters)) > limit {
			continue
		}
		if d := distance(letters, other); d <= limit && d < len(other) && (best == "" || d < fewest) {
			best, fewest = name, d
		}
	}
	return best
}

// Distance returns the number of letters to insert, delete, replace or swap with their
// neighbour to turn a into b.
func Distance(a, b string) int { return distance([]rune(a), []rune(b)) }

func distance(a, b []rune) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
