package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRatesCompareWithWhatWasSeenUpToAMinuteAgo(t *testing.T) {
	var r rates
	begun := time.Now()
	at := func(seconds int, sequence, open int64, estimated bool) []string {
		stored, handled := r.add(sample{begun.Add(time.Duration(seconds) * time.Second), sequence, open, estimated})
		return []string{stored, handled}
	}
	assert.Equal(t, []string{"not known yet", "not known yet"}, at(0, 1000, 100, false))
	assert.Equal(t, []string{"60", "120"}, at(10, 1010, 90, false), "a sixth of a minute")
	assert.Equal(t, []string{"40", "0"}, at(30, 1020, 130, false), "what is open grows by more")
	assert.Equal(t, []string{"12", "39"}, at(70, 1022, 63, false), "compared with 60 s before")
	assert.Equal(t, []string{"0", "0"}, at(90, 900, 2000, false), "a restored database")
	assert.Equal(t, []string{"not known yet", "not known yet"}, at(200, 900, 20000, true))
	assert.Equal(t, []string{"60", "not known"}, at(210, 910, 30000, true), "estimates differ")
}
