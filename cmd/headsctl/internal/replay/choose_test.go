package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/replay"
)

// Work that grows with the square of the entries takes minutes.
func TestAHundredThousandEntriesTakeLinearTime(t *testing.T) {
	t.Parallel()
	const n = 100_000
	entries := make([]*recording.Entry, n)
	for i := range entries {
		body := fmt.Sprintf(`{"timestamp":"2026-08-31 06:56:30","n":%d}`, i)
		entries[i] = event(body)
		entries[i].ID, entries[i].Event, entries[i].Path = fmt.Sprint(i), "timeout_conversation", "/events"
		entries[i].Answer = recording.Answer{Status: 503, By: recording.ByBackEnd}
		copy(entries[i].Delivery[:], body[len(body)-8:])
		if i%2 == 0 {
			entries[i].Type, entries[i].Event, entries[i].Tool, entries[i].Path = recording.KindToolCall, "", fmt.Sprint("tool", i), fmt.Sprint("/tools/", i)
		}
	}
	began := time.Now()
	assert.Len(t, replay.Choose(entries, []string{replay.Undelivered}), n/2)
	scenario, left := replay.AsTest(entries, "http://127.0.0.1:1", "x")
	assert.Empty(t, left)
	assert.Len(t, scenario.Heads[0].Tools, n/2)
	signer := replay.NewSigner("k")
	for _, e := range entries {
		_, _, err := signer.Sign(e, began)
		require.NoError(t, err)
	}
	assert.Less(t, time.Since(began), time.Minute)
}
