package toolargs

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// IsNull reports whether raw, a JSON value or nothing, is null or nothing.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == 'n' }

// isBlank reports whether raw is a string of spaces alone, which a model writes for
// a value that it does not have.
func isBlank(raw json.RawMessage) bool {
	if raw[0] != '"' {
		return false
	}
	text, _ := ScalarText(raw)
	return strings.TrimSpace(text) == ""
}

// ScalarText returns the text of a string, a number or a boolean.
func ScalarText(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '{', '[':
		return "", false
	case '"':
		if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
			return string(raw[1 : len(raw)-1]), true
		}
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	default:
		return string(raw), true
	}
}

// Read returns raw, one JSON value, as a JSON value of the type. Its faults are about
// "the value".
func Read(wireType string, raw json.RawMessage) (json.RawMessage, ArgumentErrors) {
	if IsNull(raw) {
		return nil, missing().under("the value")
	}
	value, faults := appendValue(nil, wireType, raw)
	if faults != nil {
		return nil, faults.under("the value")
	}
	return value, nil
}

// The read functions return what a value means, for any Go type that stores it.

func readText(raw json.RawMessage) (string, ArgumentErrors) {
	s, ok := ScalarText(raw)
	if !ok {
		return "", wrong("text", raw)
	}
	return s, nil
}

func readBool(raw json.RawMessage) (bool, ArgumentErrors) {
	s, _ := ScalarText(raw)
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "1":
		return true, nil
	case "false", "no", "0":
		return false, nil
	default:
		return false, wrong("true or false", raw)
	}
}

// readInteger returns the digits, with a minus sign before them if need be.
func readInteger(raw json.RawMessage) (string, ArgumentErrors) {
	digits, ok := wholeNumber(raw)
	if !ok {
		return "", wrong("a whole number", raw)
	}
	return digits, nil
}

func readNumber(raw json.RawMessage, bits int) (float64, ArgumentErrors) {
	s, ok := numberText(raw)
	if !ok {
		return 0, wrong("a number", raw)
	}
	n, err := strconv.ParseFloat(s, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, wrong("a number closer to zero", raw)
	case err != nil:
		return 0, wrong("a number", raw)
	}
	return n, nil
}

// unquoted returns the list or object in a string. The first byte says which is
// expected. Any other value is returned as it is.
func unquoted(raw json.RawMessage, first byte) json.RawMessage {
	if raw[0] != '"' {
		return raw
	}
	text, _ := ScalarText(raw)
	text = strings.TrimSpace(text)
	if text == "" || text[0] != first || !json.Valid([]byte(text)) {
		return raw
	}
	return json.RawMessage(text)
}

// readList takes a single value for a list of one.
func readList(raw json.RawMessage) []json.RawMessage {
	raw = unquoted(raw, '[')
	if raw[0] != '[' {
		return []json.RawMessage{raw}
	}
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // raw was part of a document that could be read
	return items
}

// anyScalar is the type of a parameter that takes several scalar types.
const anyScalar = "scalar"

func notScalar(wireType string) bool {
	return !slices.Contains([]string{"string", "number", "integer", "boolean"}, wireType)
}

// appendValue appends raw, which is one JSON value and not null, to b as a
// value of the type. A number that is given as one keeps its digits.
func appendValue(b []byte, wireType string, raw json.RawMessage) ([]byte, ArgumentErrors) {
	given := raw[0]
	switch wireType {
	case "string":
		if given == '"' && utf8.Valid(raw) {
			break
		}
		s, faults := readText(raw)
		return rawjson.AppendString(b, s), faults
	case "boolean":
		yes, faults := readBool(raw)
		return strconv.AppendBool(b, yes), faults
	case "integer":
		digits, faults := readInteger(raw)
		return append(b, digits...), faults
	case "number":
		n, faults := readNumber(raw, 64)
		if given != '"' {
			return append(b, raw...), faults
		}
		return strconv.AppendFloat(b, n, 'g', -1, 64), faults
	case "object":
		raw = unquoted(raw, '{')
	case "array":
		if raw = unquoted(raw, '['); raw[0] != '[' {
			return append(append(append(b, '['), raw...), ']'), nil
		}
	case anyScalar:
		if given == '{' || given == '[' {
			return b, wrong("text", raw)
		}
	}
	return append(b, raw...), nil
}

func wrongRange(lowest string, highest uint64, raw json.RawMessage) ArgumentErrors {
	return wrong("a whole number from "+lowest+" to "+strconv.FormatUint(highest, 10), raw)
}

// numberText returns a number, or the number in a string. It refuses other forms
// that strconv accepts: "Inf", "0x1p-2".
func numberText(raw json.RawMessage) (string, bool) {
	s, ok := ScalarText(raw)
	s = strings.TrimSpace(s)
	return s, ok && s != "" && strings.Trim(s, "0123456789+-.eE") == ""
}

// wholeNumber returns the digits of a whole number, however it was written: 5,
// "5", 5.0, 5e2. It moves the point in the text, since a float64 would round a
// long number.
func wholeNumber(raw json.RawMessage) (string, bool) {
	const longerThanAnyInteger = 32
	s, ok := numberText(raw)
	if !ok {
		return "", false
	}
	s = strings.TrimPrefix(s, "+")
	sign := ""
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		s, sign = rest, "-"
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(s), "e")
	shift := 0
	if scientific {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift < -longerThanAnyInteger || shift > longerThanAnyInteger {
			return "", false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	point := len(whole) + shift
	digits += strings.Repeat("0", max(0, shift))
	point = max(0, point)
	if strings.Trim(digits[point:], "0") != "" {
		return "", false
	}
	digits = strings.TrimLeft(digits[:point], "0")
	if digits == "" {
		return "0", true
	}
	return sign + digits, true
}

func objectMembers(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw = unquoted(raw, '{'); raw[0] != '{' {
		return nil, false
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(raw, &members)
	return members, err == nil
}

// wrong is about a value of another form than expected.
func wrong(expected string, raw json.RawMessage) ArgumentErrors {
	return ArgumentErrors{{problem: "must be " + expected + ", but " + quoteValue(raw) +
		" was given; correct it or ask the user for it"}}
}

func quoteValue(raw json.RawMessage) string {
	const enoughToRecognise = 40
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	text, _ := ScalarText(raw)
	text = mask.Clip(text, enoughToRecognise)
	if raw[0] == '"' {
		return "\"" + text + "\""
	}
	return text
}
