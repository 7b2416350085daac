package heads

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// A language model writes the arguments. So the decoding here accepts every form
// that can be meant in one way only, and describes every other fault in words that
// the model can act on.

// decodeFunc sets v from raw, which is one JSON value and not null.
type decodeFunc func(raw json.RawMessage, v reflect.Value) argumentFaults

// argumentFaults are the arguments of one call that could not be used. As an
// error its text is meant for the model.
type argumentFaults []argumentFault

// argumentFault is what is wrong with the argument at path. With an empty problem
// it is missing.
type argumentFault struct{ path, problem string }

// Error returns one sentence about all that is missing and one for each
// further fault.
func (f argumentFaults) Error() string {
	var missing, sentences []string
	for _, fault := range f {
		if fault.problem == "" {
			missing = append(missing, fault.path)
		} else {
			sentences = append(sentences, fault.path+" "+fault.problem)
		}
	}
	if len(missing) > 0 {
		sentences = slices.Insert(sentences, 0, missingSentence(missing))
	}
	return strings.Join(sentences, ". ")
}

// parameters returns what a log may show: the names of the parameters. The
// rest of a path can hold the keys of a map, which are part of the body.
func (f argumentFaults) parameters() []string {
	names := make([]string, len(f))
	for i, fault := range f {
		names[i], _, _ = strings.Cut(strings.ReplaceAll(fault.path, "[", "."), ".")
	}
	return names
}

// under returns f with a step in front of every path. Paths are built only after a
// fault, so that a call without faults pays nothing for them.
func (f argumentFaults) under(step string) argumentFaults {
	for i, fault := range f {
		f[i].path = step + fault.path
	}
	return f
}

func missingSentence(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is missing; ask the user for it"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are missing; ask the user for them"
}

func missingArgument() argumentFaults { return argumentFaults{{}} }

// wrongArgument is about a value of another form than expected.
func wrongArgument(expected string, raw json.RawMessage) argumentFaults {
	return argumentFaults{{problem: "must be " + expected + ", but " + quoteArgument(raw) +
		" was given; correct it or ask the user for it"}}
}

func quoteArgument(raw json.RawMessage) string {
	const enoughToRecognise = 40
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	text, _ := scalarText(raw)
	text = mask.Clip(text, enoughToRecognise)
	if raw[0] == '"' {
		return "\"" + text + "\""
	}
	return text
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == 'n' }

// isBlank reports whether raw is a string of spaces alone, which a model writes for
// a value that it does not have.
func isBlank(raw json.RawMessage) bool {
	if raw[0] != '"' {
		return false
	}
	text, _ := scalarText(raw)
	return strings.TrimSpace(text) == ""
}

// scalarText returns the text of a string, a number or a boolean.
func scalarText(raw json.RawMessage) (string, bool) {
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

// The read functions return what a value means, for any Go type that stores it.

func readText(raw json.RawMessage) (string, argumentFaults) {
	s, ok := scalarText(raw)
	if !ok {
		return "", wrongArgument("text", raw)
	}
	return s, nil
}

func readBool(raw json.RawMessage) (bool, argumentFaults) {
	s, _ := scalarText(raw)
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "1":
		return true, nil
	case "false", "no", "0":
		return false, nil
	default:
		return false, wrongArgument("true or false", raw)
	}
}

// readInteger returns the digits, with a minus sign before them if need be.
func readInteger(raw json.RawMessage) (string, argumentFaults) {
	digits, ok := wholeNumber(raw)
	if !ok {
		return "", wrongArgument("a whole number", raw)
	}
	return digits, nil
}

func readNumber(raw json.RawMessage, bits int) (float64, argumentFaults) {
	s, ok := numberText(raw)
	if !ok {
		return 0, wrongArgument("a number", raw)
	}
	n, err := strconv.ParseFloat(s, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, wrongArgument("a number closer to zero", raw)
	case err != nil:
		return 0, wrongArgument("a number", raw)
	}
	return n, nil
}

// readList takes a single value for a list of one.
func readList(raw json.RawMessage) []json.RawMessage {
	if raw[0] != '[' {
		return []json.RawMessage{raw}
	}
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // raw was part of a document that could be read
	return items
}

