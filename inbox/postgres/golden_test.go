package postgres

import (
	"testing"

	"github.com/headsapi/heads-go/inbox/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"opening: timeout":                                            setupTimeout,
		"connections: of Open":                                        defaultConns,
		"connections: for appends beside a pool":                      besidePool,
		"connections: for the tables of the caller":                   tableConns,
		"connections: life of one of these":                           tableConnLife,
		"connections: time for each of many hosts":                    hostTimeout,
		"storing: time for a session that another transaction has":    lockTimeout,
		"opening: pause before an index again":                        indexPause,
		"opening: longest such pause":                                 longestIndexPause,
		"connections: a server that answers nothing is noticed after": silence,
		"connections: an idle transaction ends after":                 idleTimeout,
		"connections: how often those of such a server are closed":    resetInterval,
		"news: timeout of a notification":                             notifyTimeout,
		"news: first look behind a pooler after":                      pollSoon,
		"news: least time between notifications":                      notifyInterval,
		"news: how often the tables are looked at":                    pollInterval,
		"news: pause before listening again":                          listenPause,
	})
}
