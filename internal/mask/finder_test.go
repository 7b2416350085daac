package mask_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretsThatOverlapAreMaskedWhole(t *testing.T) {
	for text, want := range map[string]string{
		"-abcdefgh-":   "-[redacted]-",
		"-abcdefghij-": "-[redacted]-",
		"abcdabcd":     "[redacted][redacted]",
		"-bcd-cde-":    "-bcd-[redacted]-",
		"abxxcde":      "abxx[redacted]",
	} {
		assert.Equal(t, want, mask.Secrets(text, "abcd", "abcdefgh", "cde", "ghij"))
	}
	assert.Equal(t, "[redacted]", mask.Secrets("ababcdefg", "ab", "cd", "babcdefg"), "one that begins in another")
}

// A character of a text is left if no secret covers it.
func TestEverySecretIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, 1+random.IntN(most))
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	for range 2000 {
		text, secrets := word(40), []string{word(5), word(5), word(8)}
		covered := make([]bool, len(text))
		for _, secret := range secrets {
			for i := range len(text) - len(secret) + 1 {
				for j := range secret {
					covered[i+j] = covered[i+j] || text[i:i+len(secret)] == secret
				}
			}
		}
		left := ""
		for i := range text {
			if !covered[i] {
				left += text[i : i+1]
			}
		}
		shown := mask.Secrets(text, secrets...)
		require.Equal(t, left, strings.ReplaceAll(shown, mask.Redacted, ""), "%s in %s", secrets, text)
	}
}

// Twice the document, of about n kB, takes at most three times as long; with the square of its size
// it would take four.
func TestMaskingIsLinear(t *testing.T) {
	for name, document := range map[string]func(n int) string{
		"many keys": func(n int) string {
			var keys []string
			for i := range n * 3 {
				keys = append(keys, fmt.Sprintf(`{"apiKey":"secret-%08d-of-many","text":"100%% of /%08d/ secret-%08d-of-many"}`, i, i, i/2))
			}
			return `[` + strings.Join(keys, ",") + `]`
		},
		"keys that begin alike": func(n int) string {
			keys := `""`
			for i := range 20 {
				keys += `,"` + strings.Repeat("a", n*10+i) + `"`
			}
			return `{"tokens":[` + keys + `],"text":"` + strings.Repeat("a", n*500) + `%"}`
		},
		"lists in lists": func(n int) string {
			depth := n * 10
			return strings.Repeat(`[{"a":`, depth) + `"` + strings.Repeat("x", n*800) + `"` + strings.Repeat(`}]`, depth)
		},
		"escapes": func(n int) string {
			return `{"key":"long-enough","text":"` + strings.Repeat("%", n*500) + strings.Repeat("&", n*500) + `"}`
		},
	} {
		var sizes []json.RawMessage
		for n := 50; n <= 800; n *= 2 {
			sizes = append(sizes, json.RawMessage(document(n)))
		}
		fastest := slices.Repeat([]time.Duration{time.Hour}, len(sizes))
		linear := func() bool {
			allowed := max(fastest[0], time.Millisecond) // a short time says little
			for _, took := range fastest {
				if took > allowed {
					return false
				}
				allowed *= 3
			}
			return true
		}
		for round := 0; round < 3 || round < 40 && !linear(); round++ { // other programs may run
			for i, doc := range sizes {
				start := time.Now()
				mask.JSON(doc, mask.SecretsOf(doc)...)
				fastest[i] = min(fastest[i], time.Since(start))
			}
		}
		assert.True(t, linear(), "%s: %v", name, fastest)
	}
}

func TestDocumentThatIsNotJSONIsReadToItsEnd(t *testing.T) {
	for _, text := range []string{"", " ", "]", "}}", `{"a"`, `{"a":`, `{"a":"b`, `"`, `[,,]`, `{"key" "secret"}`, "\xff", `{"a":"\`} {
		assert.NotPanics(t, func() { mask.JSON([]byte(text), mask.SecretsOf([]byte(text))...) }, text)
	}
}
