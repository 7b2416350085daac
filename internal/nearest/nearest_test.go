package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDistanceCountsInsertionsDeletionsReplacementsAndSwaps(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"abc", "", 3}, {"greeting", "greetings", 1}, {"grettings", "greetings", 1},
		{"kitten", "sitting", 3}, {"create", "update", 3}, {"naem", "name", 1}, {"é", "e", 1},
	} {
		assert.Equal(t, row.want, Distance(row.a, row.b), "%s %s", row.a, row.b)
		assert.Equal(t, row.want, Distance(row.b, row.a), "%s %s", row.b, row.a)
	}
}

func TestNameIsSimilarOrNone(t *testing.T) {
	names := []string{"greetings", "ttsVoice", "name"}
	assert.Equal(t, "greetings", Name("Greeting", names))
	assert.Equal(t, "ttsVoice", Name("ttsvoice", names))
	assert.Equal(t, "name", Name("nam", names))
	assert.Empty(t, Name("operationMode", names))
	assert.Empty(t, Name("x", nil))
	assert.Empty(t, Name(strings.Repeat("x", 1<<20), names), "not compared")
}
