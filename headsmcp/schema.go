package headsmcp

import (
	"encoding/json"
	"net/url"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is the input schema of a tool, as it was decoded from JSON.
type document map[string]any

// schema is one schema of a document with everything that holds for the same
// value in one place: what its $ref leads to, its allOf, and the one branch that
// is not null.
type schema struct {
	keys     map[string]any
	types    []string // without null; empty for any value
	nullable bool
	never    bool     // the schema false, which no value satisfies
	refs     []string // that were followed
}

var unescapeStep = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the schema that a $ref of the form #/... leads to.
func (d document) at(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	var node any = map[string]any(d)
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = unescapeStep.Replace(step)
		switch parent := node.(type) {
		case map[string]any:
			node, ok = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if ok = err == nil && i >= 0 && i < len(parent); ok {
				node = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return node, isSchema(node)
}

func isSchema(node any) bool {
	switch node.(type) {
	case map[string]any, bool:
		return true
	default:
		return false
	}
}

// flatten returns the schema at node. Check has made sure that it ends.
func (d document) flatten(node any) schema {
	s := schema{keys: map[string]any{}}
	d.merge(&s, node)
	var branchTypes []string
	open := false
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := s.keys[keyword].([]any)
		delete(s.keys, keyword)
		branchTypes, open = d.mergeBranches(&s, branches, branchTypes, open)
	}
	switch t := s.keys["type"].(type) {
	case string:
		s.types = []string{t}
	case []any:
		for _, name := range t {
			text, _ := name.(string)
			s.types = append(s.types, text)
		}
	default:
		s.types = branchTypes
		if open {
			s.types = nil
		} else if len(branchTypes) == 0 {
			s.types = inferTypes(s.keys)
		}
	}
	types, nullable := tidy(s.types)
	s.types, s.nullable = types, s.nullable || nullable
	return s
}

// merge adds the keywords of node to s. Those that s has already win.
func (d document) merge(s *schema, node any) {
	m, ok := node.(map[string]any)
	if !ok {
		s.never = s.never || node == false
		return
	}
	for key, value := range m {
		if key != "$ref" && key != "allOf" {
			combine(s.keys, key, value)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		s.refs = append(s.refs, ref)
		if target, ok := d.at(ref); ok {
			d.merge(s, target)
		}
	}
	for _, part := range list(m["allOf"]) {
		d.merge(s, part)
	}
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// combine adds a keyword; the first value stays, except that properties add up.
func combine(keys map[string]any, key string, value any) {
	had, taken := keys[key]
	if !taken {
		keys[key] = value
		return
	}
	switch key {
	case "properties":
		first, _ := had.(map[string]any)
		second, _ := value.(map[string]any)
		both := make(map[string]any, len(first)+len(second))
		for _, m := range []map[string]any{second, first} {
			for name, property := range m {
				both[name] = property
			}
		}
		keys[key] = both
	case "required":
		keys[key] = append(slices.Clone(list(had)), slices.DeleteFunc(slices.Clone(list(value)), func(name any) bool {
			return slices.Contains(list(had), name)
		})...)
	}
}

// mergeBranches returns the types of the branches that are not null. If there is
// one such branch alone, it is merged into s. It reports whether one of them
// takes any value.
func (d document) mergeBranches(s *schema, branches []any, types []string, open bool) ([]string, bool) {
	var others []schema
	for _, branch := range branches {
		b := d.flatten(branch)
		s.nullable = s.nullable || b.nullable
		if b.never || b.nullable && len(b.types) == 0 {
			continue
		}
		others = append(others, b)
		types = append(types, b.types...)
		open = open || len(b.types) == 0
	}
	if len(others) == 1 {
		s.refs = append(s.refs, others[0].refs...)
		for key, value := range others[0].keys {
			if key != "type" {
				combine(s.keys, key, value)
			}
		}
	}
	return types, open
}

// inferTypes returns the types of a schema without type.
func inferTypes(keys map[string]any) []string {
	values := list(keys["enum"])
	if constant, ok := keys["const"]; ok {
		values = []any{constant}
	}
	var types []string
	for _, v := range values {
		types = append(types, typeOf(v))
	}
	if len(types) > 0 {
		return types
	}
	if _, ok := keys["properties"]; ok {
		return []string{"object"}
	}
	if _, ok := keys["items"]; ok {
		return []string{"array"}
	}
	return nil
}

// tidy removes null and duplicates from the types.
func tidy(all []string) (types []string, nullable bool) {
	for _, t := range all {
		switch {
		case t == "null":
			nullable = true
		case t == "integer" && slices.Contains(all, "number"): // is one
		case !slices.Contains(types, t):
			types = append(types, t)
		}
	}
	return types, nullable
}

// typeOf names the type of a JSON value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// anyValue reports whether a parameter of s is an object that takes any value.
func (s schema) anyValue() bool {
	scalar := func(t string) bool { return t != "array" && t != "object" }
	return len(s.types) == 0 || len(s.types) > 1 && slices.ContainsFunc(s.types, func(t string) bool { return !scalar(t) })
}

// parameterType returns the type for heads.ToolSpec.
func (s schema) parameterType() string {
	if s.anyValue() {
		return "object"
	}
	return strings.Join(s.types, "|")
}

// properties returns those that a value may have.
func (d document) properties(s schema) map[string]schema {
	all, _ := s.keys["properties"].(map[string]any)
	properties := make(map[string]schema, len(all))
	for name, node := range all {
		if p := d.flatten(node); !p.never {
			properties[name] = p
		}
	}
	return properties
}

// items returns the schema that all items of a list have.
func (s schema) items() (map[string]any, bool) {
	items, ok := s.keys["items"].(map[string]any)
	return items, ok && s.keys["prefixItems"] == nil
}

func (s schema) required() []string {
	var names []string
	for _, name := range list(s.keys["required"]) {
		text, _ := name.(string)
		names = append(names, text)
	}
	return names
}

// The keywords whose values are schemas, for the same value and for a part of it.
var (
	sameValue  = []string{"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
	partOfIt   = []string{"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties", "contentSchema", "$defs", "definitions"}
	ofItems    = []string{"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"}
	ofFields   = []string{"patternProperties", "additionalProperties", "unevaluatedProperties"}
	namesToMap = []string{"dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"}
)

// check walks through the whole document.
type check struct {
	d       document
	sizes   map[uintptr]int // schemas that a value meets at this one; 0 while they are counted
	parts   []any           // of values, still to be walked through
	reasons []string
}

// maxSize bounds the schemas that hold for one value: references to references
// can multiply them without end.
const maxSize = 10_000

// check returns what keeps the document from being read, and from being checked
// in finite time.
func (d document) check() []string {
	c := check{d: d, sizes: map[uintptr]int{}, parts: []any{map[string]any(d)}}
	for len(c.parts) > 0 {
		part := c.parts[0]
		c.parts = c.parts[1:]
		c.size(part)
	}
	slices.Sort(c.reasons)
	return slices.Compact(c.reasons)
}

func (c *check) refuse(reason string) int {
	c.reasons = append(c.reasons, reason)
	return 1
}

// size returns how many schemas hold for a value of node, itself included.
func (c *check) size(node any) int {
	m, ok := node.(map[string]any)
	if !ok {
		return 1
	}
	id := reflect.ValueOf(m).Pointer()
	if size, known := c.sizes[id]; known {
		if size == 0 {
			return c.refuse("has a $ref that leads back to itself")
		}
		return size
	}
	c.sizes[id] = 0
	size := 1 + c.ref(m)
	for _, keyword := range sameValue {
		for _, part := range subschemas(m, keyword) {
			size = min(size+c.size(part), maxSize+1)
		}
	}
	if size > maxSize {
		c.refuse("has references that multiply to more than " + strconv.Itoa(maxSize) + " schemas for one value")
	}
	c.sizes[id] = size
	for _, keyword := range partOfIt {
		c.parts = append(c.parts, subschemas(m, keyword)...)
	}
	return size
}

func (c *check) ref(m map[string]any) int {
	if _, ok := m["$dynamicRef"]; ok {
		c.refuse("has a $dynamicRef")
	}
	if _, ok := m["$id"]; ok && reflect.ValueOf(m).Pointer() != reflect.ValueOf(c.d).Pointer() {
		c.refuse("has an $id inside, which changes what a $ref means")
	}
	ref, ok := m["$ref"]
	if !ok {
		return 0
	}
	text, _ := ref.(string)
	target, ok := c.d.at(text)
	if !ok {
		return c.refuse("has the $ref " + strconv.Quote(clip(text, 64)) + ", which leads to no schema in it")
	}
	return c.size(target)
}

// subschemas returns the schemas under a keyword.
func subschemas(m map[string]any, keyword string) []any {
	switch value := m[keyword].(type) {
	case []any:
		return value
	case map[string]any:
		if !slices.Contains(namesToMap, keyword) {
			return []any{value}
		}
		var parts []any
		for _, part := range value {
			parts = append(parts, part)
		}
		return parts
	default:
		return nil
	}
}

// maxSteps and maxDepth bound the check of one argument: branches that lead to
// themselves multiply with each level of a value. To match a text with a pattern
// takes a step for every matchPerStep bytes times instructions of the pattern, which
// takes about as long as the other steps.
const (
	maxSteps     = 100_000
	maxDepth     = 100
	matchPerStep = 100
)

// steps counts the schemas that the parts of a value meet.
type steps struct {
	d        document
	patterns map[string]int
	count    int
}

// isFew reports whether a value can be read and checked in short time. The patterns
// are those of d.
func (d document) isFew(value any, patterns map[string]int) bool {
	s := steps{d: d, patterns: patterns}
	s.add(map[string]any(d), value, 0)
	return s.count <= maxSteps
}

// addPatterns adds the patterns below node, with the number of their instructions.
func addPatterns(patterns map[string]int, node any) {
	switch node := node.(type) {
	case []any:
		for _, part := range node {
			addPatterns(patterns, part)
		}
	case map[string]any:
		if pattern, ok := node["pattern"].(string); ok {
			patterns[pattern] = instructions(pattern)
		}
		properties, _ := node["patternProperties"].(map[string]any)
		for pattern := range properties {
			patterns[pattern] = instructions(pattern)
		}
		for _, part := range node {
			addPatterns(patterns, part)
		}
	}
}

// instructions returns how many steps package regexp takes for each byte of a text in
// the worst case. A pattern that it can't compile is refused elsewhere.
func instructions(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

func (s *steps) add(node, value any, depth int) {
	m, ok := node.(map[string]any)
	if depth > maxDepth {
		s.count = maxSteps + 1
	}
	if !ok || s.count > maxSteps {
		return
	}
	s.count++
	if ref, ok := m["$ref"].(string); ok {
		target, _ := s.d.at(ref)
		s.add(target, value, depth)
	}
	s.addAll(m, sameValue, value, depth)
	switch value := value.(type) {
	case string:
		if pattern, ok := m["pattern"].(string); ok {
			s.match(pattern, value)
		}
	case []any:
		for _, item := range value {
			s.addAll(m, ofItems, item, depth+1)
		}
	case map[string]any:
		s.addFields(m, value, depth+1)
	}
}

func (s *steps) addFields(m, fields map[string]any, depth int) {
	properties, _ := m["properties"].(map[string]any)
	patterns, _ := m["patternProperties"].(map[string]any)
	for name, field := range fields {
		for pattern := range patterns {
			s.match(pattern, name)
		}
		s.add(m["propertyNames"], name, depth)
		s.add(properties[name], field, depth)
		s.addAll(m, ofFields, field, depth)
	}
}

func (s *steps) match(pattern, text string) {
	s.count += s.patterns[pattern] * len(text) / matchPerStep
}

func (s *steps) addAll(m map[string]any, keywords []string, value any, depth int) {
	for _, keyword := range keywords {
		for _, part := range subschemas(m, keyword) {
			s.add(part, value, depth)
		}
	}
}

// text returns v as JSON on one line.
func text(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // was decoded from JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// oneLine returns text with a space for each line break and each other control
// character.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit]))
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
