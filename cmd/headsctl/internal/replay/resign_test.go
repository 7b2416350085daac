package replay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/replay"
)

func event(body string) *recording.Entry {
	return &recording.Entry{Type: recording.KindEvent, Event: "x", HeadID: "h", SessionID: "s", Body: recording.Text(body)}
}

func TestResignKeepsTheFormOfTheTimestamp(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 678900000, time.UTC)
	for form, want := range map[string]string{
		"2026-08-31 06:56:30": "2027-01-02 03:04:05", "2026-08-31T06:56:30": "2027-01-02T03:04:05", "2026-08-31T06:56:30Z": "2027-01-02T03:04:05Z",
		"2026-08-31T06:56:30.120Z": "2027-01-02T03:04:05.678Z", "2026-08-31 06:56:30.1": "2027-01-02 03:04:05.6",
		"2026-08-31T06:56:30.123456789Z": "2027-01-02T03:04:05.678900000Z", "2026-08-31T06:56:30+00:00": "2027-01-02T03:04:05+00:00",
		"2026-08-31T06:56:30.5-02:30": "2027-01-02T00:34:05.6-02:30", `2026-08-31\u0020\u00306:56\u003a30`: "2027-01-02 03:04:05",
	} {
		before, after := "\n{ \"event_type\":\"X\",\t\"timestamp\" : \"", "\",\"n\":1.50,\"n\":{\"timestamp\":\"old\"}} \r\n"
		body, signature, err := replay.NewSigner("k").Sign(event(before+form+after), now)
		require.NoError(t, err, form)
		assert.Equal(t, before+want+after, string(body), form)
		assert.NoError(t, heads.VerifySignature(body, signature, "k"))
	}
	for _, body := range []string{
		`{"event_type":"x"}`, `{"timestamp":1756623390}`, `{"timestamp":"yesterday"}`, `{"timestamp":null}`, `{"timestamp":"2026-08-31T06:56:30z"}`,
		`{"timestamp":"2026-08-31 06:56:30","Timestamp":"2026-08-31 06:56:30"}`, `{"timestamp":"2026-13-31 06:56:30"}`, `{"timestamp":"2026-08-31T06:56:30."}`,
	} {
		assert.Error(t, replay.NewSigner("k").Check(event(body)), body)
	}
}

func TestResignTellsEventsApart(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	s := replay.NewSigner("k")
	sign := func(body string) string {
		signed, _, err := s.Sign(event(body), now)
		require.NoError(t, err)
		return string(signed)
	}
	assert.Equal(t, `{"timestamp":"2027-01-02 03:04:05"}`, sign(`{"timestamp":"2026-08-31 06:56:30"}`))
	assert.Equal(t, `{"timestamp":"2027-01-02 03:04:06"}`, sign(`{"timestamp":"2026-08-31 06:57:30"}`), "another event")
	now = now.Add(time.Hour)
	assert.Equal(t, `{"timestamp":"2027-01-02 03:04:05"}`, sign(`{"timestamp":"2026-08-31 06:56:30"}`), "a redelivery")
}
