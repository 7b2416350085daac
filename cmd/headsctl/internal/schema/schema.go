// Package schema checks the values of a text by a JSON Schema, and finds all faults with
// their places.
//
// It knows the keywords that the schemas of this module use. Beside those of draft 2020-12
// these are errorMessage and patternErrorMessage, which editors show too: the fault of a
// value, or of a key that is missing. Where such a message begins with "this is", the
// reader puts the value in the place of "this".
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/internal/nearest"
)

// Schema is a schema, whose $ref all have the form #/$defs/NAME.
type Schema struct {
	root  *jsonschema.Schema
	regex sync.Map // of patterns
}

// MustParse returns the schema of a text.
func MustParse(text []byte) *Schema {
	s := &Schema{root: &jsonschema.Schema{}}
	if err := json.Unmarshal(text, s.root); err != nil {
		panic(err)
	}
	written, err := yamltext.Parse(text)
	if err != nil {
		panic(err)
	}
	setOrder(s.root, written)
	return s
}

// setOrder keeps the order in which a schema has its keys.
func setOrder(s *jsonschema.Schema, written *yamltext.Value) {
	if s == nil || written == nil {
		return
	}
	setOrder(s.Items, written.Get("items"))
	setOrder(s.AdditionalProperties, written.Get("additionalProperties"))
	setOrder(s.Then, written.Get("then"))
	setOrder(s.Else, written.Get("else"))
	for i, branch := range s.OneOf {
		setOrder(branch, written.Get("oneOf").Items[i])
	}
	for name, definition := range s.Defs {
		setOrder(definition, written.Get("$defs").Get(name))
	}
	if properties := written.Get("properties"); properties != nil {
		for _, m := range properties.Members {
			s.PropertyOrder = append(s.PropertyOrder, m.Key)
			setOrder(s.Properties[m.Key], m.Value)
		}
	}
}

// Checks find what a schema can't tell. Each checks the values of one definition, by its
// name in $defs, in which the schema has found no fault. It may change the value.
type Checks map[string]func(*yamltext.Value) error

// Check returns all faults of a value, in the order of the text. The value is that of a
// definition, or of the whole schema for "".
func (s *Schema) Check(v *yamltext.Value, definition string, more Checks) []error {
	w := walker{schema: s, more: more, told: map[string]bool{}}
	of := s.root
	if definition != "" {
		of = &jsonschema.Schema{Ref: definitions + definition}
	}
	w.walk(v, of, "")
	return w.faults
}

// Branch returns the key by which an object is one of the schemas of a definition.
func (s *Schema) Branch(definition string, v *yamltext.Value) string {
	for _, m := range v.Members {
		if branchBy(s.root.Defs[definition].OneOf, m.Key) != nil {
			return m.Key
		}
	}
	return ""
}

// branchBy returns the schema that requires a key, or nil.
func branchBy(all []*jsonschema.Schema, key string) *jsonschema.Schema {
	i := slices.IndexFunc(all, func(s *jsonschema.Schema) bool { return slices.Contains(s.Required, key) })
	if i < 0 {
		return nil
	}
	return all[i]
}

const definitions = "#/$defs/"

// walker walks a schema beside a value.
type walker struct {
	schema *Schema
	more   Checks
	faults []error
	told   map[string]bool
	found  int // faults, also those that are told already
	hints  int
}

// fault adds a fault, unless there is one with the same key: that is told once.
func (w *walker) fault(key string, err error) {
	w.found++
	if w.told != nil && !w.told[key] {
		w.told[key] = true
		w.faults = append(w.faults, err)
	}
}

// faultAt adds a fault of a place, which has one at most.
func (w *walker) faultAt(err error) {
	key := err.Error()
	if placed, ok := err.(*yamltext.Error); ok { //nolint:errorlint // what wraps one has another place
		key = fmt.Sprint(placed.Line, ":", placed.Column)
	}
	w.fault(key, err)
}

// holds reports whether a value has no fault.
func (w *walker) holds(v *yamltext.Value, s *jsonschema.Schema) bool {
	test := walker{schema: w.schema}
	test.walk(v, s, "")
	return test.found == 0
}

func messageOf(s *jsonschema.Schema) string {
	text, _ := s.Extra["errorMessage"].(string)
	return text
}

var anything = &jsonschema.Schema{}

