package heads

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a string that nothing prints: every verb of package fmt and every
// slog handler show [redacted] in its place. Reveal gives the value. JSON
// keeps it, so that a resource can be stored and read back.
//
// The verbs %p and %w are outside this promise: fmt passes over formatters
// for them, and go vet refuses them for this type. So is an unexported field of
// a struct that is printed: fmt can't call methods there.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns [redacted].
func (s Secret) String() string { return redacted }

// Format writes [redacted] whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { writeText(f, redacted) }

// LogValue returns [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// writeText is the whole body of a Format method: the same safe text for every
// verb. A write to a fmt.State does not fail.
func writeText(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
