package toolargs

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Stamp is a time with the text that it was read from. FromStruct reads a type of the
// same shape, see Options.Stamp.
type Stamp struct {
	time.Time
	Text string
}

func timeDecoder(location *time.Location) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		_, parsed, faults := readTime(raw, location)
		if faults == nil {
			v.Set(reflect.ValueOf(parsed))
		}
		return faults
	}
}

func stampDecoder(location *time.Location) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		text, parsed, faults := readTime(raw, location)
		if faults == nil {
			v.Set(reflect.ValueOf(Stamp{Time: parsed, Text: text}).Convert(v.Type()))
		}
		return faults
	}
}

var (
	zonedLayouts    = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"}
	zonelessLayouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}
	dateLayouts     = []string{time.DateOnly}
)

// readTime reads a time with a zone, a time without one, which is in location,
// and a date, which is midnight in location. Without a location, the model is
// asked for the zone of a time, and a date is midnight in UTC: guessing the
// zone of a meeting moves it by hours, that of a date does not change the date.
func readTime(raw json.RawMessage, location *time.Location) (text string, parsed time.Time, faults ArgumentErrors) {
	text, _ = ScalarText(raw)
	trimmed := strings.TrimSpace(text)
	zone := location
	if zone == nil {
		zone = time.UTC
	}
	if parsed, ok := parseAny(zonedLayouts, trimmed, zone); ok {
		return text, parsed, nil
	}
	if parsed, ok := parseAny(dateLayouts, trimmed, zone); ok {
		return text, parsed, nil
	}
	parsed, ok := parseAny(zonelessLayouts, trimmed, zone)
	switch {
	case !ok:
		return "", time.Time{}, wrong("a date and time like 2006-01-02T15:04:05Z", raw)
	case location == nil:
		return "", time.Time{}, ArgumentErrors{{problem: "must have a time zone, like 2006-01-02T15:04:05+01:00, but " +
			quoteValue(raw) + " has none; add it or ask the user for it"}}
	}
	return text, parsed, nil
}

func parseAny(layouts []string, text string, location *time.Location) (time.Time, bool) {
	for _, layout := range layouts {
		if parsed, err := time.ParseInLocation(layout, text, location); err == nil {
			return parsed, true
		}
	}
	return time.Time{}, false
}

func decodeDuration(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	d, ok := readDuration(raw)
	if !ok {
		return wrong(`a duration like "90s", "1h30m" or "PT1H30M", or a number of seconds`, raw)
	}
	v.SetInt(int64(d))
	return nil
}

// readDuration reads a number of seconds, the form of time.ParseDuration, and
// ISO 8601.
func readDuration(raw json.RawMessage) (time.Duration, bool) {
	const longest = float64(math.MaxInt64 / time.Second)
	if _, ok := numberText(raw); ok {
		seconds, faults := readNumber(raw, 64)
		if faults != nil || math.Abs(seconds) > longest {
			return 0, false
		}
		return time.Duration(math.Round(seconds * float64(time.Second))), true
	}
	text, _ := ScalarText(raw)
	text = strings.ReplaceAll(text, " ", "")
	if d, ok := parseISODuration(strings.ToUpper(text)); ok {
		return d, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// isoDuration matches weeks, days and a clock time. Years and months have no
// fixed length, so it refuses them. The numbers are too short for an overflow.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,3})W)?(?:(\d{1,4})D)?(?:T((?:\d{1,5}H)?(?:\d{1,7}M)?(?:\d{1,9}(?:\.\d{1,9})?S)?))?$`)

func parseISODuration(text string) (time.Duration, bool) {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil || text == "P" || strings.HasSuffix(text, "T") {
		return 0, false
	}
	weeks, _ := strconv.Atoi("0" + parts[1])
	days, _ := strconv.Atoi("0" + parts[2])
	clock, _ := time.ParseDuration("0s" + strings.ToLower(parts[3])) // the same units, in lower case
	return time.Duration(weeks*7+days)*24*time.Hour + clock, true
}
