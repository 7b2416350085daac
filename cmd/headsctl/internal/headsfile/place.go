package headsfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

var (
	// InSpec matches how an error names a spec: its number, and its id.
	InSpec = regexp.MustCompile(`(?:heads|specs)\[(\d+)\] \(label .*?, id "([^"]*)"\) ?`)

	partOfSpec = regexp.MustCompile(`^([a-z_]+)(?:\[(\d+)\])?(?:\.([A-Za-z_]+))?`)
)

// InDefaults returns the faults of specs with those of the defaults at their place, each once.
// Every head has the defaults, so each would tell of them. plain is the text of a fault.
func (f *File) InDefaults(faults []error, plain func(error) string) []error {
	var kept []error
	seen := map[string]bool{}
	for i, fault := range faults {
		if len(kept) > yamltext.MaxFaults {
			return append(kept, faults[i:]...) // they are only counted
		}
		text := plain(fault)
		found := InSpec.FindStringSubmatch(text)
		if found == nil {
			kept = append(kept, fault)
			continue
		}
		_, rest, _ := strings.Cut(text, found[0])
		defaults, ok := PartOf(f.root.Get("defaults"), rest)
		if _, own := PartOf(f.entryOf(found[2]), rest); !ok || own {
			kept = append(kept, fault)
			continue
		}
		placed := defaults.Errorf("%s", rest)
		if !seen[placed.Error()] {
			seen[placed.Error()] = true
			kept = append(kept, placed)
		}
	}
	return kept
}

// entryOf returns the entry of a head, or nil.
func (f *File) entryOf(id string) *yamltext.Value {
	list := f.root.Get("heads")
	if !list.IsGiven() {
		return nil
	}
	i := slices.IndexFunc(list.Items, func(entry *yamltext.Value) bool {
		at := entry.Get("id")
		return at != nil && (at.Text == id || slices.ContainsFunc(at.Members, func(m yamltext.Member) bool { return m.Value.Text == id }))
	})
	if i < 0 {
		return nil
	}
	return list.Items[i]
}

// PartOf returns the value in an entry that a fault such as webhooks[0].url is about, or the
// nearest one around it. It reports whether the entry has that value itself.
func PartOf(entry *yamltext.Value, fault string) (v *yamltext.Value, found bool) {
	part := partOfSpec.FindStringSubmatch(fault)
	if part == nil || entry == nil {
		return entry, false
	}
	key := part[1]
	if key == "tool" {
		key = "tools"
	}
	if v = entry.Get(key); v == nil {
		return entry, false
	}
	if part[2] != "" {
		n := 0
		if _, _ = fmt.Sscan(part[2], &n); n >= len(v.Items) {
			return v, false
		}
		v = v.Items[n]
	}
	if part[3] == "" {
		return v, true
	}
	inner := v.Get(part[3])
	if inner == nil {
		return v, false
	}
	return inner, true
}
