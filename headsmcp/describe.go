package headsmcp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxText   = 1000 // characters of a description, with the facts of a parameter
	minText   = 300  // characters that the text of a parameter keeps beside long facts
	maxValues = 50   // of an enum
	maxLevels = 4    // of lists and objects in each other
	maxWords  = 2000 // types named in one description
)

// sentence returns text on one line, cut after limit characters, with a full stop
// after it.
func sentence(text string, limit int) string {
	text = clip(strings.Join(strings.Fields(oneLine(text)), " "), limit)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// ownText returns the description of s, or else its title.
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

// fact is one rule of a schema for the values, as a sentence.
type fact struct {
	text   string // without the full stop
	values []any  // of an enum; the text lists them
}

// describe returns text and the facts. Above maxText characters, the text is cut
// first, down to minText, then the values of an enum, then the longest of the facts:
// a schema comes from a third party, and the model reads it with every message.
func describe(text string, facts []fact) string {
	whole := sentence(text, maxText)
	if description := joined(whole, facts); utf8.RuneCountInString(description) <= maxText {
		return description
	}
	if whole == "" {
		shorten(facts, maxText)
		return joined("", facts)
	}
	shorten(facts, maxText-1-min(utf8.RuneCountInString(whole), minText))
	tooMuch := utf8.RuneCountInString(joined(whole, facts)) - maxText
	if tooMuch > 0 {
		whole = sentence(text, utf8.RuneCountInString(whole)-tooMuch-1)
	}
	return joined(whole, facts)
}

// joined returns the sentences of a description, on one line.
func joined(text string, facts []fact) string {
	var sentences []string
	if text != "" {
		sentences = append(sentences, text)
	}
	for _, f := range facts {
		sentences = append(sentences, f.text+".")
	}
	return oneLine(strings.Join(sentences, " "))
}

// shorten cuts the facts to room characters in all.
func shorten(facts []fact, room int) {
	tooLong := func() bool { return utf8.RuneCountInString(joined("", facts)) > room }
	for i, f := range facts {
		for n := min(len(f.values), maxValues) - 1; n > 0 && tooLong(); n-- {
			facts[i].text = oneOf(f.values, n)
		}
	}
	for longest := room; tooLong(); longest-- {
		for i := range facts {
			if utf8.RuneCountInString(facts[i].text) > longest {
				facts[i].text = clip(facts[i].text, longest-1) + "…"
			}
		}
	}
}

// facts returns the rules of the schema for the values.
func (w *describer) facts(s schema, open []string, optional bool) []fact {
	var facts []fact
	add := func(before, value, after string) { facts = append(facts, fact{text: before + value + after}) }
	switch {
	case s.anyValue():
		add("Any JSON value", "", "")
	case len(s.types) > 1:
		add(article(s.types[0]), strings.Join(s.types, " or "), "")
	}
	if values, ok := s.keys["enum"].([]any); ok {
		facts = append(facts, fact{text: oneOf(values, maxValues), values: values})
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

// oneOf lists the first n values of an enum.
func oneOf(values []any, n int) string {
	shown := make([]string, 0, n)
	for _, v := range values[:min(len(values), n)] {
		shown = append(shown, text(v))
	}
	all := "One of: " + strings.Join(shown, ", ")
	if more := len(values) - n; more > 0 {
		all += " and " + strconv.Itoa(more) + " more"
	}
	return all
}

// typeInWords names the type of s and of its parts, down to maxLevels. A schema that is
// open, which means that it contains itself, is named an object.
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