// ReadArgument reads raw, one JSON value, as AddTool reads an argument of the
// type, and returns it as a JSON value of that type: 5 for "5" and for 5.0 if the
// type is integer, "7" for 7 if it is string, [7] if it is array. For functions
// given to AddToolFunc, which read what is inside a list or an object themselves.
//
// An error of ReadArgument is meant for the model, which reads the text if the
// function returns it. A type that a tool's parameter can't have and a value that
// is not JSON are InvalidErrors.
func ReadArgument(wireType string, raw json.RawMessage) (json.RawMessage, error) {
	const operation = "ReadArgument"
	raw = bytes.TrimSpace(raw)
	switch {
	case !slices.Contains(toolTypes, wireType):
		return nil, invalid(operation, "type "+quote(wireType), "is unknown", fmt.Sprintf("want one of %s", strings.Join(toolTypes, ", ")))
	case !json.Valid(raw):
		return nil, invalid(operation, "value", "is not JSON", "give one JSON value")
	case isNull(raw):
		return nil, missingArgument().under("the value")
	}
	value, faults := appendArgument(nil, wireType, raw)
	if faults != nil {
		return nil, faults.under("the value")
	}
	return value, nil
}

// anyScalar is the type of a parameter that takes several scalar types.
const anyScalar = "scalar"

// appendArgument appends raw, which is one JSON value and not null, to b as a
// value of the type. A number that is given as one keeps its digits.
func appendArgument(b []byte, wireType string, raw json.RawMessage) ([]byte, argumentFaults) {
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
	case "array":
		if given != '[' {
			return append(append(append(b, '['), raw...), ']'), nil
		}
	case anyScalar:
		if given == '{' || given == '[' {
			return b, wrongArgument("text", raw)
		}
	}
	return append(b, raw...), nil
}

func decodeString(raw json.RawMessage, v reflect.Value) argumentFaults {
	s, faults := readText(raw)
	v.SetString(s)
	return faults
}

func decodeBool(raw json.RawMessage, v reflect.Value) argumentFaults {
	yes, faults := readBool(raw)
	v.SetBool(yes)
	return faults
}

func decodeInt(raw json.RawMessage, v reflect.Value) argumentFaults {
	digits, faults := readInteger(raw)
	if faults != nil {
		return faults
	}
	n, err := strconv.ParseInt(digits, 10, v.Type().Bits())
	if err != nil {
		highest := uint64(1)<<(v.Type().Bits()-1) - 1
		return wrongRange("-"+strconv.FormatUint(highest+1, 10), highest, raw)
	}
	v.SetInt(n)
	return nil
}

func decodeUint(raw json.RawMessage, v reflect.Value) argumentFaults {
	digits, faults := readInteger(raw)
	if faults != nil {
		return faults
	}
	n, err := strconv.ParseUint(digits, 10, v.Type().Bits())
	if err != nil {
		return wrongRange("0", ^uint64(0)>>(64-v.Type().Bits()), raw)
	}
	v.SetUint(n)
	return nil
}

func wrongRange(lowest string, highest uint64, raw json.RawMessage) argumentFaults {
	return wrongArgument("a whole number from "+lowest+" to "+strconv.FormatUint(highest, 10), raw)
}

func decodeFloat(raw json.RawMessage, v reflect.Value) argumentFaults {
	n, faults := readNumber(raw, v.Type().Bits())
	v.SetFloat(n)
	return faults
}

// numberText returns a number, or the number in a string. It refuses other forms
// that strconv accepts: "Inf", "0x1p-2".
func numberText(raw json.RawMessage) (string, bool) {
	s, ok := scalarText(raw)
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

func decodeTextUnmarshaler(raw json.RawMessage, v reflect.Value) argumentFaults {
	s, faults := readText(raw)
	if faults != nil {
		return faults
	}
	if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)) != nil {
		return wrongArgument("text of the form in its description", raw)
	}
	return nil
}

func decodeJSONUnmarshaler(raw json.RawMessage, v reflect.Value) argumentFaults {
	if v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw) != nil {
		return wrongArgument("of the form in its description", raw)
	}
	return nil
}

func decodeRaw(raw json.RawMessage, v reflect.Value) argumentFaults {
	v.SetBytes(raw)
	return nil
}

func decodeBytes(raw json.RawMessage, v reflect.Value) argumentFaults {
	s, ok := scalarText(raw)
	if !ok || raw[0] != '"' {
		return wrongArgument("base64 text", raw)
	}
	decoded, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return wrongArgument("base64 text", raw)
	}
	v.SetBytes(decoded)
	return nil
}

