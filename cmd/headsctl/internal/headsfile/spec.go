package headsfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/schema"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/schemas"
	"github.com/headsapi/heads-go/fleet"
)

const maxShown = 80 // characters of what a fault shows

// ParseTool reads the text of one tool.
func ParseTool(text []byte, folder string) (tool heads.Tool, err error) {
	definition, err := yamltext.Parse(text)
	if err != nil {
		return tool, err
	}
	r := specReader{folder: folder}
	r.check(definition, "tool")
	if len(r.faults) == 0 {
		r.fault(decode(definition, &tool))
	}
	return tool, errors.Join(r.faults...)
}

var headsSchema = schema.MustParse(schemas.Heads)

// isA reports whether a value is as a definition of the schema says.
func isA(v *yamltext.Value, definition string) bool {
	return len(headsSchema.Check(v, definition, nil)) == 0
}

// specReader turns the values of a heads.yaml into specs. It collects faults.
type specReader struct {
	folder string       // of {file: PATH}
	values *valueReader // of ${name}; nil for a file without environments
	faults []error
}

func (r *specReader) fault(err error) {
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// itemsOf returns the items of an optional list.
func itemsOf(v *yamltext.Value) []*yamltext.Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// check checks a value, and puts what {file: PATH} stands for in its place.
func (r *specReader) check(v *yamltext.Value, definition string) {
	for _, fault := range headsSchema.Check(v, definition, schema.Checks{"text": r.fileText, "fieldText": r.fileText, "tools": r.fileTools}) {
		r.fault(fault)
	}
}

// readFile returns the text of {file: PATH}.
func (r *specReader) readFile(v *yamltext.Value) (string, error) {
	text, err := readText(r.folder, v.Get("file").Text, maxFileText)
	if err != nil {
		return "", v.Errorf("%v", err)
	}
	return text, nil
}

func (r *specReader) fileText(v *yamltext.Value) error {
	if v.Kind != yamltext.Object {
		return nil
	}
	text, err := r.readFile(v)
	v.Kind, v.Text, v.Members = yamltext.Text, text, nil
	return err
}

// fileTools reads a file with a list of tools, in which ${name} are filled in. Its faults
// have their places in both files.
func (r *specReader) fileTools(v *yamltext.Value) error {
	if v.Kind != yamltext.Object {
		return nil
	}
	text, err := r.readFile(v)
	if err != nil {
		return err
	}
	inner := specReader{folder: r.folder, values: r.values}
	list, err := yamltext.Parse([]byte(text))
	switch {
	case err != nil:
		inner.fault(err)
	case list.Kind == yamltext.Null:
		inner.fault(list.Errorf("there are no tools; write a list of them, or [] for none"))
	case list.Kind != yamltext.List:
		inner.fault(list.Want(yamltext.List))
	default:
		list = inner.filled(list)
		inner.check(list, "tools")
		v.Kind, v.Items = yamltext.List, list.Items
	}
	var faults []error
	for _, fault := range inner.faults {
		faults = append(faults, v.Errorf("%s:%v", show.Line(v.Get("file").Text), fault))
	}
	return errors.Join(faults...)
}

// filled returns a copy of a value with the values of the environment.
func (r *specReader) filled(v *yamltext.Value) *yamltext.Value {
	filler := yamltext.Filler{}
	if r.values != nil {
		filler.Value = r.values.value
	}
	filled, err := filler.Fill(v)
	for _, fault := range yamltext.Faults(err) {
		r.fault(fault)
	}
	return filled
}

// wanted is what an entry and the defaults can both hold.
type wanted struct {
	fleet.Spec
	Set           map[string]json.RawMessage `json:"set"`
	PruneWebhooks *bool                      `json:"prune_webhooks"`
}

// wanted reads an entry or the defaults. What has a fault is left out.
func (r *specReader) wanted(v *yamltext.Value, definition string) (w wanted) {
	v = r.filled(v)
	r.check(v, definition)
	id := v.Get("id")
	if id != nil && r.values == nil {
		r.check(id, "text")
	}
	v = withoutFaultySet(v)
	if isA(v, definition) && (!id.IsGiven() || id.Kind == yamltext.Text) {
		r.fault(decode(v, &w))
	}
	return w
}

// withoutFaultySet returns an entry or the defaults with those members of set that have no faults.
func withoutFaultySet(v *yamltext.Value) *yamltext.Value {
	set := v.Get("set")
	if set == nil || set.Kind != yamltext.Object {
		return v
	}
	kept := *set
	kept.Members = slices.DeleteFunc(slices.Clone(set.Members), func(m yamltext.Member) bool {
		one := *set
		one.Members = []yamltext.Member{m}
		return !isA(&one, "set")
	})
	return v.With("set", &kept)
}

// withoutFaultySets does the same in a file.
func withoutFaultySets(file *yamltext.Value) *yamltext.Value {
	if defaults := file.Get("defaults"); defaults != nil {
		file = file.With("defaults", withoutFaultySet(defaults))
	}
	list := file.Get("heads")
	if list == nil {
		return file
	}
	kept := *list
	kept.Items = slices.Clone(list.Items)
	for i, entry := range list.Items {
		kept.Items[i] = withoutFaultySet(entry)
	}
	return file.With("heads", &kept)
}

// decode decodes a value that the schema has checked.
func decode(v *yamltext.Value, into any) error {
	document, err := v.AppendJSON(nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(document, into)
}

// under returns the spec with the defaults: fields are merged, everything else
// replaces the default.
func (w wanted) under(defaults wanted) fleet.Spec {
	s := w.Spec
	if defaults.Set != nil || w.Set != nil {
		s.Set = map[string]any{}
	}
	for _, set := range []map[string]json.RawMessage{defaults.Set, w.Set} {
		for name, value := range set {
			s.Set[name] = plain(value)
		}
	}
	s.Voice = cmp.Or(w.Voice, defaults.Voice)
	s.Streaming = cmp.Or(w.Streaming, defaults.Streaming)
	s.Delivery = cmp.Or(w.Delivery, defaults.Delivery)
	s.Tools = cmp.Or(w.Tools, defaults.Tools)
	if w.Webhooks == nil {
		s.Webhooks = defaults.Webhooks
	}
	prune := cmp.Or(w.PruneWebhooks, defaults.PruneWebhooks)
	s.PruneWebhooks = prune != nil && *prune
	return s
}

// plain returns null and a text as Go has them, and all other JSON as it is.
func plain(value json.RawMessage) any {
	switch rawjson.Kind(value) {
	case "null":
		return nil
	case "string":
		return rawjson.Unquote(value)
	}
	return value
}
