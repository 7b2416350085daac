package heads

import (
	"bytes"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// Time is a time as the service writes it, together with its text. It accepts
// RFC 3339 with or without a fraction, with a space instead of the T, and
// without a zone, which means UTC. Any other text is kept in Text, and the time is
// zero.
type Time struct {
	time.Time
	Text string
}

// String returns the text as the service sent it. For a time without a text it
// returns RFC 3339, or "" for the zero time.
func (t Time) String() string {
	switch {
	case t.Text != "":
		return t.Text
	case t.IsZero():
		return ""
	default:
		return t.Format(time.RFC3339Nano)
	}
}

// UnmarshalJSON never fails: a value that is not a readable time is kept in
// Text.
func (t *Time) UnmarshalJSON(data []byte) error {
	*t = Time{}
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if rawjson.Kind(data) == "string" {
		t.Text = rawjson.Unquote(data)
	} else {
		t.Text = string(data)
	}
	t.Time, _ = parseTime(t.Text)
	return nil
}

// MarshalJSON writes the text of String, or null if that is empty.
func (t Time) MarshalJSON() ([]byte, error) {
	if s := t.String(); s != "" {
		return rawjson.String(s), nil
	}
	return []byte("null"), nil
}

// layouts holds the forms of a time. The keys report whether a space precedes
// the clock time, and whether a zone follows it.
var layouts = map[bool]map[bool]string{
	false: {false: "2006-01-02T15:04:05", true: "2006-01-02T15:04:05Z07:00"},
	true:  {false: "2006-01-02 15:04:05", true: "2006-01-02 15:04:05Z07:00"},
}

// parseTime accepts the forms that Time documents. It picks the one layout that
// can fit, since a failed time.Parse is expensive.
func parseTime(s string) (time.Time, bool) {
	const dateLen = len("2006-01-02")
	if len(s) <= dateLen+1 || s[dateLen+1] == ' ' { // which time.Parse would ignore
		return time.Time{}, false
	}
	layout := layouts[s[dateLen] == ' '][strings.ContainsAny(s[dateLen+1:], "Zz+-")]
	parsed, err := time.Parse(layout, s)
	return parsed, err == nil
}
