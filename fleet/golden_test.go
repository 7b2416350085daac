package fleet

import (
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"heads at a time":                 defaultConcurrency,
		"conversion: ConfirmTimeout":      defaultConfirmTimeout,
		"conversion: SettleTimeout":       defaultSettleTimeout,
		"temporary failures in a row":     defaultStopAfter,
		"journal: bytes of its beginning": maxHeader,
	})
}
