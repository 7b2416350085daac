package heads

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// Time is a time as the service writes it, together with the text that was
// sent. It reads RFC 3339 with or without a fraction, the same with a space
// instead of the T, and both without a zone, which means UTC. A text that it
// can't read leaves the zero time and stays readable in Text.
type Time struct {
	time.Time
	Text string
}

// String returns the text as the service sent it, or else RFC 3339.
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

// UnmarshalJSON never fails: what is not a readable time is kept in Text.
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

// MarshalJSON writes the text as it was received, else RFC 3339, else null.
func (t Time) MarshalJSON() ([]byte, error) {
	if s := t.String(); s != "" {
		return json.Marshal(s)
	}
	return []byte("null"), nil
}

// layouts holds the forms of a time, by whether a space stands before the
// clock time and whether a zone stands behind it.
var layouts = map[bool]map[bool]string{
	false: {false: "2006-01-02T15:04:05", true: "2006-01-02T15:04:05Z07:00"},
	true:  {false: "2006-01-02 15:04:05", true: "2006-01-02 15:04:05Z07:00"},
}

// parseTime reads the forms that Time documents. It picks the one layout that
// can fit, since a failed time.Parse is dear.
func parseTime(s string) (time.Time, bool) {
	const dateLen = len("2006-01-02")
	if len(s) <= dateLen+1 || s[dateLen+1] == ' ' { // which time.Parse would pass over
		return time.Time{}, false
	}
	layout := layouts[s[dateLen] == ' '][strings.ContainsAny(s[dateLen+1:], "Zz+-")]
	parsed, err := time.Parse(layout, s)
	return parsed, err == nil
}
