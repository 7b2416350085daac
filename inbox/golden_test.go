package inbox

import (
	"testing"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
	"github.com/headsapi/heads-go/inbox/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	var longest []time.Duration
	for attempt := range defaultMaxAttempts {
		longest = append(longest, longestBackoff(attempt+1))
	}
	goldens.Defaults(t, map[string]any{
		"tables: prefix":                                   engine.DefaultPrefix,
		"events: kept after they were handled":             defaultRetention,
		"events: least time that they are kept":            minRetention,
		"events: time to store one":                        appendTimeout,
		"events: first wait before storing one again":      pause,
		"events: how often a store that is full is tried":  probeInterval,
		"events: timeout of such a try":                    probeTimeout,
		"events: characters of an error":                   maxErrorText,
		"Run: Concurrency":                                 defaultConcurrency,
		"Run: MaxAttempts":                                 defaultMaxAttempts,
		"Run: Lease":                                       defaultLease,
		"Run: DrainTimeout":                                defaultDrainTimeout,
		"Run: Backoff, longest after each attempt":         longest,
		"Run: events of a session in a row":                maxTurn,
		"Run: time of a session in a row":                  maxTurnTime,
		"Run: time for functions to return after a drain":  drainGrace,
		"Run: timeout of storing an outcome":               storeTimeout,
		"Run: wait before storing an outcome again":        retryPause,
		"Run: how often handled events are removed":        pruneEvery,
		"Run: handled events that are removed at once":     pruneSize,
		"Run: how often a trouble is logged":               complainEvery,
		"Serve: ShutdownTimeout":                           defaultShutdownTimeout,
		"Serve: ReadHeaderTimeout":                         readHeaderTimeout,
		"Serve: time for a step that begins late":          lateGrace,
		"Health: least time between two writes":            checkInterval,
		"Health: timeout of a write":                       checkTimeout,
		"status: events that are counted exactly":          maxCount,
		"status: events of a sample":                       sampleSize,
		"lists: events":                                    listLimit,
		"lists: events that are read for them":             listReads,
		"dead letters: in a page":                          pageSize,
		"dead letters: redriven at once":                   redriveSize,
		"Run: times that Commit runs an effect that fails": maxRuns,
		"dead letters: groups by error":                    deadGroups,
	})
}
