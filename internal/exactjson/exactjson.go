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
// ignored. The document must be valid JSON; v keeps no part of it.
//
// A value of another type is a *json.UnmarshalTypeError.
func Decode(doc []byte, v any, rules Rules) error {
	return rules.object(bytes.TrimSpace(doc), reflect.ValueOf(v).Elem(), "")
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
// a struct, does not declare. Any other v declares every name. Package json, even without unknown fields, takes other
// spellings.
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
func (r Rules) object(doc []byte, v reflect.Value, path string) error {
	if first(doc) != '{' {
		return Mismatch("", doc, v.Type())
	}
	known := fieldsOf(v.Type())
	var seen uint64
	for m := range rawjson.Members(doc) {
		f, ok := known[string(m.Key)]
		if !ok {
			continue
		}
		if seen&(1<<f.index) != 0 {
			return &DuplicateError{f.name}
		}
		seen |= 1 << f.index
		if err := r.field(m.Value, v.Field(f.index), f, path); err != nil {
			return Under(f.name, err)
		}
	}
	return nil
}

// field is value with the rules. It builds the path of the field only where it is
// needed.
func (r Rules) field(value []byte, v reflect.Value, f field, outer string) error {
	path := ""
	if f.nested {
		path = join(outer, f.name)
	}
	err := r.value(value, v, path)
	if err == nil || !errors.As(err, new(*json.UnmarshalTypeError)) {
		return err
	}
	path = join(outer, f.name)
	if r.Mend != nil {
		if better := r.Mend(path, value); better != nil {
			v.SetZero()
			return r.value(better, v, path)
		}
	}
	if r.Open != nil && r.Open(path) {
		v.SetZero()
		return nil
	}
	return err
}

// value decodes one value as package json does. The types are those of the documents.
func (r Rules) value(value []byte, v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		return r.pointer(value, v, path)
	}
	null := first(value) == 'n'
	switch into := v.Addr().Interface().(type) {
	case *string:
		return setText(value, into)
	case *[]string:
		return setList(value, into)
	case *map[string]string:
		return setWords(value, into)
	case json.Unmarshaler:
		return into.UnmarshalJSON(value)
	case encoding.TextUnmarshaler:
		switch {
		case null:
			return nil
		case first(value) != '"':
			return Mismatch("", value, reflect.TypeFor[string]())
		}
		return into.UnmarshalText([]byte(rawjson.Unquote(value)))
	}
	if null {
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return r.object(value, v, path)
	case reflect.String:
		if first(value) != '"' {
			return Mismatch("", value, v.Type())
		}
		v.SetString(rawjson.Unquote(value))
		return nil
	case reflect.Bool:
		if first(value) != 't' && first(value) != 'f' {
			return Mismatch("", value, v.Type())
		}
		v.SetBool(first(value) == 't')
		return nil
	case reflect.Float64:
		number, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return Mismatch("", value, v.Type())
		}
		v.SetFloat(number)
		return nil
	case reflect.Int64:
		number, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return Mismatch("", value, v.Type())
		}
		v.SetInt(number)
		return nil
	}
	panic("exactjson: no way to decode " + v.Type().String())
}

// first returns the first byte of a value, by which its type is told. A document that
// is not JSON may have an empty value.
func first(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

func (r Rules) pointer(value []byte, v reflect.Value, path string) error {
	if first(value) == 'n' {
		v.SetZero()
		return nil
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return r.value(value, v.Elem(), path)
}

func setText(value []byte, into *string) error {
	switch first(value) {
	case '"':
		*into = rawjson.Unquote(value)
	case 'n':
	default:
		return Mismatch("", value, reflect.TypeFor[string]())
	}
	return nil
}

func setList(value []byte, into *[]string) error {
	switch first(value) {
	case '[':
	case 'n':
		*into = nil
		return nil
	default:
		return Mismatch("", value, reflect.TypeFor[[]string]())
	}
	var few [16]string // one allocation for a list of the usual length
	list := few[:0]
	for element := range rawjson.Elements(value) {
		list = append(list, "")
		if setText(element, &list[len(list)-1]) != nil {
			return odd("array", element, reflect.TypeFor[[]string]())
		}
	}
	*into = append(make([]string, 0, len(list)), list...)
	return nil
}

func setWords(value []byte, into *map[string]string) error {
	switch first(value) {
	case '{':
	case 'n':
		*into = nil
		return nil
	default:
		return Mismatch("", value, reflect.TypeFor[map[string]string]())
	}
	words := map[string]string{}
	for m := range rawjson.Members(value) {
		var spoken string
		if setText(m.Value, &spoken) != nil {
			return odd("object", m.Value, reflect.TypeFor[map[string]string]())
		}
		words[string(m.Key)] = spoken
	}
	*into = words
	return nil
}

// odd is the error of a value with an element of another type.
func odd(kind string, element []byte, want reflect.Type) error {
	found := rawjson.Kind(element)
	article := "a "
	if strings.ContainsAny(found[:1], "ao") {
		article = "an "
	}
	return &json.UnmarshalTypeError{Value: kind + " with " + article + found + " in it", Type: want}
}
