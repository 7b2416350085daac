package scenario

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/internal/nearest"
)

// The variables that every scenario has. SESSION_ID is there after the first step of
// a session. TEMP is a folder of the run's own, so that what a back end keeps on disk
// meets no other run, also with the same seed and port.
const (
	varPort    = "PORT"
	varBackend = "BACKEND"
	varBaseURL = "HEADS_BASE_URL"
	varHead    = "HEAD_ID"
	varSession = "SESSION_ID"
	varTemp    = "TEMP"
	prefixEnv  = "env:"
)

var ownVariables = []string{varPort, varBackend, varBaseURL, varHead, varSession, varTemp}

// variables has the values of the variables by name. A value is of kind Text, except
// one that save has kept as another kind.
type variables map[string]*yamltext.Value

func (vars variables) set(name, text string) { vars[name] = yamltext.NewText(text) }

// lookup returns the value of a variable. An error follows its name.
func (vars variables) lookup(name string) (*yamltext.Value, error) {
	if v, ok := vars[name]; ok {
		return v, nil
	}
	if env, ok := strings.CutPrefix(name, prefixEnv); ok {
		return fromEnvironment(env)
	}
	hint := ""
	if near := nearest.Name(name, slices.Collect(maps.Keys(vars))); near != "" {
		hint = "; did you mean ${" + near + "}?"
	}
	switch {
	case name == "":
		return nil, errors.New("names no variable; write $${ for the text ${")
	case name == varSession || strings.HasPrefix(name, varSession+":"):
		return nil, fmt.Errorf("is not known here: a session opens at its first say, user or call%s", hint)
	case strings.HasPrefix(name, varHead+":"):
		return nil, fmt.Errorf("is not known here: there is no head with this label%s", hint)
	case slices.Contains(ownVariables, name):
		return nil, errors.New("is not known here; only ${env:NAME} is")
	}
	return nil, fmt.Errorf("is not set or not yet saved here%s; save it in an earlier step, or write ${env:NAME} for a variable of the environment", hint)
}

// fromEnvironment returns a variable of the caller's environment. Those of the
// service are refused: a back end under test never has them.
func fromEnvironment(name string) (*yamltext.Value, error) {
	if isServiceSetting(name) {
		return nil, errors.New("is refused, since HEADS_* of the shell belongs to the real service; a test sets its own")
	}
	text, ok := os.LookupEnv(name)
	if !ok {
		return nil, errors.New("is not set in the environment; set it, or write the value itself")
	}
	return yamltext.NewText(text), nil
}

// isServiceSetting reports whether a variable of the environment is a setting of
// the service.
func isServiceSetting(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "HEADS_") }

// expand returns a value with its variables replaced, in keys too. A text that is one
// variable alone has the kind of what was saved. The error joins all faults.
func (vars variables) expand(v *yamltext.Value) (*yamltext.Value, error) {
	if v == nil {
		return nil, nil
	}
	return (&yamltext.Filler{Value: vars.lookup, All: true}).Fill(v)
}

// text returns a text with its variables replaced.
func (vars variables) text(v *yamltext.Value) (string, error) {
	filled, err := (&yamltext.Filler{Value: vars.lookup}).Fill(v)
	return filled.Text, err
}

// faults returns the faults of all variables in a value.
func (vars variables) faults(v *yamltext.Value) []error {
	_, err := vars.expand(v)
	return yamltext.Faults(err)
}

// hasReference reports whether a text has a variable.
func hasReference(text string) bool { return yamltext.Reference.MatchString(text) }
