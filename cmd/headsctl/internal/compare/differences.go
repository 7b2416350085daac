package compare

import (
	"bytes"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// Difference is a field that differs.
type Difference struct {
	Field  string            `json:"field"`
	Values map[string]string `json:"values"`           // by environment
	Wanted map[string]string `json:"wanted,omitempty"` // by environment; nil if the file does not have the field
}

// Differences returns the fields that differ. There are facts for each of the names.
func Differences(names []string, all []*Facts) (found []Difference) {
	for _, field := range fieldsOf(all) {
		managed, differs := false, false
		for _, f := range all {
			_, wanted := f.want[field]
			managed, differs = managed || wanted, differs || f.drift[field]
		}
		if !managed {
			differs = slices.ContainsFunc(all, func(f *Facts) bool { return f.is[field].exact != all[0].is[field].exact })
		}
		if differs {
			found = append(found, differenceIn(field, names, all, managed))
		}
	}
	return found
}

// fieldsOf returns the fields that one of the environments knows.
func fieldsOf(all []*Facts) (fields []string) {
	for _, f := range all {
		for _, field := range f.order {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	slices.SortStableFunc(fields, func(a, b string) int { return fieldGroup(a) - fieldGroup(b) })
	return fields
}

// fieldGroup sorts webhooks behind fields, and tools behind webhooks.
func fieldGroup(field string) int {
	return 1 + slices.IndexFunc([]string{"webhook ", "tool "}, func(prefix string) bool { return strings.HasPrefix(field, prefix) })
}

func differenceIn(field string, names []string, all []*Facts, managed bool) Difference {
	texts := []string{}
	for _, f := range all {
		texts = append(texts, f.is[field].shown)
	}
	if managed {
		for _, f := range all {
			texts = append(texts, f.want[field].shown)
		}
	}
	if strings.HasPrefix(field, "tool ") {
		texts = withoutCommon(texts)
	}
	texts = clipAll(texts)
	d := Difference{Field: nameIn(all, field), Values: map[string]string{}}
	for i, name := range names {
		d.Values[name] = texts[i]
		if managed {
			if d.Wanted == nil {
				d.Wanted = map[string]string{}
			}
			d.Wanted[name] = texts[len(names)+i]
		}
	}
	return d
}

// nameIn returns how a field is shown.
func nameIn(all []*Facts, field string) string {
	for _, f := range all {
		if name, ok := f.names[field]; ok {
			return show.Clip(name, maxShown)
		}
	}
	return show.Clip(field, maxShown)
}

// withoutCommon leaves out the members that are the same in all objects.
func withoutCommon(texts []string) []string {
	var short []string
	for _, text := range texts {
		var members [][]byte
		for m := range rawjson.Members([]byte(text)) {
			same := !slices.ContainsFunc(texts, func(other string) bool {
				return other != "" && !bytes.Equal(rawjson.Get([]byte(other), m.Key), m.Value)
			})
			if !same {
				members = append(members, rawjson.AppendMember(nil, m.Key, m.Value))
			}
		}
		switch {
		case text == "" || len(members) == 0:
			short = append(short, text)
		default:
			short = append(short, string(rawjson.Object(members...)))
		}
	}
	return short
}

const maxShown = 120 // characters of a field or a value, as in a plan

// clipAll shortens texts, and keeps their first difference visible.
func clipAll(texts []string) []string {
	var all [][]rune
	longest := 0
	for _, text := range texts {
		all = append(all, []rune(show.Line(text)))
		longest = max(longest, len(all[len(all)-1]))
	}
	same := 0
	for same < len(all[0]) && !slices.ContainsFunc(all, func(text []rune) bool { return same >= len(text) || text[same] != all[0][same] }) {
		same++
	}
	from := 0
	if longest > maxShown {
		from = max(0, same-maxShown/3)
	}
	var short []string
	for _, text := range all {
		start := ""
		if from > 0 {
			start = show.CutMark
		}
		short = append(short, show.Clip(start+string(text[min(from, len(text)):]), maxShown))
	}
	return short
}