// walk checks a value. A message that is given goes before that of the schema.
func (w *walker) walk(v *yamltext.Value, s *jsonschema.Schema, message string) {
	if message == "" {
		message = messageOf(s)
	}
	if name, ok := strings.CutPrefix(s.Ref, definitions); ok {
		before := w.found
		w.walk(v, w.schema.root.Defs[name], message)
		if check := w.more[name]; check != nil && w.found == before {
			for _, err := range yamltext.Faults(check(v)) {
				w.fault(err.Error(), err)
			}
		}
		return
	}
	if err := w.own(v, s, message); err != nil {
		w.faultAt(err)
		return
	}
	switch {
	case s.OneOf != nil:
		w.oneOf(v, s.OneOf, message)
		return
	case s.AnyOf != nil && !slices.ContainsFunc(s.AnyOf, func(s *jsonschema.Schema) bool { return w.holds(v, s) }):
		w.faultAt(says(v, message))
	case v.Kind == yamltext.Object:
		w.object(v, s, message)
	}
	for _, item := range v.Items {
		w.walk(item, orAnything(s.Items), "")
	}
	if s.If == nil {
		return
	}
	then := s.Else
	if w.holds(v, s.If) {
		then = s.Then
	}
	if then != nil {
		w.walk(v, then, "")
	}
}

func orAnything(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return anything
	}
	return s
}

// own returns the fault of a value apart from what is in it.
func (w *walker) own(v *yamltext.Value, s *jsonschema.Schema, message string) error {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(name string) bool { return isOf(v, name) }) {
		return wrongType(v, types, message)
	}
	if v.Kind == yamltext.Date || v.Kind == yamltext.Number && !slices.Contains(types, "string") {
		if _, err := v.AppendJSON(nil); err != nil {
			return err
		}
	}
	if s.Const != nil && text(*s.Const) != text(v) {
		return says(v, message)
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(word any) bool { return text(word) == text(v) }) {
		return w.unknownWord(v, words(s), message)
	}
	pattern, _ := s.Extra["patternErrorMessage"].(string)
	switch v.Kind {
	case yamltext.Text:
		switch {
		case s.Pattern != "" && !w.matches(s.Pattern, v.Text):
			return says(v, pattern)
		case s.MinLength != nil && utf8.RuneCountInString(v.Text) < *s.MinLength:
			return says(v, message)
		}
	case yamltext.Number:
		n, err := strconv.ParseFloat(v.Text, 64)
		if s.Minimum != nil && !(err == nil && n >= *s.Minimum) || s.Maximum != nil && !(err == nil && n <= *s.Maximum) ||
			s.ExclusiveMinimum != nil && !(err == nil && n > *s.ExclusiveMinimum) {
			return says(v, message)
		}
	case yamltext.List:
		if s.MinItems != nil && len(v.Items) < *s.MinItems {
			return says(v, message)
		}
	case yamltext.Object:
		if s.MinProperties != nil && len(v.Members) < *s.MinProperties || s.MaxProperties != nil && len(v.Members) > *s.MaxProperties {
			return says(v, message)
		}
	}
	return nil
}

const (
	thisIs   = "this is "
	leaveOut = "leave one of them out"
)

// says returns the fault of a message.
func says(v *yamltext.Value, message string) error {
	if rest, ok := strings.CutPrefix(message, thisIs); ok {
		return v.Errorf("%s is %s", v.Shown(), rest)
	}
	return v.Errorf("%s", message)
}

// text returns a value as JSON.
func text(v any) string {
	if v, ok := v.(*yamltext.Value); ok {
		document, _ := v.AppendJSON(nil)
		return string(document)
	}
	document, _ := json.Marshal(v)
	return string(document)
}

// kinds has the kinds of values by their names in a schema.
var kinds = map[string]yamltext.Kind{
	"null": yamltext.Null, "boolean": yamltext.Bool, "number": yamltext.Number, "integer": yamltext.Number, "string": yamltext.Text, "array": yamltext.List, "object": yamltext.Object,
}

var whole = regexp.MustCompile(`^-?\d+$`)

func isOf(v *yamltext.Value, name string) bool {
	return v.Kind == kinds[name] && (name != "integer" || whole.MatchString(v.Text))
}

// wrongType is the fault of a value that has none of the types.
func wrongType(v *yamltext.Value, types []string, message string) error {
	isScalar := slices.Contains([]yamltext.Kind{yamltext.Bool, yamltext.Number, yamltext.Date}, v.Kind)
	switch {
	case isScalar && slices.Contains(types, "string") && !slices.Contains(types, "integer"):
		return v.Want(yamltext.Text)
	case message != "":
		return says(v, message)
	case v.Kind == yamltext.Number && slices.Contains(types, "integer"):
		return v.Errorf("%s is not a whole number", v.Shown())
	}
	return v.Want(kinds[types[0]])
}

