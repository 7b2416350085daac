package toolargs

import (
	"slices"
	"strings"
)

// ArgumentErrors describe the arguments of one call that could not be used. As an error,
// their text is meant for the model.
type ArgumentErrors []fault

// fault is what is wrong with the argument at path. If problem is empty, the argument
// is missing.
type fault struct{ path, problem string }

// Error returns one sentence about all missing arguments and one for each further
// fault.
func (f ArgumentErrors) Error() string {
	var missing, sentences []string
	for _, fault := range f {
		if fault.problem == "" {
			missing = append(missing, fault.path)
		} else {
			sentences = append(sentences, fault.path+" "+fault.problem)
		}
	}
	if len(missing) > 0 {
		sentences = slices.Insert(sentences, 0, missingSentence(missing))
	}
	return strings.Join(sentences, ". ")
}

// Parameters returns the names of the parameters, which a log may show. The rest of a
// path can hold the keys of a map, which are part of the body.
func (f ArgumentErrors) Parameters() []string {
	names := make([]string, len(f))
	for i, fault := range f {
		names[i], _, _ = strings.Cut(strings.ReplaceAll(fault.path, "[", "."), ".")
	}
	return names
}

// under returns f with a step in front of every path. Paths are built only after a
// fault, so that a call without faults pays nothing for them.
func (f ArgumentErrors) under(step string) ArgumentErrors {
	for i, fault := range f {
		f[i].path = step + fault.path
	}
	return f
}

func missingSentence(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is missing; ask the user for it"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are missing; ask the user for them"
}

func missing() ArgumentErrors { return ArgumentErrors{{}} }
