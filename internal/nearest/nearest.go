// Package nearest finds the name that a misspelt one was meant to be.
package nearest

import "strings"

// Name returns the name that is most similar to a given one, or "" if none is
// similar. It is case-insensitive.
func Name(given string, names []string) string {
	best, distance := "", max(2, len(given)/3)+1
	for _, name := range names {
		if d := Distance(strings.ToLower(given), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// Distance returns the number of bytes to insert, delete or replace to turn a
// into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
