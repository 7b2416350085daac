package toolargs

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

func decodeString(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	s, faults := readText(raw)
	v.SetString(s)
	return faults
}

func decodeBool(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	yes, faults := readBool(raw)
	v.SetBool(yes)
	return faults
}

func decodeInt(raw json.RawMessage, v reflect.Value) ArgumentErrors {
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

func decodeUint(raw json.RawMessage, v reflect.Value) ArgumentErrors {
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

func decodeFloat(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	n, faults := readNumber(raw, v.Type().Bits())
	v.SetFloat(n)
	return faults
}

func decodeTextUnmarshaler(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	s, faults := readText(raw)
	if faults != nil {
		return faults
	}
	if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)) != nil {
		return wrong("text of the form in its description", raw)
	}
	return nil
}

func decodeJSONUnmarshaler(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	if v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw) != nil {
		return wrong("of the form in its description", raw)
	}
	return nil
}

func decodeRaw(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	v.SetBytes(raw)
	return nil
}

func decodeBytes(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	s, ok := ScalarText(raw)
	if !ok || raw[0] != '"' {
		return wrong("base64 text", raw)
	}
	decoded, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return wrong("base64 text", raw)
	}
	v.SetBytes(decoded)
	return nil
}

// decodeItem reads an item of a list or a map, which has no field that could
// make it optional.
func (a argument) decodeItem(raw json.RawMessage, v reflect.Value) ArgumentErrors {
	if IsNull(raw) && !a.nullable {
		return missing()
	}
	return a.decode(raw, v)
}

// pointerDecoder leaves the pointer nil for null.
func pointerDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		if IsNull(raw) {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return elem.decode(raw, v.Elem())
	}
}

func sliceDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
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
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		items := readList(raw)
		if len(items) != v.Len() {
			return wrong("a list of exactly "+strconv.Itoa(v.Len())+" values", raw)
		}
		return decodeItems(elem, items, v.Index)
	}
}

// decodeItems stops at the first fault: a list that is wrong throughout is one
// mistake, not one for each item.
func decodeItems(elem argument, items []json.RawMessage, at func(int) reflect.Value) ArgumentErrors {
	for i, item := range items {
		if faults := elem.decodeItem(item, at(i)); faults != nil {
			return faults.under("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

func mapDecoder(elem argument) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		members, ok := objectMembers(raw)
		if !ok {
			return wrong("an object", raw)
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

func structDecoder(fields Fields) decodeFunc {
	return func(raw json.RawMessage, v reflect.Value) ArgumentErrors {
		if raw = unquoted(raw, '{'); raw[0] != '{' {
			return wrong("an object", raw)
		}
		values, _ := fields.find(raw)
		return fields.Decode(values, v).under(".")
	}
}
