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
	for _, row := range []struct {
		name, text string
		want       time.Time
	}{
		{"with a T", "2026-08-31T14:30:15", time.Date(2026, 8, 31, 14, 30, 15, 0, newYork)},
		{"with a space", "2026-08-31 14:30:15", time.Date(2026, 8, 31, 14, 30, 15, 0, newYork)},
		{"with a fraction", "2026-08-31T14:30:15.5", time.Date(2026, 8, 31, 14, 30, 15, 5e8, newYork)},
		{"without seconds", "2026-08-31T14:30", time.Date(2026, 8, 31, 14, 30, 0, 0, newYork)},
		{"with a space and without seconds", " 2026-08-31 14:30 ", time.Date(2026, 8, 31, 14, 30, 0, 0, newYork)},
		{"date", "2026-08-31", time.Date(2026, 8, 31, 0, 0, 0, 0, newYork)},
		{"with a zone of its own", "2026-08-31T14:30:00+02:00", time.Date(2026, 8, 31, 12, 30, 0, 0, time.UTC)},
		{"in UTC", "2026-08-31 14:30Z", time.Date(2026, 8, 31, 14, 30, 0, 0, time.UTC)},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, reply := callIn[meeting](t, newYork, `{"at":"`+row.text+`","stamp":"`+row.text+`","inner":{"at":"`+row.text+`"}}`)
			require.Equal(t, done, reply)
			assert.True(t, row.want.Equal(got.At), got.At)
			assert.True(t, row.want.Equal(got.Stamp.Time), got.Stamp.Time)
			assert.Equal(t, row.text, got.Stamp.Text)
			assert.True(t, row.want.Equal(got.Inner.At), got.Inner.At)
		})
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
	fields := fieldsOf[struct {
		For  time.Duration   `json:"for" jsonschema:"How long"`
		Gaps []time.Duration `json:"gaps" jsonschema:"Pauses"`
	}](t, nil).List()
	assert.Equal(t, "string", fields[0].WireType())
	assert.Equal(t, "array", fields[1].WireType())
}

func TestDurationsAreReadLeniently(t *testing.T) {
	for _, row := range []namedTest{
		reads("minutes", `"30m"`, 30*time.Minute),
		reads("seconds", `"90s"`, 90*time.Second),
		reads("several units", `" 1h 30m "`, 90*time.Minute),
		reads("fraction of a unit", `"1.5h"`, 90*time.Minute),
		reads("negative", `"-5m"`, -5*time.Minute),
		reads("ISO minutes", `"PT30M"`, 30*time.Minute),
		reads("ISO in lower case", `"pt30m"`, 30*time.Minute),
		reads("ISO days", `"P2D"`, 48*time.Hour),
		reads("ISO weeks", `"P1W"`, 168*time.Hour),
		reads("ISO with every unit", `"P1W2DT3H4M5.25S"`, 9*24*time.Hour+3*time.Hour+4*time.Minute+5250*time.Millisecond),
		reads("number of seconds", `90`, 90*time.Second),
		reads("number of seconds in a string", `"90"`, 90*time.Second),
		reads("fraction of a second", `0.1`, 100*time.Millisecond),
		reads("zero", `0`, time.Duration(0)),
		reads("in a list", `["90s",60]`, []time.Duration{90 * time.Second, time.Minute}),
	} {
		t.Run(row.name, row.run)
	}
}

func TestDurationsThatCanBeMeantInTwoWaysAreRefused(t *testing.T) {
	for _, raw := range []string{`"1h30"`, `"P1Y"`, `"P1M"`, `"P"`, `"PT"`, `"P1DT"`, `"PT5MS"`, `"PT1M1H"`, `"30 minutes and a bit"`,
		`"1e300"`, `"1e400"`, `"-"`, `9223372037`, `"PT999999999999H"`, `"99999999999h"`, `true`, `{}`, `[]`} {
		got, reply := callWith[requiredArg[time.Duration]](t, `{"v":`+raw+`}`)
		assert.Contains(t, reply, `v must be a duration like "90s", "1h30m" or "PT1H30M", or a number of seconds, but `, raw)
		assert.Zero(t, got, raw)
	}
}
