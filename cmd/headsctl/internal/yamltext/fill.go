package yamltext

import (
	"errors"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// Fill returns a copy of the value whose texts have what fill returns in the place of
// each ${name}. $${ stands for ${. Keys are not filled. It returns an error of type
// *Error for every place that can't be filled, joined. A text that is filled in is
// not looked at again.
func (v *Value) Fill(fill func(name string) (string, error)) (*Value, error) {
	f := filler{fill: fill}
	filled := f.value(v)
	if f.size > MaxBytes {
		f.faults = append(f.faults, v.Errorf("with what ${…} stand for, the texts have more than %d bytes; write fewer of them", MaxBytes))
	}
	return filled, errors.Join(f.faults...)
}

type filler struct {
	fill   func(name string) (string, error)
	faults []error
	size   int // of all texts in which something was filled in; at most MaxBytes are made
}

func (f *filler) value(v *Value) *Value {
	filled := *v
	if v.Kind == Text {
		filled.Text = f.text(v)
	}
	filled.Items, filled.Members = nil, nil
	for _, item := range v.Items {
		filled.Items = append(filled.Items, f.value(item))
	}
	for _, m := range v.Members {
		m.Value = f.value(m.Value)
		filled.Members = append(filled.Members, m)
	}
	return &filled
}

func (f *filler) text(v *Value) string {
	before, rest, found := strings.Cut(v.Text, "${")
	if !found {
		return v.Text
	}
	var b strings.Builder
	for ; found && f.size <= MaxBytes && len(f.faults) <= MaxFaults; before, rest, found = strings.Cut(rest, "${") {
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			f.add(&b, literal+"${")
			continue
		}
		f.add(&b, before)
		var name string
		var closed bool
		if name, rest, closed = strings.Cut(rest, "}"); !closed {
			f.faults = append(f.faults, v.Errorf("a ${ has no }; write $${ for the text ${"))
			return ""
		}
		text, err := f.fill(name)
		if err != nil {
			f.faults = append(f.faults, v.Errorf("${%s} %v", v.shownName(name), err))
		}
		f.add(&b, text)
	}
	f.add(&b, before)
	return b.String()
}

func (f *filler) add(b *strings.Builder, text string) {
	if f.size += len(text); f.size <= MaxBytes {
		b.WriteString(text)
	}
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
	changed.Members = nil
	for _, m := range v.Members {
		if m.Key == key {
			m.Value = value
		}
		changed.Members = append(changed.Members, m)
	}
	return &changed
}
