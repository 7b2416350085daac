// Package exactjson decodes the documents of the service. Package json takes a name in
// any letter case for a field, and the last of two equal names. Here a name is exact:
// "ttsvoice" is not ttsVoice, and a field that occurs twice is an error.
package exactjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// DuplicateError reports a field that occurs twice in one object.
type DuplicateError struct {
	Field string // a path such as "organisation.id"
}

func (e *DuplicateError) Error() string { return fmt.Sprintf("field %q occurs twice", e.Field) }

// Rules are what a type accepts besides the contract. The path of a field is
// "organisation.slots" for one in an inner object. Both functions are called only for
// a value of another type, and may be nil.
type Rules struct {
	// Open reports whether another type leaves a field zero instead of being an error.
	Open func(path string) bool
	// Mend returns a value in the form of the contract, or nil if there is none.
	Mend func(path string, value []byte) []byte
}

// Decode reads a JSON object into the struct that v points to, by the tags of package
// json. A field that doc does not have keeps its value. Names that v does not have are
// ignored. The document must be valid JSON. The strings in v share one copy of it.
//
// A number may be in quotes. Any other value of another type is a
// *json.UnmarshalTypeError.
func Decode(doc []byte, v any, rules Rules) error {
	doc = bytes.TrimSpace(doc)
	return rules.object(value{doc, string(doc)}, reflect.ValueOf(v).Elem(), "")
}

// value is a part of a document, and the same part of the copy that strings share.
type value struct {
	raw  []byte
	text string
}

// part returns the value of a member of an object.
func (v value) part(offset, size int) value {
	return value{v.raw[offset : offset+size], v.text[offset : offset+size]}
}

// first returns the first byte of a value, by which its type is told. A document that
// is not JSON may have an empty value.
func first(text string) byte {
	if text == "" {
		return 0
	}
	return text[0]
}

// Once returns a *DuplicateError if one of the names occurs twice in the object doc,
// which must be valid JSON.
func Once[T rawjson.Text](doc T, names ...string) error {
	var seen uint64
	for m := range rawjson.Members(doc) {
		i := indexOf(names, m.Key)
		if i < 0 {
			continue
		}
		if seen&(1<<i) != 0 {
			return &DuplicateError{names[i]}
		}
		seen |= 1 << i
	}
	return nil
}

// Unique returns a *DuplicateError if any name occurs twice in the object doc.
func Unique[T rawjson.Text](doc T) error {
	seen := map[string]bool{}
	for m := range rawjson.Members(doc) {
		if seen[string(m.Key)] {
			return &DuplicateError{string(m.Key)}
		}
		seen[string(m.Key)] = true
	}
	return nil
}

// Known returns an error if the object doc has a name twice, or one that v, a pointer to
// a struct, does not declare. Any other v declares every name. Package json, even without
// unknown fields, takes other spellings.
func Known(doc []byte, v any) error {
	for m := range rawjson.Members(doc) {
		if !declares(reflect.TypeOf(v).Elem(), string(m.Key)) {
			return fmt.Errorf("unknown field %q", m.Key)
		}
	}
	return Unique(doc)
}

func declares(t reflect.Type, name string) bool {
	if t.Kind() != reflect.Struct {
		return true
	}
	if _, ok := fieldsOf(t)[name]; ok {
		return true
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && declares(f.Type, name) {
			return true
		}
	}
	return false
}

func indexOf[T rawjson.Text](names []string, name T) int {
	for i := range names {
		if names[i] == string(name) {
			return i
		}
	}
	return -1
}

// Mismatch returns the error of a value of another type than want. The field is "" for
// the document itself.
func Mismatch[T rawjson.Text](field string, value T, want reflect.Type) error {
	return &json.UnmarshalTypeError{Field: field, Value: rawjson.Kind(value), Type: want}
}

// Under puts a field before the path in an error of this package.
func Under(field string, err error) error {
	var mismatch *json.UnmarshalTypeError
	var twice *DuplicateError
	switch {
	case errors.As(err, &mismatch):
		mismatch.Field = join(field, mismatch.Field)
	case errors.As(err, &twice):
		twice.Field = join(field, twice.Field)
	}
	return err
}

func join(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "." + inner
}

// field is one field of a struct.
type field struct {
	name   string
	index  int  // in the struct, below maxFields
	nested bool // decoded by object
}

// fields are the fields of a struct by their names in JSON.
type fields map[string]field

const maxFields = 64 // one bit each

var known sync.Map // from reflect.Type to fields

func fieldsOf(t reflect.Type) fields {
	if f, ok := known.Load(t); ok {
		return f.(fields)
	}
	if t.NumField() > maxFields {
		panic("exactjson: " + t.Name() + " has too many fields")
	}
	f := fields{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			f[name] = field{name, i, isNested(t.Field(i).Type)}
		}
	}
	known.Store(t, f)
	return f
}

