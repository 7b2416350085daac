package keycache

import (
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"keys: fresh for":                                 DefaultTTL,
		"keys: kept while they can't be read":             DefaultStale,
		"keys: of a head":                                 maxKeys,
		"keys: heads that are known":                      maxKnown,
		"keys: heads that are remembered to have none":    maxMissed,
		"keys: a head without keys is remembered for":     missTTL,
		"keys: readings after wrong signatures":           maxRereads,
		"keys: in":                                        rereadWindow,
		"keys: a delivery with stale keys waits":          refreshPatience,
		"keys: pause after a refresh that failed":         refreshPause,
		"requests: timeout":                               fetchTimeout,
		"requests: at once":                               maxFetches,
		"requests: about unknown heads at once":           maxLimited,
		"requests: unknown heads that wait":               maxStrangers,
		"requests: one about an unknown head every":       unknownEvery,
		"requests: about unknown heads in a burst":        unknownBurst,
		"requests: first pause of reading at the start":   minPause,
		"requests: longest pause of reading at the start": maxPause,
		"requests: reading at the start ends in":          readingEndsIn,
	})
}
