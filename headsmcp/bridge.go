package headsmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// decodeDocument returns a schema in the form that json.Unmarshal chooses.
func decodeDocument(inputSchema any) (document, error) {
	if inputSchema == nil {
		return document{}, nil
	}
	raw, err := json.Marshal(inputSchema)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	return d, nil
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

// call answers a call of the head.
func (b *bridge) call(ctx context.Context, given json.RawMessage) (string, error) {
	arguments, err := b.arguments(ctx, given)
	if err != nil {
		return "", err
	}
	result, err := b.link.call(ctx, &mcp.CallToolParams{Name: b.name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return reply(result)
}

// failure returns an error with the kind of err, or its code, and no text of the server.
func failure(doing string, err error) error {
	var coded *jsonrpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		err = context.Canceled
	case errors.Is(err, mcp.ErrConnectionClosed):
		err = mcp.ErrConnectionClosed
	case errors.Is(err, errNoSession):
		err = errNoSession
	case errors.As(err, &coded):
		return fmt.Errorf("headsmcp: %s: the server answered with protocol error %d", doing, coded.Code)
	default:
		return fmt.Errorf("headsmcp: %s: the session is broken or the answer can't be read (%T)", doing, err)
	}
	return fmt.Errorf("headsmcp: %s: %w", doing, err)
}

// reply returns what the model reads.
func reply(result *mcp.CallToolResult) (string, error) {
	var parts []string
	texts := 0
	for _, content := range result.Content {
		part, isText := partOf(content)
		if part == "" {
			continue
		}
		parts = append(parts, part)
		if isText {
			texts++
		}
	}
	if texts == 0 && result.StructuredContent != nil {
		parts = slices.Insert(parts, 0, text(result.StructuredContent))
	}
	answer := strings.Join(parts, "\n")
	switch {
	case result.NeedsInput():
		return "", errors.New("headsmcp: call a tool: the server asks for input, which no visitor can give it")
	case result.IsError && answer == "":
		return "", errors.New("headsmcp: call a tool: the server answered with an error without a text")
	case result.IsError:
		return "", heads.ToolError{Message: answer}
	case answer == "":
		return "Done", nil
	default:
		return answer, nil
	}
}

// partOf returns the text of a content, or its kind in brackets.
func partOf(content mcp.Content) (part string, isText bool) {
	switch c := content.(type) {
	case *mcp.TextContent:
		return strings.TrimSpace(c.Text), true
	case *mcp.ImageContent:
		return "[image]", false
	case *mcp.AudioContent:
		return "[audio]", false
	case *mcp.EmbeddedResource:
		if c.Resource != nil && strings.TrimSpace(c.Resource.Text) != "" {
			return strings.TrimSpace(c.Resource.Text), true
		}
	}
	return "[resource]", false
}
