package headsmcp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/headsapi/heads-go"
)

// notAsDescribed is the text that the model reads if the schema refuses its arguments.
const notAsDescribed = " is not as described; correct it or ask the user for it"

// arguments returns the arguments to send to the server: only the declared ones, with the
// types of their schemas. Each check takes a short time. No check begins after ctx has ended.
func (b *bridge) arguments(ctx context.Context, given json.RawMessage) (json.RawMessage, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(bytes.ToValidUTF8(given, []byte("\uFFFD")), &values); err != nil {
		return nil, err
	}
	object := []byte{'{'}
	var wrong []string
	for _, p := range b.parameters {
		if err := ctx.Err(); err != nil {
			return nil, failure("check the arguments", err)
		}
		raw, ok := values[p.name]
		switch {
		case ok:
			raw = b.read(p, raw)
		case p.required && p.schema.nullable:
			raw = json.RawMessage("null")
		default:
			continue
		}
		if !b.valid(p, raw) {
			wrong = append(wrong, p.name+notAsDescribed)
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(append(append(object, text(p.name)...), ':'), raw...)
	}
	object = append(object, '}')
	if len(wrong) > 0 {
		return nil, heads.ToolError{Message: strings.Join(wrong, ". ")}
	}
	var all map[string]any
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure("check the arguments", err)
	}
	if !b.document.isFew(all, b.patterns) || b.whole.Validate(all) != nil {
		return nil, heads.ToolError{Message: "The set of arguments" + notAsDescribed}
	}
	return object, nil
}

// alone returns an object with one argument. It returns false if the argument can't be
// checked.
func (b *bridge) alone(p parameter, raw json.RawMessage) (map[string]any, bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil, false
	}
	argument := map[string]any{p.name: value}
	return argument, b.document.isFew(argument, b.patterns)
}

// valid reports whether the schema takes raw for p.
func (b *bridge) valid(p parameter, raw json.RawMessage) bool {
	argument, ok := b.alone(p, raw)
	return ok && b.each.Validate(argument) == nil
}

// read converts raw to the type that the schema of p wants.
func (b *bridge) read(p parameter, raw json.RawMessage) json.RawMessage {
	if _, ok := b.alone(p, raw); !ok {
		return raw
	}
	if len(p.schema.types) < 2 || p.schema.anyValue() {
		return b.document.read(p.schema, raw)
	}
	if b.valid(p, raw) {
		return raw
	}
	for _, t := range p.schema.types {
		if value, err := heads.ReadArgument(t, raw); err == nil && b.valid(p, value) {
			return value
		}
	}
	return raw
}

// read converts raw to the type that s wants, where that is possible.
func (d document) read(s schema, raw json.RawMessage) json.RawMessage {
	if !slices.ContainsFunc(s.types, func(t string) bool { return fits(t, raw) }) {
		for _, t := range s.types {
			if value, err := heads.ReadArgument(t, raw); err == nil {
				raw = value
				break
			}
		}
	}
	switch kindOf(raw) {
	case "array":
		return d.readItems(s, raw)
	case "object":
		return d.readFields(s, raw)
	default:
		return raw
	}
}

// fits reports whether raw has the type without a conversion.
func fits(wireType string, raw json.RawMessage) bool {
	if kind := kindOf(raw); wireType != "integer" || kind != "number" {
		return kind == wireType
	}
	digits, err := heads.ReadArgument(wireType, raw)
	return err == nil && bytes.Equal(digits, raw)
}

func (d document) readItems(s schema, raw json.RawMessage) json.RawMessage {
	node, ok := s.keys["items"].(map[string]any)
	var items []json.RawMessage
	if !ok || json.Unmarshal(raw, &items) != nil {
		return raw
	}
	each := d.flatten(node)
	for i := len(list(s.keys["prefixItems"])); i < len(items); i++ {
		items[i] = d.read(each, items[i])
	}
	return encode(items)
}

// readFields reads the properties that s describes. A property that is null, or blank
// where no text is wanted, counts as absent.
func (d document) readFields(s schema, raw json.RawMessage) json.RawMessage {
	properties, _ := s.keys["properties"].(map[string]any)
	var fields map[string]json.RawMessage
	if len(properties) == 0 || json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	for name, value := range fields {
		node, ok := properties[name]
		p := d.flatten(node)
		switch {
		case !ok || len(p.types) == 0:
		case kindOf(value) == "null" && !p.nullable, isBlank(value) && !slices.Contains(p.types, "string"):
			delete(fields, name)
		default:
			fields[name] = d.read(p, value)
		}
	}
	return encode(fields)
}

func isBlank(raw json.RawMessage) bool {
	var text string
	return kindOf(raw) == "string" && json.Unmarshal(raw, &text) == nil && strings.TrimSpace(text) == ""
}

// kindOf names the type of a JSON value. It is "number" for every number.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// encode writes a value that was decoded from JSON, so it can't fail.
func encode(v any) json.RawMessage { return json.RawMessage(text(v)) }
