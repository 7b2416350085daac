package scenario

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
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

// reference matches a variable, or the text that stands for "${".
var reference = regexp.MustCompile(`\$\$\{|\$\{([^{}]*)\}?`)

// variables has the values of the variables by name. A value is of kind Text, except
// one that save has kept as another kind.
type variables map[string]*yamltext.Value

func textValue(text string) *yamltext.Value {
	return &yamltext.Value{Kind: yamltext.Text, Text: text}
}

func (vars variables) set(name, text string) { vars[name] = textValue(text) }

// lookup returns the value of a variable. The error says what is wrong with its
// name.
func (vars variables) lookup(name string) (*yamltext.Value, error) {
	if v, ok := vars[name]; ok {
		return v, nil
	}
	if env, ok := strings.CutPrefix(name, prefixEnv); ok {
		return fromEnvironment(env)
	}
	hint := ""
	if near := similar.Name(name, slices.Collect(maps.Keys(vars))); near != "" {
		hint = "; did you mean ${" + near + "}?"
	}
	switch {
	case name == "":
		return nil, fmt.Errorf("${} names no variable; write $${ for the text ${")
	case name == varSession || strings.HasPrefix(name, varSession+":"):
		return nil, fmt.Errorf("${%s} is not known here: a session opens at its first say, user or call%s", shown(name), hint)
	case strings.HasPrefix(name, varHead+":"):
		return nil, fmt.Errorf("${%s}: there is no head with this label%s", shown(name), hint)
	case slices.Contains([]string{varPort, varBackend, varBaseURL, varHead, varTemp}, name):
		return nil, fmt.Errorf("${%s} is not known here; only ${env:NAME} is", name)
	}
	return nil, fmt.Errorf("the variable ${%s} is not set or not yet saved here%s; save it in an earlier step, or write ${env:%s} for one of the environment",
		shown(name), hint, shown(name))
}

// fromEnvironment returns a variable of the caller's environment. Those of the
// service are refused: a back end under test never has them.
func fromEnvironment(name string) (*yamltext.Value, error) {
	if isServiceSetting(name) {
		return nil, fmt.Errorf("${env:%s} is refused, since HEADS_* of the shell belongs to the real service; a test sets its own", shown(name))
	}
	text, ok := os.LookupEnv(name)
	if !ok {
		return nil, fmt.Errorf("the environment variable %q is not set; set it, or write the value itself", shown(name))
	}
	return textValue(text), nil
}

// isServiceSetting reports whether a variable of the environment is a setting of
// the service.
func isServiceSetting(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "HEADS_") }

// expandText replaces the variables in a text.
func (vars variables) expandText(text string) (string, error) {
	var fault error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		if !strings.HasSuffix(found, "}") {
			fault = fmt.Errorf("%s is not closed; write ${NAME}, or $${ for the text ${", shown(found))
			return ""
		}
		v, err := vars.lookup(found[2 : len(found)-1])
		if err != nil {
			fault = err
			return ""
		}
		return asText(v)
	})
	return expanded, fault
}

// asText returns a value as a part of a text.
func asText(v *yamltext.Value) string {
	if v.Kind == yamltext.List || v.Kind == yamltext.Object {
		document, _ := v.AppendJSON(nil)
		return string(document)
	}
	return v.Text
}

// expand returns a value with its variables replaced, in keys too. A text that is one
// variable alone has the kind of what was saved.
func (vars variables) expand(v *yamltext.Value) (*yamltext.Value, error) {
	if v == nil {
		return nil, nil
	}
	expanded := *v
	var err error
	switch v.Kind {
	case yamltext.Text:
		if name, whole := wholeReference(v.Text); whole {
			if saved, err := vars.lookup(name); err == nil && saved.Kind != yamltext.Text {
				return saved, nil
			}
		}
		if expanded.Text, err = vars.expandText(v.Text); err != nil {
			return nil, v.Errorf("%v", err)
		}
	case yamltext.List:
		expanded.Items = make([]*yamltext.Value, len(v.Items))
		for i, item := range v.Items {
			if expanded.Items[i], err = vars.expand(item); err != nil {
				return nil, err
			}
		}
	case yamltext.Object:
		expanded.Members = slices.Clone(v.Members)
		for i, m := range v.Members {
			if expanded.Members[i].Key, err = vars.expandText(m.Key); err != nil {
				return nil, &yamltext.Error{Line: m.Line, Column: m.Column, Text: err.Error()}
			}
			if expanded.Members[i].Value, err = vars.expand(m.Value); err != nil {
				return nil, err
			}
		}
	}
	return &expanded, nil
}

// wholeReference returns the name of the variable that a text consists of.
func wholeReference(text string) (name string, whole bool) {
	at := reference.FindStringSubmatchIndex(text)
	if at == nil || at[0] != 0 || at[1] != len(text) || at[2] < 0 || !strings.HasSuffix(text, "}") {
		return "", false
	}
	return text[at[2]:at[3]], true
}

// hasReference reports whether a text has a variable.
func hasReference(text string) bool { return reference.MatchString(text) }
