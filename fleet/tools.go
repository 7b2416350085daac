package fleet

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// toolWork is the work to do on the tools of a head.
type toolWork struct {
	tools   []heads.Tool // all of them
	given   string       // the first one that is new or changed, or ""
	changes []Change
}

// toolChanges compares the tools of a spec with those of a head. It keeps keys that
// the spec does not mention, in tools and in parameters of the same name, and ignores
// the order.
func toolChanges(head *heads.Head, wanted []heads.Tool) (work toolWork, err error) {
	var now []heads.Tool
	if head.ConversationSettings != nil {
		now = head.ConversationSettings.Tools
	}
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
		from, err := toolParts(&old)
		if err != nil {
			return toolWork{}, err
		}
		work.changes = append(work.changes, newChange("tool "+old.Name, partsText(from, nil), ""))
	}
	return work, nil
}

// give adds a tool to the work. It replaces an old one of the same name.
func (w *toolWork) give(old *heads.Tool, wanted heads.Tool) error {
	merged, err := mergeTools(old, wanted)
	if err != nil {
		return err
	}
	if old != nil && sameJSON(*old, merged) {
		w.tools = append(w.tools, *old)
		return nil
	}
	from, err := toolParts(old)
	if err != nil {
		return err
	}
	to, err := toolParts(&merged)
	if err != nil {
		return err
	}
	if w.given == "" {
		w.given = merged.Name
	}
	w.tools = append(w.tools, merged)
	w.changes = append(w.changes, newChange("tool "+merged.Name, partsText(from, to), partsText(to, from)))
	return nil
}

// mergeTools returns the new tool with the keys that only the old one has.
func mergeTools(old *heads.Tool, wanted heads.Tool) (heads.Tool, error) {
	if old == nil {
		return wanted, nil
	}
	was, err := objectOf(*old)
	if err != nil || was == nil {
		return wanted, err
	}
	is, err := objectOf(wanted)
	if err != nil {
		return wanted, err
	}
	if is["parameters"], err = mergeParameters(was["parameters"], wanted.Parameters); err != nil {
		return wanted, err
	}
	maps.Copy(was, is)
	merged, err := json.Marshal(was)
	if err != nil {
		return wanted, err
	}
	var tool heads.Tool
	return tool, json.Unmarshal(merged, &tool)
}

func mergeParameters(old json.RawMessage, wanted []heads.ToolParameter) (json.RawMessage, error) {
	var was []heads.ToolParameter
	if json.Unmarshal(old, &was) != nil {
		was = nil // the old value has another shape and is dropped
	}
	merged := make([]map[string]json.RawMessage, len(wanted))
	for i, parameter := range wanted {
		is, err := objectOf(parameter)
		if err != nil {
			return nil, err
		}
		merged[i] = is
		same := slices.IndexFunc(was, func(p heads.ToolParameter) bool { return p.Name == parameter.Name })
		if same < 0 {
			continue
		}
		kept, err := objectOf(was[same])
		if err != nil {
			return nil, err
		}
		if kept != nil {
			maps.Copy(kept, is)
			merged[i] = kept
		}
	}
	return json.Marshal(merged)
}

// objectOf returns the members of a value's JSON, or nil if it is not an object.
func objectOf(v any) (map[string]json.RawMessage, error) {
	document, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil {
		return nil, nil
	}
	return members, nil
}

// sameJSON compares the JSON of two values and ignores the order of keys.
func sameJSON(a, b any) bool {
	var decoded [2]any
	for i, v := range []any{a, b} {
		document, err := json.Marshal(v)
		if err != nil || json.Unmarshal(document, &decoded[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(decoded[0], decoded[1])
}

// toolParts returns the members of a tool without its name and without secrets.
func toolParts(t *heads.Tool) (map[string]string, error) {
	if t == nil {
		return nil, nil
	}
	safe := (&heads.Head{ConversationSettings: &heads.ConversationSettings{Tools: []heads.Tool{*t}}}).Redacted()
	members, err := objectOf(safe.ConversationSettings.Tools[0])
	if err != nil {
		return nil, err
	}
	if members == nil {
		return map[string]string{"definition": "of another shape"}, nil
	}
	parts := map[string]string{}
	for name, value := range members {
		var decoded any
		if name == "name" || json.Unmarshal(value, &decoded) != nil {
			continue
		}
		parts[name] = textOf(decoded)
	}
	return parts, nil
}

// partsText lists the parts that differ from others, or all parts if others is nil.
func partsText(parts, others map[string]string) string {
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
		case has && (!had || value != other):
			texts = append(texts, name+": "+value)
		case !has:
			texts = append(texts, "no "+name)
		}
	}
	if len(texts) == 0 {
		return redacted // the difference is a secret
	}
	return strings.Join(texts, "; ")
}
