// Package toolargs reads the arguments of a tool call. The parameters of a tool come
// from a Go struct (FromStruct) or from declarations (Declared).
//
// A language model writes the arguments. So this package accepts every form that has
// one possible meaning, and describes every other fault in words that the model can
// act on.
package toolargs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// SessionMetadata is the name of the member next to the arguments in the body of a
// call. It holds the session.
const SessionMetadata = "session_metadata"

// Fields are the parameters of a tool, or the fields of an object in one.
type Fields struct {
	list   []Field
	byName map[string]int // position in list
}

// NewFields returns Fields with the names of list, which must differ.
func NewFields(list []Field) Fields {
	fields := Fields{list: list, byName: make(map[string]int, len(list))}
	for i, f := range list {
		fields.byName[f.Name] = i
	}
	return fields
}

// List returns the fields in their order. The caller must not change them.
func (f Fields) List() []Field { return f.list }

// Split returns the value of each field in the body of a call, nil for one that the
// body does not have, and the session. The arguments are members of the body, or, if
// it has none of the fields, of the object "parameters" or "arguments" in it.
func (f Fields) Split(body []byte) (values []json.RawMessage, session json.RawMessage) {
	session = sessionOf(body)
	values, found := f.find(body)
	for _, name := range []string{"parameters", "arguments"} {
		if found {
			break
		}
		nested, _ := rawjson.Value(body, name)
		values, found = f.find(nested)
	}
	return values, slices.Clip(session)
}

// sessionOf returns the session_metadata of a call. If it occurs twice, sessionOf
// returns nil, since no one can tell which is true.
func sessionOf(body []byte) json.RawMessage {
	if exactjson.Once(body, SessionMetadata) != nil {
		return nil
	}
	session, _ := rawjson.Value(body, SessionMetadata)
	return session
}

// find returns the value of each field in the object doc, nil if doc does not have
// it, and reports whether doc has any. As in encoding/json, the last member of a
// name is used.
func (f Fields) find(doc []byte) (values []json.RawMessage, found bool) {
	values = make([]json.RawMessage, len(f.list))
	for m := range rawjson.Members(doc) {
		if i, ok := f.byName[string(m.Key)]; ok {
			values[i], found = slices.Clip(m.Value), true
		}
	}
	return values, found
}

// Decode sets the fields of the struct v, whose type was given to FromStruct, from the
// values that Split returned. It returns every fault in them.
func (f Fields) Decode(values []json.RawMessage, v reflect.Value) ArgumentErrors {
	return f.read(values, func(field *Field, raw json.RawMessage) ArgumentErrors {
		return field.decode(raw, v.FieldByIndex(field.index))
	})
}

// Object returns the values that Split returned as a JSON object without those that are
// absent. Each is a value of its field's type.
func (f Fields) Object(values []json.RawMessage) (json.RawMessage, ArgumentErrors) {
	size := len("{}")
	for i, raw := range values {
		size += len(f.list[i].Name) + len(`"":[],`) + len(raw)
	}
	object := append(make(json.RawMessage, 0, size), '{')
	faults := f.read(values, func(field *Field, raw json.RawMessage) (faults ArgumentErrors) {
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(rawjson.AppendString(object, field.Name), ':')
		object, faults = appendValue(object, field.wireType, raw)
		return faults
	})
	return append(object, '}'), faults
}

// read calls use for each value that is present, and returns every fault.
func (f Fields) read(values []json.RawMessage, use func(*Field, json.RawMessage) ArgumentErrors) ArgumentErrors {
	var all ArgumentErrors
	for i := range f.list {
		field := &f.list[i]
		switch {
		case !field.absent(values[i]):
			all = append(all, use(field, values[i]).under(field.Name)...)
		case !field.optional:
			all = append(all, missing().under(field.Name)...)
		}
	}
	return all
}

// Field is one parameter of a tool, or one field of an object in it.
type Field struct {
	argument
	Name, Description string

	goName   string // with the fields that it is in: "Address.Street"
	index    []int
	optional bool
}

// Declared returns a field without a Go type, for Fields.Object. Its type is one of
// the types of JSON, or several scalar ones with "|" between them.
func Declared(name, wireType string, required bool) Field {
	f := Field{Name: name, optional: !required}
	f.wireType, f.blankIsAbsent = wireType, wireType != "string"
	if types := strings.Split(wireType, "|"); len(types) > 1 && !slices.ContainsFunc(types, notScalar) {
		f.wireType, f.blankIsAbsent = anyScalar, !slices.Contains(types, "string")
	}
	return f
}

// WireType returns the type to register for the field: string, number, integer,
// boolean, array or object. It returns what was given to Declared if that is no type.
func (f Field) WireType() string {
	if f.wireType == anyScalar {
		return "string"
	}
	return f.wireType
}

// argument is one Go type as a tool's argument: the type that is registered,
// and how a value is read.
type argument struct {
	wireType      string
	decode        decodeFunc
	blankIsAbsent bool // a blank string means that there is no value
	nullable      bool // null is a value
}

// decodeFunc sets v from raw, which is one JSON value and not null.
type decodeFunc func(raw json.RawMessage, v reflect.Value) ArgumentErrors

// absent reports whether raw means that there is no value.
func (a argument) absent(raw json.RawMessage) bool {
	return IsNull(raw) || a.blankIsAbsent && isBlank(raw)
}
