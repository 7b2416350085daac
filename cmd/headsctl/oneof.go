package main

import (
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
)

// oneOf refuses a text that is none of the known ones.
func oneOf(what, text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	return usage("%s %q is unknown%s; use one of %s", what, show.Line(text), similar.Hint(text, known), strings.Join(known, ", "))
}
