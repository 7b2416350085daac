package headsfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// secretValue is {env: NAME} or {file: PATH} under values.
type secretValue struct {
	variable, file string
	at             *yamltext.Value
}

// maxSecret is the size of a file that stands for a value, in bytes.
const maxSecret = 64 << 10

// read returns the text. No error shows it.
func (s secretValue) read(folder string) (text string, err error) {
	where := "the variable " + s.variable
	if s.file == "" {
		if text = os.Getenv(s.variable); text == "" {
			return "", fmt.Errorf("%s is not set; set it", where)
		}
	} else {
		where = "the file " + show.Line(s.file)
		if text, err = readText(folder, s.file, maxSecret); err != nil {
			return "", err
		}
		if text == "" {
			return "", fmt.Errorf("%s is empty; write the value into it", where)
		}
	}
	if len(strings.TrimSpace(text)) < redact.MinToken {
		return "", fmt.Errorf("the value in %s has fewer than %d bytes, too few to mask it in what is printed; if it is no secret, write it under values", where, redact.MinToken)
	}
	return text, nil
}

func (s secretValue) json() []byte {
	if s.file != "" {
		return reference("file", s.file)
	}
	return reference("env", s.variable)
}

// secretsRead returns the names of the secret values that were read.
func (e *Environment) secretsRead() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(e.secrets)) {
		if e.Values[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// References returns a function that writes ${name} for each secret value that was read, the
// longest first, and $${ for ${.
func (e *Environment) References() func(text string) string {
	names := e.secretsRead()
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(e.Values[b]), len(e.Values[a])) })
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, e.Values[name], "${"+name+"}")
	}
	return strings.NewReplacer(append(pairs, "${", "$${")...).Replace
}

// valueReader returns what ${name} stand for in an environment.
type valueReader struct {
	environment *Environment
	folder      string
	secret      func(string)
	failed      map[string]bool
	names       []string // of all values, once a hint wants them
	hints       int      // that were given
}

// value returns what a ${name} stands for. That a secret value can't be read is an error
// only once.
func (r *valueReader) value(name string) (*yamltext.Value, error) {
	text, err := r.text(name)
	return yamltext.NewText(text), err
}

func (r *valueReader) text(name string) (string, error) {
	e := r.environment
	if name == reserved {
		return e.Name, nil
	}
	if text, ok := e.Values[name]; ok {
		return text, nil
	}
	s, ok := e.secrets[name]
	if !ok {
		if r.names == nil {
			r.names = append(e.valueNames(), reserved)
		}
		hint := ""
		if r.hints++; r.hints <= yamltext.MaxHints {
			hint = similar.Hint(name, r.names)
		}
		return "", fmt.Errorf("is no value of the environments%s; write it under values, or $${ for the text ${", hint)
	}
	if r.failed[name] {
		return "", nil
	}
	text, err := s.read(r.folder)
	if err != nil {
		if r.failed == nil {
			r.failed = map[string]bool{}
		}
		r.failed[name] = true
		return "", fmt.Errorf("is given in line %d, column %d of the environments: %w", s.at.Line, s.at.Column, err)
	}
	if r.secret != nil {
		r.secret(text)
	}
	e.Values[name] = text
	return text, nil
}

// notSecret returns an error for a secret value, and otherwise nothing.
func (r *valueReader) notSecret(name string) (*yamltext.Value, error) {
	if _, secret := r.environment.secrets[name]; secret {
		return nil, errors.New("is secret, but ids, labels and names are kept in files; write the text here, or a plain one under values")
	}
	return yamltext.NewText(""), nil
}

// valueNames returns the names of all values.
func (e *Environment) valueNames() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(e.Values)), maps.Keys(e.secrets))
	slices.Sort(names)
	return slices.Compact(names)
}

// readValues reads the texts of ${name}, and where those are that are secrets.
func (r *specReader) readValues(e *Environment, v *yamltext.Value) {
	e.Values, e.secrets = map[string]string{}, map[string]secretValue{}
	for _, m := range v.Members {
		switch {
		case m.Key == reserved:
			r.fault(m.KeyValue().Errorf("${%s} is the name of the environment; give the value another name", reserved))
		case m.Value.Kind == yamltext.Object && isA(m.Value, "value"):
			e.secrets[m.Key] = secretValue{variable: m.Value.Get("env").String(), file: m.Value.Get("file").String(), at: m.Value}
			continue
		case strings.Contains(m.Value.Text, "${"):
			r.fault(m.Value.Errorf("a value is filled in as it is, without what its ${ stands for; write the text itself"))
		}
		e.Values[m.Key] = m.Value.Text
	}
}

// sameValues refuses a value that only one of two environments has.
func (r *specReader) sameValues(a, b *Environment) {
	for _, name := range a.valueNames() {
		_, plain := b.Values[name]
		if _, secret := b.secrets[name]; !plain && !secret {
			r.fault(b.valuesAt.Errorf("the value %s of %s is missing for %s; give it in all environments", name, a.Name, b.Name))
		}
	}
}
