package yamltext

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// Reference matches ${name} in a text, and $${, which stands for ${. Without its } it is a
// fault.
var Reference = regexp.MustCompile(`\$\$\{|\$\{([^}]*)(\}?)`)

// Names returns the names of all ${name} in a text.
func Names(text string) (names []string) {
	for _, found := range Reference.FindAllStringSubmatch(text, -1) {
		if found[0] != escaped {
			names = append(names, found[1])
		}
	}
	return names
}

// Escape writes ${ as $${, which a Filler leaves alone.
func Escape(text string) string { return strings.ReplaceAll(text, "${", escaped) }

const escaped = "$${"

// Filler fills in values.
type Filler struct {
	// Value returns what ${name} stands for. An error follows the ${name} that it is
	// about. nil fills in nothing.
	Value func(name string) (*Value, error)

	// All lets keys be filled too, and a text that is one ${name} alone become what that
	// stands for, whatever its kind.
	All bool

	faults []error
	size   int // of all texts in which something was filled in; at most MaxBytes are made
}

// NewText returns a text without a place.
func NewText(text string) *Value { return &Value{Kind: Text, Text: text} }

// Fill returns a copy of the value with what each ${name} in its texts stands for. It
// returns an error of type *Error for every place that can't be filled, joined. A text
// that is filled in is not looked at again.
func (f *Filler) Fill(v *Value) (*Value, error) {
	f.faults, f.size = nil, 0
	filled := f.value(v)
	if f.size > MaxBytes {
		f.faults = append(f.faults, v.Errorf("with what ${…} stand for, the texts have more than %d bytes; write fewer of them", MaxBytes))
	}
	return filled, errors.Join(f.faults...)
}

func (f *Filler) value(v *Value) *Value {
	filled := *v
	if v.Kind == Text && f.Value != nil {
		if at := Reference.FindStringSubmatchIndex(v.Text); f.All && at != nil && at[0] == 0 && at[1] == len(v.Text) && at[5] > at[4] {
			if whole, err := f.Value(v.Text[at[2]:at[3]]); err == nil && whole.Kind != Text {
				return whole
			}
		}
		filled.Text = f.text(v)
	}
	filled.Items = slices.Clone(v.Items)
	for i, item := range v.Items {
		filled.Items[i] = f.value(item)
	}
	filled.Members = slices.Clone(v.Members)
	for i, m := range v.Members {
		if f.All {
			filled.Members[i].Key = f.text(m.KeyValue())
		}
		filled.Members[i].Value = f.value(m.Value)
	}
	return &filled
}

func (f *Filler) text(v *Value) string {
	var b strings.Builder
	rest := v.Text
	for len(f.faults) <= MaxFaults && f.size <= MaxBytes {
		at := Reference.FindStringSubmatchIndex(rest)
		if at == nil {
			if rest != v.Text {
				f.add(&b, rest)
				return b.String()
			}
			return rest
		}
		f.add(&b, rest[:at[0]])
		found := rest[at[0]:at[1]]
		switch {
		case found == escaped:
			f.add(&b, "${")
		case at[4] == at[5]:
			f.faults = append(f.faults, v.Errorf("a ${ has no }; write ${NAME}, or $${ for the text ${"))
			return ""
		default:
			name := rest[at[2]:at[3]]
			value, err := f.Value(name)
			if err != nil {
				f.faults = append(f.faults, v.Errorf("${%s} %v", v.shownName(name), err))
			} else {
				f.add(&b, value.AsText())
			}
		}
		rest = rest[at[1]:]
	}
	return ""
}

func (f *Filler) add(b *strings.Builder, text string) {
	if f.size += len(text); f.size <= MaxBytes {
		b.WriteString(text)
	}
}

// AsText returns an optional value as a part of a text.
func (v *Value) AsText() string {
	if v == nil {
		return ""
	}
	if v.Kind == List || v.Kind == Object {
		document, _ := v.AppendJSON(nil)
		return string(document)
	}
	return v.Text
}

// shownName returns a name in the value as errors show it.
func (v *Value) shownName(name string) string {
	if v.hidden {
		return "…"
	}
	return show.Clip(name, maxShown)
}

// With returns a copy of an Object in which a member has another value.
func (v *Value) With(key string, value *Value) *Value {
	changed := *v
	changed.Members = slices.Clone(v.Members)
	for i, m := range v.Members {
		if m.Key == key {
			changed.Members[i].Value = value
		}
	}
	return &changed
}
