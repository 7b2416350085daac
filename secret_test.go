package heads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretPrintsAsRedacted(t *testing.T) {
	secret := Secret("hush-hush")
	for _, verb := range verbs {
		assert.Equal(t, "[redacted]", fmt.Sprintf(verb, secret), verb)
		assert.Equal(t, "[redacted]", fmt.Sprintf(verb, &secret), verb)
	}
	assert.Equal(t, "[redacted]", secret.String())
	assert.Equal(t, "[redacted]", fmt.Sprint(secret))
	assert.Equal(t, "[[redacted] [redacted]]", fmt.Sprint([]Secret{secret, ""}), "an empty one looks the same")
	assert.Equal(t, "map[k:[redacted]]", fmt.Sprint(map[string]Secret{"k": secret}))
}

func TestSecretLogsAsRedacted(t *testing.T) {
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			secret := Secret("hush-hush")
			slog.New(handler(&out)).Info("m", "value", secret, "pointer", &secret, slog.Group("g", "inner", secret))
			assert.NotContains(t, out.String(), "hush-hush")
			assert.Equal(t, 3, bytes.Count(out.Bytes(), []byte("[redacted]")))
		})
	}
}

func TestSecretIsRevealedAndKeptByJSON(t *testing.T) {
	secret := Secret(`a"b`)
	assert.Equal(t, `a"b`, secret.Reveal())
	raw, err := json.Marshal(map[string]Secret{"k": secret})
	require.NoError(t, err)
	var back map[string]Secret
	require.NoError(t, json.Unmarshal(raw, &back))
	assert.Equal(t, secret, back["k"])
}
