package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// decodeExactly decodes JSON and keeps all digits of numbers.
func decodeExactly(document []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	return v, decoder.Decode(&v)
}

// sameJSON reports whether two values have the same JSON. The order of keys and the notation of
// numbers are ignored; every digit counts.
func sameJSON(a, b any) bool {
	var decoded [2]any
	for i, v := range []any{a, b} {
		document, err := json.Marshal(v)
		if err == nil {
			decoded[i], err = decodeExactly(document)
		}
		if err != nil {
			return false
		}
	}
	return sameValue(decoded[0], decoded[1])
}

// sameValue is sameJSON for values that decodeExactly returned.
func sameValue(a, b any) bool { return reflect.DeepEqual(withPlainNumbers(a), withPlainNumbers(b)) }

// withPlainNumbers returns a copy with all numbers in the notation of plainNumber.
func withPlainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return plainNumber(v.String())
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = withPlainNumbers(v[i])
		}
		return items
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[name] = withPlainNumbers(member)
		}
		return members
	}
	return v
}

// plainNumber writes a JSON number as its digits, without leading and trailing zeros, and an
// exponent: -1.50e3 becomes -15e2.
func plainNumber(text string) json.Number {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	power, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil { // the exponent overflows an int
		return json.Number(text)
	}
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case negative:
		short = "-" + short
	}
	return json.Number(short + "e" + strconv.Itoa(power))
}