// words returns the texts that a schema allows.
func words(s *jsonschema.Schema) (texts []string) {
	for _, word := range s.Enum {
		if text, ok := word.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (w *walker) unknownWord(v *yamltext.Value, known []string, message string) error {
	if message != "" {
		return says(v, message)
	}
	return v.Errorf("%s is unknown%s; use one of %s", v.Shown(), w.hint(v.Text, known), strings.Join(known, ", "))
}

func (w *walker) hint(wrong string, known []string) string {
	if w.hints++; w.hints > yamltext.MaxHints {
		return ""
	}
	return similar.Hint(wrong, known)
}

func (w *walker) matches(pattern, text string) bool {
	compiled, ok := w.schema.regex.Load(pattern)
	if !ok {
		compiled, _ = w.schema.regex.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return compiled.(*regexp.Regexp).MatchString(text)
}

// object checks the members of an object. A key that is required and null is missing.
// One that an unknown key was meant to be is not told.
func (w *walker) object(v *yamltext.Value, s *jsonschema.Schema, message string) {
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	unknown := func(m yamltext.Member) bool { return closed && s.Properties[m.Key] == nil }
	missing := slices.DeleteFunc(slices.Clone(s.Required), func(key string) bool {
		value := v.Get(key)
		return value != nil && (value.Kind != yamltext.Null || w.holds(value, orAnything(s.Properties[key])))
	})
	for _, key := range missing {
		meant := slices.ContainsFunc(v.Members, func(m yamltext.Member) bool {
			return unknown(m) && (len(v.Members) == 1 || nearest.Name(m.Key, s.PropertyOrder) == key)
		})
		if !meant {
			err := v.Errorf("%s", w.missingText(key, s.Properties[key]))
			w.fault(err.Error(), err)
		}
	}
	for _, m := range v.Members {
		switch {
		case slices.Contains(missing, m.Key):
		case unknown(m):
			w.unknownKey(m, s.PropertyOrder, message)
		case s.Properties[m.Key] != nil:
			w.walk(m.Value, s.Properties[m.Key], "")
		default:
			if s.PropertyNames != nil {
				w.walk(m.KeyValue(), s.PropertyNames, "")
			}
			w.walk(m.Value, orAnything(s.AdditionalProperties), "")
		}
	}
}

func (w *walker) missingText(key string, s *jsonschema.Schema) string {
	for ; s != nil; s = w.schema.root.Defs[strings.TrimPrefix(s.Ref, definitions)] {
		if message := messageOf(s); message != "" {
			return message
		}
		if s.Enum != nil {
			return key + " is missing; use one of " + strings.Join(words(s), ", ")
		}
	}
	return key + " is missing; give it"
}

func (w *walker) unknownKey(m yamltext.Member, known []string, message string) {
	if message == "" {
		message = "the keys here are " + strings.Join(known, ", ")
	}
	key := m.KeyValue()
	w.faultAt(key.Errorf("unknown key %s%s; %s", key.Shown(), w.hint(m.Key, known), message))
}

// oneOf checks a value by one of several schemas. For an object that is the one whose
// required key it has.
func (w *walker) oneOf(v *yamltext.Value, all []*jsonschema.Schema, message string) {
	var chosen *jsonschema.Schema
	by := ""
	var keys []string
	for _, s := range all {
		if v.Kind != yamltext.Object && s.Required == nil {
			w.walk(v, s, message)
			return
		}
		keys = append(keys, s.Required...)
	}
	if v.Kind != yamltext.Object {
		w.faultAt(wrongType(v, []string{"object"}, message))
		return
	}
	for _, m := range v.Members {
		branch := branchBy(all, m.Key)
		switch {
		case branch == nil:
		case chosen == nil:
			chosen, by = branch, m.Key
		default:
			if strings.HasPrefix(message, thisIs) {
				message = leaveOut
			}
			w.faultAt(m.KeyValue().Errorf("%s does not go with %s; %s", m.Key, by, message))
			return
		}
	}
	isKnown := func(m yamltext.Member) bool {
		return slices.ContainsFunc(all, func(s *jsonschema.Schema) bool { return s.Properties[m.Key] != nil })
	}
	if chosen == nil {
		for _, m := range v.Members {
			if !isKnown(m) {
				w.unknownKey(m, keys, message)
				return
			}
		}
		w.faultAt(says(v, message))
		return
	}
	rest := *v
	rest.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m yamltext.Member) bool {
		foreign := chosen.Properties[m.Key] == nil && isKnown(m)
		if foreign {
			w.faultAt(m.KeyValue().Errorf("%s does not go with %s; %s", m.Key, by, leaveOut))
		}
		return foreign
	})
	w.walk(&rest, chosen, "")
}

// Bundle returns a schema with the definitions of another one, to which its $ref point by
// the name of that file.
func Bundle(text []byte, file string, other []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(file+definitions), []byte(definitions))
	before, after, _ := bytes.Cut(text, []byte(`"$defs": {`))
	_, added, _ := bytes.Cut(other, []byte(`"$defs": {`))
	added = added[:bytes.LastIndex(added, []byte("\n  }"))]
	return fmt.Appendf(nil, "%s\"$defs\": {%s,%s", before, added, after)
}
