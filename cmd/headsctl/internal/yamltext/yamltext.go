// Package yamltext reads YAML and JSON that people wrote and nobody has checked: it
// bounds what a text may cost before it is parsed, and keeps every value as it was
// written, with its place.
package yamltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/internal/mask"
)

// The limits of a text. Nodes and levels include those that aliases repeat.
const (
	MaxBytes      = 4 << 20
	MaxLevels     = 64
	MaxExpansions = 1_000
	MaxNodes      = 100_000
)

// Error is a fault of a text.
type Error struct {
	Line, Column int // from 1; the column counts characters
	Text         string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

// Kind is the type of a value.
type Kind string

// The kinds. A plain scalar has the kind that YAML 1.2 gives it, or Number or Date
// if only YAML 1.1 does.
const (
	Null   Kind = "null"
	Bool   Kind = "boolean"
	Number Kind = "number"
	Date   Kind = "date"
	Text   Kind = "text"
	List   Kind = "list"
	Object Kind = "object"
)

// Value is a value of a text.
type Value struct {
	Kind         Kind
	Line, Column int
	Text         string   // of a scalar; for all but a Text, as it was written
	Items        []*Value // of a List
	Members      []Member // of an Object, in the order of the text; each key once

	hidden bool // under a name that tells of a secret: no error shows it
	size   size
}

// Member is a member of an Object.
type Member struct {
	Key          string
	Line, Column int // of the key
	Value        *Value
}

// KeyValue returns the key as a value at its place.
func (m Member) KeyValue() *Value {
	return &Value{Kind: Text, Line: m.Line, Column: m.Column, Text: m.Key}
}

// Get returns the value of a member, or nil, also for nil.
func (v *Value) Get(key string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range v.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// IsGiven reports whether an optional value is there. null is no value.
func (v *Value) IsGiven() bool { return v != nil && v.Kind != Null }

// String returns an optional text, or "".
func (v *Value) String() string {
	if v == nil || v.Kind != Text {
		return ""
	}
	return v.Text
}

// IsTrue reports whether an optional value is true.
func (v *Value) IsTrue() bool { return v != nil && v.Kind == Bool && strings.EqualFold(v.Text, "true") }

// Errorf returns an error at the place of the value.
func (v *Value) Errorf(format string, args ...any) error {
	return &Error{v.Line, v.Column, fmt.Sprintf(format, args...)}
}

// Shown returns a scalar as errors show it, a text in quotes. What no error shows is "this".
func (v *Value) Shown() string {
	scalar, quoted := v.shown()
	switch {
	case v.hidden || v.Kind == List || v.Kind == Object:
		return "this"
	case v.Kind == Text:
		return quoted
	}
	return scalar
}

// shown returns a scalar as errors show it, and what to write for its text.
func (v *Value) shown() (scalar, quoted string) {
	if v.hidden {
		return "this", "it in quotes"
	}
	text := show.Clip(v.Text, maxShown)
	return text, string(rawjson.String(text))
}

const maxShown = 80 // characters of a value in an error

// hide marks a value and all that is in it as secret.
func (v *Value) hide() {
	v.hidden = true
	for _, item := range v.Items {
		item.hide()
	}
	for _, m := range v.Members {
		m.Value.hide()
	}
}

// namesASecret reports whether a value of that name is masked where it is shown.
func namesASecret(key string) bool {
	document := append(rawjson.AppendMember([]byte{'{'}, key, []byte(`"s"`)), '}')
	return !bytes.Equal(mask.JSON(document), document)
}

// Want returns an error unless the value has the kind. For a text that YAML reads
// as something else it shows how to write it.
func (v *Value) Want(kind Kind) error {
	scalar, quoted := v.shown()
	switch {
	case v.Kind == kind:
		return nil
	case kind == Text && slices.Contains([]Kind{Bool, Number, Date}, v.Kind):
		return v.Errorf("%s is a %s in YAML; write %s for the text", scalar, v.Kind, quoted)
	case kind == Bool && v.Kind == Text:
		return v.Errorf("this is a text; want true or false")
	}
	return v.Errorf("this is %s; want %s", v.Kind.WithArticle(), kind.WithArticle())
}

// WithArticle returns the kind as a sentence names it: "a text", "an object".
func (k Kind) WithArticle() string {
	if k == Object {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// AppendJSON appends the value as JSON: members in their order, numbers with their
// digits. It returns an error for what JSON can't hold, such as a date.
func (v *Value) AppendJSON(b []byte) ([]byte, error) {
	var err error
	switch v.Kind {
	case Null:
		return append(b, "null"...), nil
	case Bool:
		return append(b, strings.ToLower(v.Text)...), nil
	case Number:
		if !json.Valid([]byte(v.Text)) {
			scalar, quoted := v.shown()
			return b, v.Errorf("%s is a number that JSON can't hold as it is written; write it in decimal, or %s for the text", scalar, quoted)
		}
		return append(b, v.Text...), nil
	case Date:
		return b, v.Want(Text)
	case Text:
		return rawjson.AppendString(b, v.Text), nil
	case List:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = item.AppendJSON(b); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	for i, m := range v.Members {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = m.Value.AppendJSON(append(rawjson.AppendString(b, m.Key), ':')); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// Parse reads one document of YAML or JSON. An empty text is Null. The limits are
// checked before the text is parsed. Faults are of type *Error where they have a
// place.
func Parse(text []byte) (*Value, error) {
	if len(text) > MaxBytes {
		return nil, &Error{1, 1, fmt.Sprintf("the text has more than %d bytes; split it", MaxBytes)}
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the text is not UTF-8; save it as UTF-8")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	m := newMeter(text)
	if err := m.measure(); err != nil {
		return nil, err
	}
	if json.Valid(text) {
		return parseJSON(text)
	}
	if at := bytes.IndexFunc(text, isForbidden); at >= 0 {
		line, column := placeOf(text, at)
		r, _ := utf8.DecodeRune(text[at:])
		return nil, &Error{line, column, fmt.Sprintf(`YAML has no place for the character %U; leave it out, or write "\u%04x" in double quotes`, r, r)}
	}
	v, err := parseYAML(m.withStandIn())
	if err == nil && m.keyAlone != nil {
		return nil, m.keyAlone
	}
	return v, err
}

// isForbidden reports whether a character can't stand in YAML. The parser says so, but not where.
func isForbidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == '\ufeff' || r == 0xfffe || r == 0xffff
}

// placeOf returns the line and column of a byte.
func placeOf(text []byte, at int) (line, column int) {
	before := text[:at]
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// withStandIn returns the text for the parser. The parser ends a plain scalar inside
// [] or {} at a question mark, as YAML 1.1 has it: [Where is the lift?] would be an
// error. So each of these is replaced by a character that the text doesn't hold.
func (m *meter) withStandIn() (text []byte, standIn string) {
	if len(m.questions) == 0 {
		return m.text, ""
	}
	r := '\ue000'
	for bytes.ContainsRune(m.text, r) {
		r++
	}
	text = make([]byte, 0, len(m.text)+2*len(m.questions))
	from := 0
	for _, at := range m.questions {
		text = utf8.AppendRune(append(text, m.text[from:at]...), r)
		from = at + 1
	}
	return append(text, m.text[from:]...), string(r)
}

var (
	// atLine matches the place in an error of the parser, which knows no column.
	atLine        = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.+)' referenced$`)
)

func parseYAML(text []byte, standIn string) (*Value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return &Value{Kind: Null, Line: 1, Column: 1}, nil
	case err != nil:
		return nil, syntaxError(text, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document; leave out the ---")
	}
	b := builder{anchors: map[*yaml.Node]*Value{}, standIn: standIn}
	return b.value(document.Content[0], 1)
}

// syntaxError gives an error of the parser the place of the first character of its
// line.
func syntaxError(text []byte, err error) error {
	found := atLine.FindStringSubmatch(err.Error())
	message := strings.TrimPrefix(err.Error(), found[0])
	line, _ := strconv.Atoi(found[1])
	lines := bytes.Split(text, []byte{'\n'})
	line = min(max(line, 1), len(lines))
	content := lines[line-1]
	column := len(content) - len(bytes.TrimLeft(content, " ")) + 1
	if name := unknownAnchor.FindStringSubmatch(message); name != nil { // it has no line
		if at := bytes.Index(text, []byte("*"+name[1])); at >= 0 {
			line, column = placeOf(text, at)
		}
	}
	return &Error{line, column, message}
}

// size is what a value costs if its aliases are expanded.
type size struct{ nodes, expansions, levels int }

func (s *size) add(child size) {
	s.nodes += child.nodes
	s.expansions += child.expansions
	s.levels = max(s.levels, child.levels+1)
}

// builder turns the nodes of a document into values. The value of an anchor is
// built once, and shared.
type builder struct {
	anchors map[*yaml.Node]*Value // nil while the anchor is being built
	standIn string                // for ?, or ""
}

func (b *builder) value(n *yaml.Node, level int) (*Value, error) {
	if level > MaxLevels+1 {
		return nil, tooDeep(n.Line, n.Column)
	}
	if n.Kind == yaml.AliasNode {
		return b.alias(n, level)
	}
	if n.Anchor != "" {
		b.anchors[n] = nil
	}
	v := &Value{Line: n.Line, Column: n.Column, size: size{nodes: 1}}
	if err := b.fill(v, n, level); err != nil {
		return nil, err
	}
	if n.Anchor != "" {
		b.anchors[n] = v
	}
	return v, nil
}

// alias returns the value of the anchor at the place of the alias.
func (b *builder) alias(n *yaml.Node, level int) (*Value, error) {
	target := b.anchors[n.Alias]
	if target == nil {
		return nil, &Error{n.Line, n.Column, fmt.Sprintf("the alias *%s is a part of what it stands for", n.Value)}
	}
	v := *target
	v.Line, v.Column = n.Line, n.Column
	v.size.expansions++
	if level+v.size.levels > MaxLevels+1 {
		return nil, tooDeep(n.Line, n.Column)
	}
	return &v, v.size.check(n)
}

// check returns the error of a value that is too large with the node n.
func (s *size) check(n *yaml.Node) error {
	switch {
	case s.expansions > MaxExpansions:
		return &Error{n.Line, n.Column, fmt.Sprintf("aliases stand for more than %d values in all; write fewer of them", MaxExpansions)}
	case s.nodes > MaxNodes:
		return tooManyNodes(n.Line, n.Column)
	}
	return nil
}

func (b *builder) fill(v *Value, n *yaml.Node, level int) error {
	switch n.Kind {
	case yaml.ScalarNode:
		if b.standIn != "" {
			n.Value = strings.ReplaceAll(n.Value, b.standIn, "?")
		}
		return v.setScalar(n)
	case yaml.SequenceNode:
		return b.fillList(v, n, level)
	default:
		return b.fillObject(v, n, level)
	}
}

func (b *builder) fillList(v *Value, n *yaml.Node, level int) error {
	if err := checkTag(n); err != nil {
		return err
	}
	v.Kind, v.size.levels = List, 1
	for _, content := range n.Content {
		item, err := b.child(v, content, level)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	return nil
}

// child builds a value inside another one, and adds its size.
func (b *builder) child(of *Value, n *yaml.Node, level int) (*Value, error) {
	v, err := b.value(n, level+1)
	if err != nil {
		return nil, err
	}
	of.size.add(v.size)
	return v, of.size.check(n)
}

func (b *builder) fillObject(v *Value, n *yaml.Node, level int) error {
	if err := checkTag(n); err != nil {
		return err
	}
	v.Kind, v.size.levels = Object, 1
	seen := map[string]bool{}
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := b.child(v, n.Content[i], level)
		if err != nil {
			return err
		}
		value, err := b.child(v, n.Content[i+1], level)
		if err != nil {
			return err
		}
		if n.Content[i].Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if err := key.Want(Text); err != nil {
			return err
		}
		if seen[key.Text] {
			return key.Errorf("the key %q is given twice", key.Text)
		}
		seen[key.Text] = true
		if namesASecret(key.Text) {
			value.hide()
		}
		v.Members = append(v.Members, Member{key.Text, key.Line, key.Column, value})
	}
	return v.merge(merged, seen)
}

// merge adds the members of the objects under <<; what the object has itself
// goes before them, and the first of them before the next.
func (v *Value) merge(objects []*Value, seen map[string]bool) error {
	for _, from := range objects {
		if from.Kind == List {
			if err := v.merge(from.Items, seen); err != nil {
				return err
			}
			continue
		}
		if err := from.Want(Object); err != nil {
			return err
		}
		for _, m := range from.Members {
			if !seen[m.Key] {
				seen[m.Key] = true
				v.Members = append(v.Members, m)
			}
		}
	}
	return nil
}

// kinds has the kinds of plain scalars by the tag that the parser gives them.
var kinds = map[string]Kind{"!!null": Null, "!!bool": Bool, "!!int": Number, "!!float": Number, "!!timestamp": Date, "!!str": Text, "!!merge": Text}

func (v *Value) setScalar(n *yaml.Node) error {
	v.Text = n.Value
	if n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str" {
		v.Kind = Text
		return nil
	}
	if err := checkTag(n); err != nil {
		return err
	}
	kind, ok := kinds[n.Tag]
	if !ok {
		return v.Errorf("the tag %s is not supported; leave it out", n.Tag)
	}
	v.Kind = kind
	return nil
}

// checkTag refuses a tag that was written.
func checkTag(n *yaml.Node) error {
	if n.Style&yaml.TaggedStyle == 0 {
		return nil
	}
	return &Error{n.Line, n.Column, fmt.Sprintf("the tag %s is not supported; leave it out", n.Tag)}
}

// parseJSON reads a valid document.
func parseJSON(text []byte) (*Value, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	r := jsonReader{decoder: decoder, text: text, line: 1, column: 1}
	return r.value()
}

// jsonReader reads values with their places.
type jsonReader struct {
	decoder      *json.Decoder
	text         []byte
	at           int // of line and column
	line, column int
}

// next returns the next token, and moves to where it begins.
func (r *jsonReader) next() (json.Token, error) {
	start := int(r.decoder.InputOffset())
	token, err := r.decoder.Token()
	for start < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[start]) >= 0 {
		start++
	}
	for ; r.at < start; r.at++ {
		switch c := r.text[r.at]; {
		case c == '\n':
			r.line, r.column = r.line+1, 1
		case utf8.RuneStart(c):
			r.column++
		}
	}
	return token, err
}

func (r *jsonReader) value() (*Value, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	v := &Value{Line: r.line, Column: r.column}
	switch t := token.(type) {
	case nil:
		v.Kind, v.Text = Null, "null"
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = Text, t
	case json.Delim:
		return v, r.fill(v, t)
	}
	return v, nil
}

// fill reads the content of a list or an object.
func (r *jsonReader) fill(v *Value, open json.Delim) error {
	v.Kind = List
	if open == '{' {
		v.Kind = Object
	}
	seen := map[string]bool{}
	for r.decoder.More() {
		var member Member
		if v.Kind == Object {
			token, err := r.next()
			if err != nil {
				return err
			}
			member = Member{Key: token.(string), Line: r.line, Column: r.column}
			if seen[member.Key] {
				return &Error{r.line, r.column, fmt.Sprintf("the key %q is given twice", member.Key)}
			}
			seen[member.Key] = true
		}
		value, err := r.value()
		if err != nil {
			return err
		}
		if v.Kind == List {
			v.Items = append(v.Items, value)
			continue
		}
		if namesASecret(member.Key) {
			value.hide()
		}
		member.Value = value
		v.Members = append(v.Members, member)
	}
	_, err := r.next()
	return err
}
