package headsmcp

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
)

// bridge makes a tool of a server a tool of a head.
type bridge struct {
	link       *link
	name       string // the server's
	spec       heads.ToolSpec
	document   document
	patterns   map[string]int // of the document, with their instructions
	parameters []parameter
	whole      *jsonschema.Resolved // for all arguments
	each       *jsonschema.Resolved // for an object of one of them
}

// parameter is a property at the top of an input schema.
type parameter struct {
	name     string
	schema   schema
	required bool
}

func (c config) newBridge(t *mcp.Tool) (*bridge, error) {
	b := &bridge{name: t.Name, patterns: map[string]int{}}
	b.spec = heads.ToolSpec{Name: c.prefix + t.Name, Description: sentence(c.text(t, "", toolText(t)), maxText)}
	var faults []error
	refuse := func(problem string) {
		faults = append(faults, invalid(toolField(b.spec.Name)+" input schema", problem, "change it in the server, or leave the tool out with Only"))
	}

	var err error
	if b.document, err = decodeDocument(t.InputSchema); err != nil {
		refuse("is no JSON object")
		return b, errors.Join(faults...)
	}
	for _, reason := range b.document.check() {
		refuse(reason)
	}
	if len(faults) > 0 { // it may not end
		return b, errors.Join(faults...)
	}
	for _, reason := range b.document.checkTop() {
		refuse(reason)
	}
	top := b.document.flatten(map[string]any(b.document))
	if err := b.resolve(top); err != nil {
		refuse("can't be used: " + clip(oneLine(err.Error()), 200))
	}
	addPatterns(b.patterns, map[string]any(b.document))
	b.addParameters(top)
	for _, p := range b.parameters {
		b.spec.Parameters = append(b.spec.Parameters, c.describeParameter(b.document, t, top, p))
		if p.mustBeGiven() {
			b.spec.Required = append(b.spec.Required, p.name)
		}
	}
	for _, name := range top.required() {
		if !slices.ContainsFunc(b.parameters, func(p parameter) bool { return p.name == name }) {
			refuse("requires " + text(name) + ", which is no property that can have a value")
		}
	}
	return b, errors.Join(faults...)
}

func toolText(t *mcp.Tool) string {
	texts := []string{t.Description, t.Title}
	if t.Annotations != nil {
		texts = append(texts, t.Annotations.Title)
	}
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// text returns the text of Describe's function, or the server's text.
func (c config) text(t *mcp.Tool, parameter, servers string) string {
	if c.describe != nil {
		if text := c.describe(t, parameter); strings.TrimSpace(text) != "" {
			return text
		}
	}
	return servers
}

func (c config) describeParameter(d document, t *mcp.Tool, top schema, p parameter) heads.ToolParameter {
	w := describer{d: d}
	facts := w.facts(p.schema, append([]string{"#"}, top.refs...), !p.mustBeGiven())
	return heads.ToolParameter{Name: p.name, Type: p.schema.parameterType(), Description: describe(c.text(t, p.name, p.schema.ownText()), facts)}
}

// checkTop returns why the arguments can't be a list of parameters, or "".
func (d document) checkTop() (reasons []string) {
	node := map[string]any(d)
	for node != nil {
		for _, keyword := range []string{"oneOf", "anyOf", "allOf", "if", "not"} {
			if _, ok := node[keyword]; ok {
				reasons = append(reasons, "has "+keyword+" at the top")
			}
		}
		ref, _ := node["$ref"].(string)
		target, _ := d.at(ref)
		if target == false {
			reasons = append(reasons, "is false")
		}
		node, _ = target.(map[string]any)
	}
	if types := d.flatten(map[string]any(d)); types.nullable || len(types.types) > 0 && !slices.Equal(types.types, []string{"object"}) {
		reasons = append(reasons, "has another type than object at the top")
	}
	return reasons
}

// ofAllArguments are the keywords at the top that an object of one argument may
// break although the argument is as described. The properties behind $ref are
// among those of the top. The others stay, since a $ref may lead to them.
var ofAllArguments = []string{"required", "minProperties", "dependentRequired", "dependentSchemas", "dependencies", "enum", "const", "$ref"}

// resolve makes both validators.
func (b *bridge) resolve(top schema) (err error) {
	if b.whole, err = resolve(b.document); err != nil {
		return err
	}
	each := maps.Clone(b.document)
	for _, keyword := range ofAllArguments {
		delete(each, keyword)
	}
	if properties, ok := top.keys["properties"]; ok {
		each["properties"] = properties
	}
	b.each, err = resolve(each)
	return err
}

func resolve(d document) (*jsonschema.Resolved, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	// A schema of another draft resolves, but validates nothing.
	draft, err := (&jsonschema.Schema{Schema: s.Schema}).Resolve(nil)
	if err != nil {
		return nil, err
	}
	if err := draft.Validate(map[string]any{}); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

func (b *bridge) addParameters(top schema) {
	properties, required := b.document.properties(top), top.required()
	names := slices.DeleteFunc(slices.Clone(required), func(name string) bool { _, ok := properties[name]; return !ok })
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		b.parameters = append(b.parameters, parameter{name, properties[name], slices.Contains(required, name)})
	}
}

// mustBeGiven reports whether the model must give the argument. If null is a valid value,
// null is sent for a required argument that the model omits.
func (p parameter) mustBeGiven() bool { return p.required && !p.schema.nullable }
