// Package headsfile reads heads.yaml: what is wanted of heads, in one environment or in
// several.
package headsfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	faults []error // of the environments and the ids in them
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
	f := &File{root: root, folder: folder}
	if root.Kind != yamltext.Object {
		return f, nil
	}
	if environments := root.Get("environments"); given(environments) {
		r := specReader{}
		f.Environments = r.environments(environments)
		f.checkIDs(&r)
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
	heads := r.heads(f.root, e)
	faults := slices.Concat(f.faults, r.faults)
	if len(faults) == 0 && len(heads) == 0 {
		faults = append(faults, errors.New("there are no heads; write a list with the key heads"))
	}
	return heads, yamltext.Join(faults)
}

// Specs returns what is wanted of the heads of an environment. It is Heads without
// those that are not there.
func (f *File) Specs(environment string) ([]fleet.Spec, error) {
	heads, err := f.Heads(environment)
	if err != nil {
		return nil, err
	}
	var specs []fleet.Spec
	for _, h := range heads {
		if h.Spec != nil {
			specs = append(specs, *h.Spec)
		}
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("no head is in %s; give one its id there", environment)
	}
	return specs, nil
}

// Entries returns what the entries of a list want: those under the key heads of a file
// without environments. An id may be absent.
func Entries(list *yamltext.Value, folder string) ([]fleet.Spec, error) {
	r := specReader{folder: folder}
	var specs []fleet.Spec
	for _, entry := range r.list(list) {
		if spec := r.entry(entry, wanted{}); spec != nil {
			specs = append(specs, *spec)
		}
	}
	return specs, yamltext.Join(r.faults)
}

// heads reads a file as an environment sees it, nil for a file without environments.
func (r *specReader) heads(file *yamltext.Value, e *Environment) (all []Head) {
	if !given(file) || !r.isObject(file, fileKeys...) {
		return nil
	}
	var defaults wanted
	r.noSecretNames(file.Get("defaults"))
	if v := r.filled(file.Get("defaults")); given(v) && r.isObject(v, wantedKeys...) {
		defaults = r.wanted(v)
	}
	for _, entry := range r.list(file.Get("heads")) {
		var ids *yamltext.Value
		if e != nil {
			ids = entry.Get("id")
			entry = entry.With("id", idIn(ids, e.Name))
			r.noSecretNames(entry)
			entry = r.filled(entry)
		}
		spec := r.entry(entry, defaults)
		if spec == nil {
			continue
		}
		h := Head{Label: spec.Label}
		if e == nil || spec.ID != "" {
			h.Spec = spec
		}
		if e != nil {
			h.IDs = idsOf(ids)
		}
		all = append(all, h)
	}
	return all
}

// filled returns a value with the values of the environment.
func (r *specReader) filled(v *yamltext.Value) *yamltext.Value {
	if r.values == nil || !given(v) {
		return v
	}
	filled, err := v.Fill(r.values.value)
	for _, fault := range faultsOf(err) {
		r.fault(fault)
	}
	return filled
}

// noSecretNames refuses secret values in what the journal keeps of a head: its id, its label and
// its name.
func (r *specReader) noSecretNames(v *yamltext.Value) {
	if r.values == nil || !given(v) {
		return
	}
	names := []*yamltext.Value{v.Get("id"), v.Get("label")}
	if set := v.Get("set"); given(set) {
		names = append(names, set.Get("name"))
	}
	for _, name := range names {
		if given(name) {
			_, err := name.Fill(r.values.notSecret)
			r.fault(err)
		}
	}
}

// entry reads what is wanted of one head.
func (r *specReader) entry(v *yamltext.Value, defaults wanted) *fleet.Spec {
	if !r.isObject(v, entryKeys...) {
		return nil
	}
	spec := r.wanted(v).under(defaults)
	spec.ID, spec.Label = r.text(v.Get("id")), r.text(v.Get("label"))
	return &spec
}

// idsOf returns the ids of an entry by environment. What is no object is a fault of
// its own.
func idsOf(v *yamltext.Value) map[string]string {
	ids := map[string]string{}
	if given(v) {
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
	if !given(ids) {
		return none
	}
	return cmp.Or(ids.Get(environment), none)
}
