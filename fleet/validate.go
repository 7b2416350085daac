package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/nearest"
	"github.com/headsapi/heads-go/internal/registration"
)

// The values of InvalidError.Use that this package sets. Faults of package heads keep their own.
const (
	useBackground = "context.Background"
	useNew        = "New"
)

// invalid returns an InvalidError. The problem continues the sentence that field begins. If the
// remedy names a function, use is its name.
func invalid(operation, field, problem, remedy string, use ...string) *heads.InvalidError {
	return &heads.InvalidError{Operation: operation, Field: field, Problem: problem, Remedy: remedy, Use: strings.Join(use, "")}
}

// validate returns all faults of all specs, each an InvalidError.
func validate(operation string, specs []Spec) (faults []error) {
	seen := map[string]int{}
	for i, spec := range specs {
		f := specFaults{operation: operation, spec: fmt.Sprintf("specs[%d] (label %q, id %q)", i, clip(spec.Label), clip(spec.ID))}
		f.check(spec)
		id := strings.ToLower(spec.ID)
		if first, twice := seen[id]; twice && id != "" {
			f.add("id", fmt.Sprintf("is the id of entry %d too", first), "put all that is wanted of one head into one entry")
		} else {
			seen[id] = i
		}
		faults = append(faults, f.faults...)
	}
	return faults
}

// specFaults collects the faults of one spec.
type specFaults struct {
	operation, spec string
	faults          []error
}

func (f *specFaults) add(field, problem, remedy string, use ...string) {
	f.faults = append(f.faults, invalid(f.operation, f.spec+" "+field, problem, remedy, use...))
}

// addAll adds faults that package heads found. Without a field, each keeps its own.
func (f *specFaults) addAll(field string, err error) {
	for _, fault := range invalidErrors(err) {
		name := field
		if name == "" {
			name = fault.Field
		}
		f.add(name, fault.Problem, fault.Remedy, fault.Use)
	}
}

// invalidErrors returns the InvalidErrors in a joined error.
func invalidErrors(err error) []*heads.InvalidError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *heads.InvalidError:
		return []*heads.InvalidError{e}
	case interface{ Unwrap() []error }:
		var all []*heads.InvalidError
		for _, part := range e.Unwrap() {
			all = append(all, invalidErrors(part)...)
		}
		return all
	}
	return nil
}

func (f *specFaults) check(spec Spec) {
	if fault := check.HeadID(spec.ID); fault.Found() {
		f.add("id", fault.Problem, fault.Remedy, fault.Use)
	}
	for _, field := range slices.Sorted(maps.Keys(spec.Set)) {
		f.checkField(field, spec.Set[field])
	}
	if v := spec.Voice; v != nil {
		f.addAll("voice", heads.NewHeadUpdate().Voice(v.Provider, v.ID).Validate())
	}
	f.checkWebhooks(spec.ID, spec.Webhooks)
	if spec.Tools != nil {
		f.checkTools(*spec.Tools)
	}
}

// keysOfTheirOwn maps the fields of a head that can't be in Set to the keys of a Spec that replace
// them.
var keysOfTheirOwn = map[string]string{
	"id": "id", "ttsProvider": "voice", "ttsVoice": "voice", "videoStreaming": "streaming", "enableEvents": "delivery", "conversationSettings": "tools",
}

func (f *specFaults) checkField(field string, value any) {
	name := "set." + clip(field)
	if key, ok := keysOfTheirOwn[field]; ok {
		f.add(name, "can't be set here", fmt.Sprintf("use the key %s of the spec", key))
		return
	}
	if err := heads.NewHeadUpdate().Set(field, value).Validate(); err != nil {
		f.addAll(name, err)
		return
	}
	if !slices.Contains(heads.WritableFields(), field) {
		remedy := ""
		if meant := nearest.Name(field, heads.WritableFields()); meant != "" {
			remedy = "did you mean " + meant + "?"
		}
		f.add(name, "is not a field of a head that can be set", remedy)
	}
}

// checkWebhooks does not report the fault of the id, which is one of the spec.
func (f *specFaults) checkWebhooks(id string, hooks []WebhookSpec) {
	seen := map[string]int{}
	for i, hook := range hooks {
		name := fmt.Sprintf("webhooks[%d]", i)
		for _, fault := range invalidErrors(heads.WebhookSpec{HeadID: id, URL: hook.URL, Events: hook.Events}.Validate()) {
			field := fault.Field
			switch field {
			case "head id":
				continue
			case "webhookUrl":
				field = "url"
			}
			f.add(name+"."+field, fault.Problem, fault.Remedy, fault.Use)
		}
		key := registration.URLKey(hook.URL)
		if first, twice := seen[key]; twice && hook.URL != "" {
			f.add(name, fmt.Sprintf("has the URL of webhooks[%d]", first), "a URL has one registration")
			continue
		}
		seen[key] = i
	}
}

func (f *specFaults) checkTools(tools []heads.Tool) {
	seen := map[string]bool{}
	for _, tool := range tools {
		f.addAll("", tool.Validate())
		if seen[tool.Name] {
			f.add(fmt.Sprintf("tool %q", clip(tool.Name)), "is given twice", "names must differ")
		}
		seen[tool.Name] = true
	}
}
