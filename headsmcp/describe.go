package headsmcp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxText   = 1000 // characters of a description, before the facts
	maxValues = 50   // of an enum
	maxLevels = 4    // of lists and objects in each other
	maxWords  = 2000 // types named in one description
)

// sentence returns text on one line of at most maxText characters, with a full
// stop after it.
func sentence(text string) string {
	text = clip(strings.Join(strings.Fields(oneLine(text)), " "), maxText)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// oneLine returns text with a space for each line break and each other control
// character.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit]))
}

// ownText returns the description of s, or its title.
func (s schema) ownText() string {
	for _, key := range []string{"description", "title"} {
		if text, _ := s.keys[key].(string); strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// in reports whether s is one of the schemas that are open.
func (s schema) in(open []string) bool {
	return slices.ContainsFunc(s.refs, func(ref string) bool { return slices.Contains(open, ref) })
}

// describer writes the facts of one parameter.
type describer struct {
	d     document
	words int
}

// facts returns what the schema says of the values, in sentences.
func (w *describer) facts(s schema, open []string, optional bool) []string {
	var facts []string
	add := func(before, value, after string) { facts = append(facts, before+value+after+".") }
	switch {
	case s.anyValue():
		add("Any JSON value", "", "")
	case len(s.types) > 1:
		add(article(s.types[0]), strings.Join(s.types, " or "), "")
	}
	if values, ok := s.keys["enum"].([]any); ok {
		add("One of: ", values50(values), "")
	}
	for _, f := range []struct{ key, before, after string }{
		{"const", "Always ", ""},
		{"format", "Format: ", ""},
		{"pattern", "Pattern: ", ""},
		{"minimum", "At least ", ""},
		{"exclusiveMinimum", "More than ", ""},
		{"maximum", "At most ", ""},
		{"exclusiveMaximum", "Less than ", ""},
		{"multipleOf", "A multiple of ", ""},
		{"minLength", "At least ", " characters"},
		{"maxLength", "At most ", " characters"},
		{"minItems", "At least ", " items"},
		{"maxItems", "At most ", " items"},
	} {
		value, ok := s.keys[f.key]
		plain, isText := value.(string)
		switch {
		case !ok:
		case isText && (f.key == "format" || f.key == "pattern"):
			add(f.before, plain, f.after)
		default:
			add(f.before, text(value), f.after)
		}
	}
	if s.keys["uniqueItems"] == true {
		add("No item twice", "", "")
	}
	if !s.in(open) {
		open = append(slices.Clone(open), s.refs...)
		if items, ok := s.items(); ok && slices.Equal(s.types, []string{"array"}) {
			add("Items: ", w.typeInWords(w.d.flatten(items), open, 1), "")
		}
		if fields := w.fields(s, open, 1); fields != "" && slices.Equal(s.types, []string{"object"}) {
			add("Fields: ", fields, "")
		}
	}
	if value, ok := s.keys["default"]; ok {
		add("Default: ", text(value), "")
	}
	if optional {
		add("Optional", "", "")
	}
	return facts
}

func article(name string) string {
	if name == "integer" || name == "array" || name == "object" {
		return "An "
	}
	return "A "
}

func values50(values []any) string {
	shown := make([]string, 0, maxValues)
	for _, v := range values[:min(len(values), maxValues)] {
		shown = append(shown, text(v))
	}
	all := strings.Join(shown, ", ")
	if more := len(values) - maxValues; more > 0 {
		all += " and " + strconv.Itoa(more) + " more"
	}
	return all
}

// typeInWords names the type of s, with what is in it down to maxLevels. A schema
// that is open, which means that it is a part of itself, is an object.
func (w *describer) typeInWords(s schema, open []string, level int) string {
	if s.in(open) {
		return "object"
	}
	open = append(slices.Clone(open), s.refs...)
	w.words++
	deeper := level <= maxLevels && w.words < maxWords
	if len(s.types) == 0 {
		return "any JSON value"
	}
	names := slices.Clone(s.types)
	for i, name := range names {
		switch items, hasItems := s.items(); {
		case name == "array" && deeper && hasItems:
			names[i] = "list of " + w.typeInWords(w.d.flatten(items), open, level+1)
		case name == "array":
			names[i] = "list"
		case name == "object" && deeper:
			if fields := w.fields(s, open, level+1); fields != "" {
				names[i] = "object of " + fields
			}
		}
	}
	return strings.Join(names, " or ")
}

// fields returns the properties of s with their types, by name.
func (w *describer) fields(s schema, open []string, level int) string {
	required := s.required()
	properties := w.d.properties(s)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := name + " (" + w.typeInWords(properties[name], open, level)
		if !slices.Contains(required, name) {
			field += ", optional"
		}
		fields = append(fields, field+")")
	}
	return strings.Join(fields, ", ")
}
