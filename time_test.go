package heads

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTimeReadsTheFormsOfTheService(t *testing.T) {
	utc := time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-08-31T06:56:30Z":             utc,
		"2026-08-31 06:56:30Z":             utc,
		"2026-08-31T06:56:30":              utc,
		"2026-08-31 06:56:30":              utc,
		"2026-08-31T08:56:30+02:00":        utc,
		"2026-08-31 08:56:30+02:00":        utc,
		"2026-08-31T01:56:30-05:00":        utc,
		"2026-08-31T06:56:30.25Z":          utc.Add(250 * time.Millisecond),
		"2026-08-31 06:56:30.25":           utc.Add(250 * time.Millisecond),
		"2026-08-31T06:56:30.123456789":    utc.Add(123456789),
		"2026-08-31 01:56:30.000001-05:00": utc.Add(time.Microsecond),
	} {
		t.Run(text, func(t *testing.T) {
			raw := Must(json.Marshal(text))(t)
			var got Time
			require.NoError(t, json.Unmarshal(raw, &got))
			assert.True(t, want.Equal(got.Time), got.Time)
			assert.Equal(t, text, got.Text)
			assert.Equal(t, text, got.String())
			if _, offset := got.Zone(); offset == 0 {
				assert.Equal(t, time.UTC, got.Location())
			}
			again := Must(json.Marshal(got))(t)
			assert.JSONEq(t, string(raw), string(again), "JSON keeps the text as it was sent")
		})
	}
}

func TestUnreadableTimeIsZeroAndKeepsItsText(t *testing.T) {
	for raw, text := range map[string]string{
		`""`:                         "",
		`"soon"`:                     "soon",
		`"2026-08-31"`:               "2026-08-31",
		`"2026-08-31T"`:              "2026-08-31T",
		`"2026-08-31T06:56"`:         "2026-08-31T06:56",
		`"2026-02-30T06:56:30Z"`:     "2026-02-30T06:56:30Z",
		`"2026-13-31T06:56:30Z"`:     "2026-13-31T06:56:30Z",
		`"31.08.2026 06:56:30"`:      "31.08.2026 06:56:30",
		`"2026-08-31  6:56:30"`:      "2026-08-31  6:56:30",
		`"2026-08-31  06:56:30"`:     "2026-08-31  06:56:30",
		`"2026-08-31T06:56:30 \n"`:   "2026-08-31T06:56:30 \n",
		`"2026-08-31T06:56:30Z and"`: "2026-08-31T06:56:30Z and",
		`"\u0000éééééééééééé"`:       "\x00éééééééééééé",
		`1788159390`:                 "1788159390",
		`true`:                       "true",
		`{"seconds":1}`:              `{"seconds":1}`,
		`["2026-08-31T06:56:30Z"]`:   `["2026-08-31T06:56:30Z"]`,
		`null`:                       "",
	} {
		t.Run(raw, func(t *testing.T) {
			got := Time{Time: time.Unix(1, 0), Text: "before"}
			require.NoError(t, json.Unmarshal([]byte(raw), &got))
			assert.True(t, got.IsZero())
			assert.Equal(t, text, got.Text)
			head := readHead(t, `{"createdAt":`+raw+`}`)
			assert.Equal(t, got, head.CreatedAt, "it breaks no read")
		})
	}
}

func TestTimeIsWrittenAsItWasRead(t *testing.T) {
	at := time.Date(2026, 8, 31, 6, 56, 30, 5, time.FixedZone("", 7200))
	for name, row := range map[string]struct {
		time Time
		json string
		text string
	}{
		"text":        {Time{Text: "soon"}, `"soon"`, "soon"},
		"text first":  {Time{Time: at, Text: "2026-08-31"}, `"2026-08-31"`, "2026-08-31"},
		"time alone":  {Time{Time: at}, `"2026-08-31T06:56:30.000000005+02:00"`, "2026-08-31T06:56:30.000000005+02:00"},
		"zero":        {Time{}, `null`, ""},
		"quote marks": {Time{Text: `a"b`}, `"a\"b"`, `a"b`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := Must(json.Marshal(row.time))(t)
			assert.JSONEq(t, row.json, string(raw))
			assert.Equal(t, row.text, row.time.String())
		})
	}
}
