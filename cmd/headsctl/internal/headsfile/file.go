// Package headsfile reads heads.yaml: what is wanted of heads, in one environment or in
// several.
package headsfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
)

// ID matches the id of a head.
var ID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// File is a heads.yaml.
type File struct {
	Environments []*Environment // in the order of the file; none in most files
	Secret       func(string)   // unless nil, is called with each secret value before it is used

	root   *yamltext.Value
	folder string  // of {file: PATH}
	faults []error // of the schema, of the environments and of the ids in them

	setAlone bool // the faults are those of the schema under set
}

// Head is an entry of a file, as one environment sees it.
type Head struct {
	Label string
	IDs   map[string]string // by environment; "" where the file says that the head is not there
	Spec  *fleet.Spec       // what is wanted of it; nil where it is not there
}

// Parse reads the text of a heads.yaml. Texts of {file: PATH} come from the folder;
// with NoFolder they are refused. The faults inside of the document are those of Heads.
func Parse(text []byte, folder string) (*File, error) {
	root, err := yamltext.Parse(text)
	if err != nil {
		return nil, err
	}
	f := &File{root: root, folder: folder, faults: headsSchema.Check(root, "", nil)}
	f.setAlone = len(headsSchema.Check(withoutFaultySets(root), "", nil)) == 0
	if environments := root.Get("environments"); environments.IsGiven() {
		r := specReader{faults: f.faults}
		f.Environments = r.environments(environments)
		f.checkIDs(&r)
		f.setAlone = f.setAlone && len(r.faults) == len(f.faults)
		f.faults = r.faults
	}
	return f, nil
}

// Names returns the names of the environments.
func (f *File) Names() []string {
	var names []string
	for _, e := range f.Environments {
		names = append(names, e.Name)
	}
	return names
}

// Environment returns the environment of a name. For a file without environments the
// name is "", and the environment nil. The text of an error follows the name of the file.
func (f *File) Environment(name string) (*Environment, error) {
	names := f.Names()
	i := slices.Index(names, name)
	switch {
	case i >= 0:
		return f.Environments[i], nil
	case len(names) == 0 && name == "":
		return nil, nil
	case name == "":
		return nil, fmt.Errorf("has environments; choose one with --env: %s", strings.Join(names, ", "))
	case len(names) == 0:
		return nil, fmt.Errorf("has no environments; leave out --env %s, or describe it under the key environments", show.Clip(name, maxShown))
	}
	return nil, fmt.Errorf("has no environment %q%s; it has %s", show.Clip(name, maxShown), similar.Hint(name, names), strings.Join(names, ", "))
}

// Heads returns all entries of the file as an environment sees them, in the order of
// the file. The name is "" for a file without environments. Of an environment only ids
// and values count. Of variables and files, it reads those of the values that are used.
// The error joins all faults, each with its place.
func (f *File) Heads(environment string) ([]Head, error) {
	e, err := f.Environment(environment)
	if err != nil {
		return nil, errors.Join(append(slices.Clone(f.faults), err)...)
	}
	r := specReader{folder: f.folder}
	if e != nil {
		r.values = &valueReader{environment: e, folder: f.folder, secret: f.Secret}
	}
	all := r.heads(f, e)
	faults := slices.Concat(f.faults, r.faults)
	if len(faults) == 0 && len(all) == 0 {
		faults = append(faults, errors.New("there are no heads; write a list with the key heads"))
	}
	return all, yamltext.Join(faults)
}

// Specs returns what is wanted of the heads of an environment. It is Heads without
// those that are not there.
func (f *File) Specs(environment string) ([]fleet.Spec, error) {
	all, err := f.Heads(environment)
	var specs []fleet.Spec
	for _, h := range all {
		if h.Spec != nil {
			specs = append(specs, *h.Spec)
		}
	}
	if err != nil {
		if f.setAlone && len(yamltext.Faults(err)) == len(f.faults) {
			err = errors.Join(append(yamltext.Faults(err), f.behind(specs)...)...)
		}
		return nil, err
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("no head is in %s; give one its id there", environment)
	}
	return specs, nil
}

// behind returns what apply would refuse of the specs of a file in which the schema finds faults in
// set alone.
func (f *File) behind(specs []fleet.Spec) []error {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // so nothing is sent
	c, err := heads.New("https://example.com", "token")
	if err == nil {
		_, err = fleet.Plan(ended, c, specs, fleet.Options{})
	}
	if !errors.Is(err, heads.ErrInvalid) {
		return nil
	}
	return f.InDefaults(yamltext.Faults(err), error.Error)
}

// Entries returns what the entries of a list want: those under the key heads of a file
// without environments. An id may be absent.
func Entries(list *yamltext.Value, folder string) ([]fleet.Spec, error) {
	r := specReader{folder: folder}
	var specs []fleet.Spec
	for _, entry := range list.Items {
		specs = append(specs, r.wanted(entry, "entry").under(wanted{}))
	}
	return specs, yamltext.Join(r.faults)
}

// heads reads a file as an environment sees it, nil for a file without environments. What has
// a fault is left out.
func (r *specReader) heads(f *File, e *Environment) (all []Head) {
	var defaults wanted
	if v := f.root.Get("defaults"); v.IsGiven() {
		r.noSecretNames(v)
		defaults = r.wanted(v, "defaults")
	}
	for _, entry := range itemsOf(f.root.Get("heads")) {
		ids := entry.Get("id")
		if e != nil {
			entry = entry.With("id", idIn(ids, e.Name))
			r.noSecretNames(entry)
		}
		spec := r.wanted(entry, "entry").under(defaults)
		h := Head{Label: spec.Label}
		if e == nil || spec.ID != "" {
			h.Spec = &spec
		}
		if e != nil {
			h.IDs = idsOf(ids)
		}
		all = append(all, h)
	}
	return all
}

// noSecretNames refuses secret values in what the journal keeps of a head: its id, its label and
// its name.
func (r *specReader) noSecretNames(v *yamltext.Value) {
	if r.values == nil || len(r.values.environment.secrets) == 0 {
		return
	}
	for _, name := range []*yamltext.Value{v.Get("id"), v.Get("label"), v.Get("set").Get("name")} {
		if name.IsGiven() {
			_, err := (&yamltext.Filler{Value: r.values.notSecret}).Fill(name)
			r.fault(err)
		}
	}
}

// idsOf returns the ids of an entry by environment. What is no object is a fault of
// its own.
func idsOf(v *yamltext.Value) map[string]string {
	ids := map[string]string{}
	if v.IsGiven() {
		for _, m := range v.Members {
			ids[m.Key] = ""
			if m.Value.Kind == yamltext.Text {
				ids[m.Key] = m.Value.Text
			}
		}
	}
	return ids
}

// idIn returns the id of an entry in an environment.
func idIn(ids *yamltext.Value, environment string) *yamltext.Value {
	none := &yamltext.Value{Kind: yamltext.Null}
	if !ids.IsGiven() {
		return none
	}
	return cmp.Or(ids.Get(environment), none)
}
