package fleet

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// toolWork is the work to do on the tools of a head.
type toolWork struct {
	now     []heads.Tool // as read
	tools   []heads.Tool // all of them
	given   string       // name of the first new or changed tool, or ""
	changes []Change
}

// toolChanges compares the tools of a spec with those of a head. It keeps keys that the spec does
// not mention, in tools and in parameters of the same name. The order of tools is ignored.
func toolChanges(head *heads.Head, wanted []heads.Tool) (work toolWork, err error) {
	var now []heads.Tool
	if head.ConversationSettings != nil {
		now = head.ConversationSettings.Tools
	}
	work.now = now
	used := make([]bool, len(now))
	for _, tool := range wanted {
		i := slices.IndexFunc(now, func(t heads.Tool) bool { return t.Name == tool.Name })
		if i < 0 {
			err = work.give(nil, tool)
		} else {
			used[i] = true
			err = work.give(&now[i], tool)
		}
		if err != nil {
			return toolWork{}, err
		}
	}
	for i, old := range now {
		if used[i] {
			continue
		}
		from, err := toolParts(&old, false)
		if err != nil {
			return toolWork{}, err
		}
		work.changes = append(work.changes, newChange("tool "+old.Name, partsText(from, nil), ""))
	}
	return work, nil
}

// give adds a tool, or replaces the old one of the same name.
func (w *toolWork) give(old *heads.Tool, wanted heads.Tool) error {
	merged, err := mergeTools(old, wanted)
	if err != nil {
		return err
	}
	if old != nil && sameJSON(*old, merged) {
		w.tools = append(w.tools, *old)
		return nil
	}
	was, is, err := toolTexts(old, &merged, old != nil)
	if err != nil {
		return err
	}
	if w.given == "" {
		w.given = merged.Name
	}
	w.tools = append(w.tools, merged)
	w.changes = append(w.changes, newChange("tool "+merged.Name, was, is))
	return nil
}

// mergeTools returns the new tool, with the keys that only the old one has added at the end.
func mergeTools(old *heads.Tool, wanted heads.Tool) (heads.Tool, error) {
	if old == nil {
		return wanted, nil
	}
	was, err := old.MarshalJSON()
	if err != nil || rawjson.Kind(was) != "object" {
		return wanted, err
	}
	is, err := wanted.MarshalJSON()
	if err != nil {
		return wanted, err
	}
	parameters, _ := rawjson.Value(was, "parameters")
	if parameters, err = mergeParameters(parameters, wanted.Parameters); err != nil {
		return wanted, err
	}
	merged := withKeysOf(rawjson.With(is, "parameters", parameters), was)
	var tool heads.Tool
	return tool, json.Unmarshal(merged, &tool)
}

func mergeParameters(old []byte, wanted []heads.ToolParameter) ([]byte, error) {
	var was []heads.ToolParameter
	if json.Unmarshal(old, &was) != nil {
		was = nil // the old value has another shape and is dropped
	}
	var merged [][]byte
	for _, parameter := range wanted {
		document, err := parameter.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if same := slices.IndexFunc(was, func(p heads.ToolParameter) bool { return p.Name == parameter.Name }); same >= 0 {
			kept, err := was[same].MarshalJSON()
			if err != nil {
				return nil, err
			}
			document = withKeysOf(document, kept)
		}
		merged = append(merged, document)
	}
	return slices.Concat([]byte{'['}, bytes.Join(merged, []byte{','}), []byte{']'}), nil
}

// withKeysOf returns an object with the members that only the other object has.
func withKeysOf(object, other []byte) []byte {
	for m := range rawjson.Members(other) {
		if _, has := rawjson.Value(object, string(m.Key)); !has {
			object = rawjson.With(object, string(m.Key), m.Value)
		}
	}
	return object
}

// objectOf returns the members of a value's JSON, or nil if it is not an object.
func objectOf(v any) (map[string]json.RawMessage, error) {
	document, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(document, &members) // leaves nil unless it is an object
	return members, nil
}

// toolTexts describes what differs between two tools, of which old may be nil. With apart,
// each parameter is a part of its own, unless nothing but their order differs.
func toolTexts(old, wanted *heads.Tool, apart bool) (was, is string, err error) {
	from, err := toolParts(old, apart)
	if err != nil {
		return "", "", err
	}
	to, err := toolParts(wanted, apart)
	if err != nil {
		return "", "", err
	}
	if was, is = partsText(from, to), partsText(to, from); apart && is == "" {
		return toolTexts(old, wanted, false)
	}
	return was, is, nil
}

// toolPart is a member of a tool or a parameter, as JSON and without secrets.
type toolPart struct{ document, shown string }

// toolParts returns the members of a tool without its name. With apart, a parameter is
// under its own name.
func toolParts(t *heads.Tool, apart bool) (map[string]toolPart, error) {
	if t == nil {
		return nil, nil
	}
	document, err := t.MarshalJSON()
	if err != nil {
		return nil, err
	}
	masked := document
	if rawjson.Kind(document) == "object" {
		masked = rawjson.With(document, "url", rawjson.String(mask.CallbackURL(t.URL, t.Name)))
	}
	masked = mask.JSON(masked, mask.SecretsOf(document)...)
	shown, err := membersOf(masked, apart)
	if err != nil {
		return nil, err
	}
	members, err := membersOf(document, apart)
	if err != nil {
		return nil, err
	}
	if members == nil {
		return map[string]toolPart{"definition": {string(document), "of another shape"}}, nil
	}
	parts := map[string]toolPart{}
	for name, value := range members {
		decoded, err := decodeExactly(shown[name])
		if name == "name" || err != nil {
			continue
		}
		exact, err := decodeExactly(value)
		if err != nil {
			continue
		}
		parts[name] = toolPart{textOf(exact), textOf(decoded)}
	}
	return parts, nil
}

// membersOf returns the members of a tool, or nil if it is not an object.
func membersOf(document json.RawMessage, apart bool) (map[string]json.RawMessage, error) {
	members, err := objectOf(document)
	if err != nil || members == nil || !apart {
		return members, err
	}
	var parameters []json.RawMessage
	if json.Unmarshal(members["parameters"], &parameters) != nil {
		return members, nil //nolint:nilerr // shown whole
	}
	named := maps.Clone(members)
	delete(named, "parameters")
	for _, parameter := range parameters {
		var p heads.ToolParameter
		if json.Unmarshal(parameter, &p) != nil || p.Name == "" || named["parameter "+p.Name] != nil {
			return members, nil //nolint:nilerr // shown whole
		}
		named["parameter "+p.Name] = parameter
	}
	return named, nil
}

// partsText lists the parts that differ from those of others, or all parts if others is nil.
// A part of which only a secret differs is named.
func partsText(parts, others map[string]toolPart) string {
	if parts == nil {
		return ""
	}
	names := maps.Clone(parts)
	maps.Copy(names, others)
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, has := parts[name]
		other, had := others[name]
		switch {
		case has && had && value.document != other.document && value.shown == other.shown:
			texts = append(texts, name+": "+redacted)
		case has && (!had || value.document != other.document):
			texts = append(texts, name+": "+value.shown)
		case !has:
			texts = append(texts, "no "+name)
		}
	}
	return strings.Join(texts, "; ")
}