// decodeItem reads an item of a list or a map, which has no field that could
// make it optional.
func (a argument) decodeItem(raw json.RawMessage, v reflect.Value) argumentFaults {
	if isNull(raw) && !a.nullable {
		return missingArgument()
	}
	return a.decode(raw, v)
}

// pointerDecoder leaves the pointer nil for null.
func pointerDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) argumentFaults {
		if isNull(raw) {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return elem.decode(raw, v.Elem())
	}
}

func sliceDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) argumentFaults {
		items := readList(raw)
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		// The list grows with what is good: an item may be far larger than its JSON.
		return decodeItems(elem, items, func(i int) reflect.Value {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			return v.Index(i)
		})
	}
}

func arrayDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) argumentFaults {
		items := readList(raw)
		if len(items) != v.Len() {
			return wrongArgument("a list of exactly "+strconv.Itoa(v.Len())+" values", raw)
		}
		return decodeItems(elem, items, v.Index)
	}
}

// decodeItems stops at the first fault: a list that is wrong throughout is one
// mistake, not one for each item.
func decodeItems(elem argument, items []json.RawMessage, at func(int) reflect.Value) argumentFaults {
	for i, item := range items {
		if faults := elem.decodeItem(item, at(i)); faults != nil {
			return faults.under("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

func mapDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) argumentFaults {
		members, ok := objectMembers(raw)
		if !ok {
			return wrongArgument("an object", raw)
		}
		t := v.Type()
		v.Set(reflect.MakeMapWithSize(t, len(members)))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			item := reflect.New(t.Elem()).Elem()
			if faults := elem.decodeItem(members[name], item); faults != nil {
				return faults.under("." + name)
			}
			v.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), item)
		}
		return nil
	}
}

func structDecoder(fields argumentFields) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) argumentFaults {
		if raw[0] != '{' {
			return wrongArgument("an object", raw)
		}
		values, _ := fields.find(raw)
		return fields.decode(values, v).under(".")
	}
}

func objectMembers(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw[0] != '{' {
		return nil, false
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(raw, &members)
	return members, err == nil
}

// argumentFields are the parameters of a tool, or the fields of an object in
// one.
type argumentFields struct {
	list   []argumentField
	byName map[string]int // position in list
}

func newArgumentFields(list []argumentField) argumentFields {
	fields := argumentFields{list: list, byName: make(map[string]int, len(list))}
	for i, f := range list {
		fields.byName[f.name] = i
	}
	return fields
}

// find returns the value of each field in the object doc, nil if doc does not have
// it, and reports whether doc has any. As in encoding/json, the last member of a
// name is used.
func (f argumentFields) find(doc []byte) (values []json.RawMessage, found bool) {
	values = make([]json.RawMessage, len(f.list))
	for m := range rawjson.Members(doc) {
		if i, ok := f.byName[string(m.Key)]; ok {
			values[i], found = slices.Clip(m.Value), true
		}
	}
	return values, found
}

// decode fills the struct v from the values that find returned, and returns
// every fault in them.
func (f argumentFields) decode(values []json.RawMessage, v reflect.Value) argumentFaults {
	return f.read(values, func(field *argumentField, raw json.RawMessage) argumentFaults {
		return field.decode(raw, v.FieldByIndex(field.index))
	})
}

// object returns the values that are there as a JSON object, each as a value of
// its type.
func (f argumentFields) object(values []json.RawMessage) (json.RawMessage, argumentFaults) {
	size := len("{}")
	for i, raw := range values {
		size += len(f.list[i].name) + len(`"":[],`) + len(raw)
	}
	object := append(make(json.RawMessage, 0, size), '{')
	faults := f.read(values, func(field *argumentField, raw json.RawMessage) (faults argumentFaults) {
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(rawjson.AppendString(object, field.name), ':')
		object, faults = appendArgument(object, field.wireType, raw)
		return faults
	})
	return append(object, '}'), faults
}

// read calls use for each value that is there, and returns every fault.
func (f argumentFields) read(values []json.RawMessage, use func(*argumentField, json.RawMessage) argumentFaults) argumentFaults {
	var all argumentFaults
	for i := range f.list {
		field := &f.list[i]
		switch {
		case !field.absent(values[i]):
			all = append(all, use(field, values[i]).under(field.name)...)
		case !field.optional:
			all = append(all, missingArgument().under(field.name)...)
		}
	}
	return all
}

// absent reports whether raw means that there is no value.
func (a argument) absent(raw json.RawMessage) bool {
	return isNull(raw) || a.blankIsAbsent && isBlank(raw)
}
