package headsmcp

import (
	"testing"

	"github.com/headsapi/heads-go/internal/goldens"
)

func TestGoldenDefaults(t *testing.T) {
	goldens.Defaults(t, map[string]any{
		"tools":                                          maxTools,
		"connection: timeout":                            connectTimeout,
		"connection: first wait before the next":         firstWait,
		"connection: longest wait before the next":       longestWait,
		"connection: calls that the server has not read": maxUnsent,
		"descriptions: characters":                       maxText,
		"descriptions: characters beside long facts":     minText,
		"descriptions: values of an enum":                maxValues,
		"descriptions: levels":                           maxLevels,
		"descriptions: types":                            maxWords,
		"schemas: parts":                                 maxSize,
		"arguments: steps of a check":                    maxSteps,
		"arguments: depth of a check":                    maxDepth,
		"arguments: matches of a pattern in a step":      matchPerStep,
	})
	goldens.Constants(t)
}
