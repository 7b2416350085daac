package toolargs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type meeting struct {
	At    time.Time `json:"at,omitzero" jsonschema:"Start"`
	Stamp stamp     `json:"stamp,omitzero" jsonschema:"Start, with its text"`
	Inner struct {
		At time.Time `json:"at,omitzero"`
	} `json:"inner,omitzero" jsonschema:"An object with at"`
}

func TestTimeWithoutAZoneIsInTheToolLocation(t *testing.T) {
	newYork := time.FixedZone("New York", -4*60*60)
	for text, want := range map[string]time.Time{
		"2026-08-31T14:30:15":       time.Date(2026, 8, 31, 14, 30, 15, 0, newYork),
		"2026-08-31 14:30:15":       time.Date(2026, 8, 31, 14, 30, 15, 0, newYork),
		"2026-08-31T14:30:15.5":     time.Date(2026, 8, 31, 14, 30, 15, 5e8, newYork),
		"2026-08-31T14:30":          time.Date(2026, 8, 31, 14, 30, 0, 0, newYork),
		" 2026-08-31 14:30 ":        time.Date(2026, 8, 31, 14, 30, 0, 0, newYork),
		"2026-08-31":                time.Date(2026, 8, 31, 0, 0, 0, 0, newYork),
		"2026-08-31T14:30:00+02:00": time.Date(2026, 8, 31, 12, 30, 0, 0, time.UTC),
		"2026-08-31 14:30Z":         time.Date(2026, 8, 31, 14, 30, 0, 0, time.UTC),
	} {
		got, reply := callIn[meeting](t, newYork, `{"at":"`+text+`","stamp":"`+text+`","inner":{"at":"`+text+`"}}`)
		require.Equal(t, done, reply)
		assert.Equal(t, text, got.Stamp.Text)
		for _, at := range []time.Time{got.At, got.Stamp.Time, got.Inner.At} {
			assert.True(t, want.Equal(at), "%s: %v", text, at)
		}
	}
}

func TestModelIsAskedForTheZoneOfATime(t *testing.T) {
	for _, text := range []string{"2026-08-31T14:30:15", "2026-08-31 14:30:15", "2026-08-31T14:30:15.5", "2026-08-31T14:30", " 2026-08-31 14:30 "} {
		want := `at must have a time zone, like 2006-01-02T15:04:05+01:00, but "` + text + `" has none; add it or ask the user for it`
		for _, body := range []string{`{"at":"` + text + `"}`, `{"inner":{"at":"` + text + `"}}`} {
			got, reply := callWith[meeting](t, body)
			assert.Contains(t, reply, want)
			assert.Zero(t, got, "the function is not called")
		}
	}
}

func TestDurationIsRegisteredAsAString(t *testing.T) {
	assert.Equal(t, "string", fieldsOf[requiredArg[time.Duration]](t, nil).List()[0].WireType())
	assert.Equal(t, "array", fieldsOf[requiredArg[[]time.Duration]](t, nil).List()[0].WireType())
}

func TestDurationsAreReadLeniently(t *testing.T) {
	const every = 9*24*time.Hour + 3*time.Hour + 4*time.Minute + 5250*time.Millisecond
	read(t, map[string]time.Duration{
		`"30m"`: 30 * time.Minute, `"90s"`: 90 * time.Second, `" 1h 30m "`: 90 * time.Minute, `"1.5h"`: 90 * time.Minute, `"-5m"`: -5 * time.Minute,
		`"PT30M"`: 30 * time.Minute, `"pt30m"`: 30 * time.Minute, `"P2D"`: 48 * time.Hour, `"P1W"`: 168 * time.Hour, `"P1W2DT3H4M5.25S"`: every,
		`90`: 90 * time.Second, `"90"`: 90 * time.Second, `0.1`: 100 * time.Millisecond, `0`: 0,
	})
	read(t, map[string][]time.Duration{`["90s",60]`: {90 * time.Second, time.Minute}})
}

func TestDurationsThatCanBeMeantInTwoWaysAreRefused(t *testing.T) {
	for _, raw := range []string{`"1h30"`, `"P1Y"`, `"P1M"`, `"P"`, `"PT"`, `"P1DT"`, `"PT5MS"`, `"PT1M1H"`, `"30 minutes and a bit"`,
		`"1e300"`, `"1e400"`, `"-"`, `9223372037`, `"PT999999999999H"`, `"99999999999h"`, `true`, `{}`, `[]`} {
		got, reply := callWith[requiredArg[time.Duration]](t, `{"v":`+raw+`}`)
		assert.Contains(t, reply, `v must be a duration like "90s", "1h30m" or "PT1H30M", or a number of seconds, but `, raw)
		assert.Zero(t, got, raw)
	}
}