func isNested(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Struct && !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// object fills the struct v. The path is that of the object itself.
func (r Rules) object(doc value, v reflect.Value, path string) error {
	if first(doc.text) != '{' {
		return Mismatch("", doc.text, v.Type())
	}
	known := fieldsOf(v.Type())
	var seen uint64
	for m := range rawjson.Members(doc.text) {
		f, ok := known[m.Key]
		if !ok {
			continue
		}
		if seen&(1<<f.index) != 0 {
			return &DuplicateError{f.name}
		}
		seen |= 1 << f.index
		if err := r.field(doc.part(m.Offset(), len(m.Value)), v.Field(f.index), f, path); err != nil {
			return Under(f.name, err)
		}
	}
	return nil
}

// field is decode with the rules. It builds the path of the field only where it is
// needed.
func (r Rules) field(from value, v reflect.Value, f field, outer string) error {
	path := ""
	if f.nested {
		path = join(outer, f.name)
	}
	err := r.decode(from, v, path)
	if err == nil || !errors.As(err, new(*json.UnmarshalTypeError)) {
		return err
	}
	path = join(outer, f.name)
	if r.Mend != nil {
		if better := r.Mend(path, from.raw); better != nil {
			v.SetZero()
			return r.decode(value{better, string(better)}, v, path)
		}
	}
	if r.Open != nil && r.Open(path) {
		v.SetZero()
		return nil
	}
	return err
}

// decode reads one value as package json does. The types are those of the documents.
func (r Rules) decode(from value, v reflect.Value, path string) error {
	null := first(from.text) == 'n'
	if v.Kind() == reflect.Pointer {
		if null {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return r.decode(from, v.Elem(), path)
	}
	switch into := v.Addr().Interface().(type) {
	case *[]string:
		return setList(from.text, into)
	case *map[string]string:
		return setWords(from.text, into)
	case json.Unmarshaler:
		return into.UnmarshalJSON(from.raw)
	case encoding.TextUnmarshaler:
		switch {
		case null:
			return nil
		case first(from.text) != '"':
			return Mismatch("", from.text, reflect.TypeFor[string]())
		}
		return into.UnmarshalText([]byte(rawjson.Unquote(from.text)))
	}
	switch {
	case null:
		return nil
	case v.Kind() == reflect.Struct:
		return r.object(from, v, path)
	case !setScalar(from.text, v):
		return Mismatch("", from.text, v.Type())
	}
	return nil
}

// setScalar reports whether the value is of the kind of v.
func setScalar(text string, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		if first(text) != '"' {
			return false
		}
		v.SetString(rawjson.Unquote(text))
		return true
	case reflect.Bool:
		v.SetBool(text == "true")
		return text == "true" || text == "false"
	case reflect.Float64:
		digits, ok := rawjson.Number(text)
		number, err := strconv.ParseFloat(digits, 64)
		v.SetFloat(number)
		return ok && err == nil
	case reflect.Int64:
		digits, ok := rawjson.Number(text)
		number, err := strconv.ParseInt(digits, 10, 64)
		v.SetInt(number)
		return ok && err == nil
	}
	panic("exactjson: no way to decode " + v.Type().String())
}

// textOf reads an element of a list or of an object of strings. Null is an empty
// string.
func textOf(text string) (s string, ok bool) {
	switch first(text) {
	case '"':
		return rawjson.Unquote(text), true
	case 'n':
		return "", true
	}
	return "", false
}

func setList(text string, into *[]string) error {
	switch first(text) {
	case '[':
	case 'n':
		*into = nil
		return nil
	default:
		return Mismatch("", text, reflect.TypeFor[[]string]())
	}
	var few [16]string // one allocation for a list of the usual length
	list := few[:0]
	for element := range rawjson.Elements(text) {
		s, ok := textOf(element)
		if !ok {
			return odd("array", element, reflect.TypeFor[[]string]())
		}
		list = append(list, s)
	}
	*into = append(make([]string, 0, len(list)), list...)
	return nil
}

func setWords(text string, into *map[string]string) error {
	switch first(text) {
	case '{':
	case 'n':
		*into = nil
		return nil
	default:
		return Mismatch("", text, reflect.TypeFor[map[string]string]())
	}
	words := map[string]string{}
	for m := range rawjson.Members(text) {
		spoken, ok := textOf(m.Value)
		if !ok {
			return odd("object", m.Value, reflect.TypeFor[map[string]string]())
		}
		words[m.Key] = spoken
	}
	*into = words
	return nil
}

// odd is the error of a value with an element of another type.
func odd(kind, element string, want reflect.Type) error {
	found := rawjson.Kind(element)
	article := "a "
	if strings.ContainsAny(found[:1], "ao") {
		article = "an "
	}
	return &json.UnmarshalTypeError{Value: kind + " with " + article + found + " in it", Type: want}
}
