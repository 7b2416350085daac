package postgres

import (
	"testing"

	"github.com/headsapi/heads-go/inbox/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"opening: timeout":                         setupTimeout,
		"connections: of Open":                     defaultConns,
		"connections: for appends beside a pool":   besidePool,
		"connections: time for each of many hosts": hostTimeout,
		"news: least time between notifications":   notifyInterval,
		"news: how often the tables are looked at": pollInterval,
		"news: pause before listening again":       listenPause,
	})
}
