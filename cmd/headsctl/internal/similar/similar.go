// Package similar finds the name that somebody meant.
package similar

import "strings"

// Hint returns a hint at the known name that is nearest to a wrong one, or "" if none
// is near.
func Hint(wrong string, known []string) string {
	if near := Name(wrong, known); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// The name that somebody meant is looked for among so many, and is so long, since a text can
// have many wrong names.
const (
	maxKnown   = 1000
	maxLetters = 64
)

// Without returns a text without the hint that Hint has made.
func Without(text string) string {
	before, rest, found := strings.Cut(text, " (did you mean ")
	_, after, closed := strings.Cut(rest, "?)")
	if !found || !closed {
		return text
	}
	return before + after
}

// Name returns the known name with the fewest differences, at most a third of its
// letters and at least two, case aside, or "".
func Name(wrong string, known []string) string {
	best, fewest := "", 0
	if len(wrong) > 4*maxLetters {
		return ""
	}
	letters := []rune(strings.ToLower(wrong))
	for _, name := range known[:min(len(known), maxKnown)] {
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

// distance counts the letters to insert, remove, replace or swap with their
// neighbour.
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
