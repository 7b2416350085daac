package sqlite

import (
	"testing"

	"github.com/headsapi/heads-go/inbox/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"opening: timeout":                         setupTimeout,
		"reading: time for a lock":                 readTimeout,
		"tables of the caller: connections":        tableConns,
		"tables of the caller: time for a lock":    tableTimeout,
		"writing: time for a lock":                 lockTimeout,
		"writing: time for one try":                writeTimeout,
		"writing: time for a place in the line":    lineTimeout,
		"writing: time without the line":           lineDetour,
		"writing: wait between tries":              lockPoll,
		"writing: events in one transaction":       maxGroup,
		"news: how often the file is looked at":    watchInterval,
		"news: how often the tables are looked at": pollInterval,
	})
}
