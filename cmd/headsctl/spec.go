package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

// headsFile is heads.yaml.
type headsFile struct {
	Defaults *Wanted     `yaml:"defaults"`
	Heads    []headEntry `yaml:"heads"`
}

type headEntry struct {
	ID     fileText `yaml:"id"`
	Label  fileText `yaml:"label"`
	Wanted `yaml:",inline"`
}

// Wanted is what an entry and the defaults can both hold. It is exported since
// the decoder sets no embedded field otherwise.
type Wanted struct {
	Set           map[string]any    `yaml:"set"`
	Voice         *voiceEntry       `yaml:"voice"`
	Streaming     *bool             `yaml:"streaming"`
	Delivery      *bool             `yaml:"delivery"`
	Webhooks      *[]webhookEntry   `yaml:"webhooks"`
	PruneWebhooks *bool             `yaml:"prune_webhooks"`
	Tools         *[]map[string]any `yaml:"tools"`
}

type voiceEntry struct {
	Provider fileText `yaml:"provider"`
	ID       fileText `yaml:"id"`
}

type webhookEntry struct {
	URL    fileText   `yaml:"url"`
	Events []fileText `yaml:"events"`
}

// fileText is a text, or {file: PATH} for the text of a file.
type fileText string

// folderKey is the key of a context that holds the folder of the YAML file.
type folderKey struct{}

// UnmarshalYAML implements yaml.InterfaceUnmarshalerContext.
func (t *fileText) UnmarshalYAML(ctx context.Context, decode func(any) error) error {
	var plain string
	if decode(&plain) == nil {
		*t = fileText(plain)
		return nil
	}
	var reference struct {
		File string `yaml:"file"`
	}
	if err := decode(&reference); err != nil {
		return err
	}
	text, err := readText(ctx.Value(folderKey{}).(string), reference.File)
	*t = fileText(text)
	return err
}

// noFolder is the folder of YAML that came from elsewhere and can't refer to
// files.
const noFolder = ""

// readText reads a file whose path is relative to a folder.
func readText(folder, path string) (string, error) {
	if folder == noFolder {
		return "", errors.New("{file: PATH} is refused here, since it would read a file of this machine; give the text itself")
	}
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(folder, path)
	}
	text, err := os.ReadFile(full)
	if err != nil {
		return "", errors.Unwrap(unreadable("the file", path, err))
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("the file %s is not UTF-8; save it as UTF-8", path)
	}
	return withoutNewline(string(text)), nil
}

// readSpecs reads heads.yaml.
func (a *app) readSpecs(file string) ([]fleet.Spec, error) {
	text, err := a.readInput("the file of heads", file)
	if err != nil {
		return nil, err
	}
	specs, err := parseSpecs(text, filepath.Dir(file))
	if err != nil {
		return nil, inFile(file, err)
	}
	return specs, nil
}

// inFile puts the name of a file before each of the joined errors, and makes
// them exit code 2.
func inFile(file string, err error) error {
	var all []error
	for _, part := range parts(err) {
		separator := ": "
		if errors.As(part, new(*positionError)) {
			separator = ":"
		}
		all = append(all, fmt.Errorf("%s%s%w", nameOf(file), separator, part))
	}
	return faulty(errors.Join(all...))
}

// positionError is a fault of a YAML file.
type positionError struct {
	line, column int
	text         string
}

func (e *positionError) Error() string { return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.text) }

func parseSpecs(text []byte, folder string) ([]fleet.Spec, error) {
	var file headsFile
	if err := decodeYAML(text, folder, &file); err != nil {
		return nil, err
	}
	if len(file.Heads) == 0 {
		return nil, errors.New("there are no heads; write a list with the key heads")
	}
	var specs []fleet.Spec
	var faults []error
	for i, entry := range file.Heads {
		if file.Defaults != nil {
			entry.Wanted = entry.under(*file.Defaults)
		}
		spec, err := entry.spec(folder)
		if err != nil {
			faults = append(faults, fmt.Errorf("heads[%d]: %w", i, err))
		}
		specs = append(specs, spec)
	}
	return specs, errors.Join(faults...)
}

// decodeYAML reads one YAML document, or JSON, and refuses what it doesn't
// know. Faults have line and column.
func decodeYAML(text []byte, folder string, into any) error {
	if !utf8.Valid(text) {
		return errors.New("the text is not UTF-8; save it as UTF-8")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	asJSON := json.Valid(text)
	if asJSON {
		text = bytes.ReplaceAll(text, []byte{'\t'}, []byte{' '}) // never inside a text of JSON
	}
	ctx := context.WithValue(context.Background(), folderKey{}, folder)
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := decoder.DecodeContext(ctx, into); err != nil && !errors.Is(err, io.EOF) {
		return yamlFault(err, into)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one YAML document; leave out the ---")
	}
	if !asJSON {
		return nil
	}
	// Numbers such as 1e3 are no numbers in YAML, so the values come from JSON.
	reflect.ValueOf(into).Elem().SetZero()
	return yaml.UnmarshalContext(ctx, toYAML(text), into, yaml.Strict())
}

var (
	unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)
	wrongType    = regexp.MustCompile(`^cannot unmarshal (\S+) into Go .* of type (\S+)$`)
)

// yamlFault gives an error of the decoder its line and column.
func yamlFault(err error, into any) error {
	var fault yaml.Error
	if !errors.As(err, &fault) || fault.GetToken() == nil {
		return err
	}
	at, text := fault.GetToken().Position, fault.GetMessage()
	if found := unknownField.FindStringSubmatch(text); found != nil {
		text = fmt.Sprintf("unknown key %q%s", oneLine(found[1]), didYouMean(found[1], yamlKeys(reflect.TypeOf(into))))
	} else if found := wrongType.FindStringSubmatch(text); found != nil {
		text = fmt.Sprintf("this is a %s; want a %s", found[1], found[2])
	}
	return &positionError{at.Line, at.Column, oneLine(strings.ReplaceAll(text, "\t", `\t`))}
}

// yamlKeys returns the keys of a type and of the types in it.
func yamlKeys(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return yamlKeys(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "" {
			keys = append(keys, name)
		}
		keys = append(keys, yamlKeys(t.Field(i).Type)...)
	}
	return keys
}

// under returns what is wanted with the defaults: fields are merged, everything
// else replaces the default.
func (w Wanted) under(defaults Wanted) Wanted {
	merged := maps.Clone(defaults.Set)
	if merged == nil {
		merged = w.Set
	} else {
		maps.Copy(merged, w.Set)
	}
	w.Set = merged
	w.Voice = either(w.Voice, defaults.Voice)
	w.Streaming = either(w.Streaming, defaults.Streaming)
	w.Delivery = either(w.Delivery, defaults.Delivery)
	w.Webhooks = either(w.Webhooks, defaults.Webhooks)
	w.PruneWebhooks = either(w.PruneWebhooks, defaults.PruneWebhooks)
	w.Tools = either(w.Tools, defaults.Tools)
	return w
}

func either[T any](value, otherwise *T) *T {
	if value != nil {
		return value
	}
	return otherwise
}

// spec returns the entry as fleet wants it.
func (e headEntry) spec(folder string) (fleet.Spec, error) {
	s := fleet.Spec{ID: string(e.ID), Label: string(e.Label), Streaming: e.Streaming, Delivery: e.Delivery}
	s.PruneWebhooks = e.PruneWebhooks != nil && *e.PruneWebhooks
	if e.Voice != nil {
		s.Voice = &heads.Voice{Provider: string(e.Voice.Provider), ID: string(e.Voice.ID)}
	}
	if e.Webhooks != nil {
		s.Webhooks = []fleet.WebhookSpec{}
		for _, w := range *e.Webhooks {
			var events []heads.EventType
			for _, event := range w.Events {
				events = append(events, heads.EventType(event))
			}
			s.Webhooks = append(s.Webhooks, fleet.WebhookSpec{URL: string(w.URL), Events: events})
		}
	}
	var faults []error
	var err error
	if s.Set, err = e.fields(folder); err != nil {
		faults = append(faults, err)
	}
	if e.Tools != nil {
		tools := []heads.Tool{}
		for i, definition := range *e.Tools {
			tool, err := toolOf(definition, folder)
			if err != nil {
				faults = append(faults, fmt.Errorf("tools[%d]: %w", i, err))
			}
			tools = append(tools, tool)
		}
		s.Tools = &tools
	}
	return s, errors.Join(faults...)
}

// fields returns the fields with the texts of files in their places.
func (w Wanted) fields(folder string) (map[string]any, error) {
	if w.Set == nil {
		return nil, nil
	}
	fields := map[string]any{}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(w.Set)) {
		value, err := fieldValue(name, w.Set[name], folder)
		if err != nil {
			faults = append(faults, fmt.Errorf("set.%s: %w", name, err))
		}
		fields[name] = value
	}
	return fields, errors.Join(faults...)
}

// fieldValue puts the texts of files into a value, wherever the field holds a
// text. The configuration of a plugin is kept as it is: file is a key like any
// other there.
func fieldValue(name string, value any, folder string) (any, error) {
	if name == "pluginOperationalModeConfig" {
		return value, nil
	}
	switch v := value.(type) {
	case []any:
		return eachText(v, folder)
	case map[string]any:
		if name == "customWords" || name == "promptConfig" {
			return textMembers(v, folder)
		}
	}
	return textValue(value, folder)
}

func eachText(list []any, folder string) (any, error) {
	texts := make([]any, len(list))
	var faults []error
	for i, item := range list {
		var err error
		texts[i], err = textValue(item, folder)
		faults = append(faults, err)
	}
	return texts, errors.Join(faults...)
}

func textMembers(object map[string]any, folder string, names ...string) (map[string]any, error) {
	texts := maps.Clone(object)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		var err error
		texts[name], err = textValue(object[name], folder)
		faults = append(faults, err)
	}
	return texts, errors.Join(faults...)
}

// textValue returns the text of the file for {file: PATH}, and any other value
// as it is.
func textValue(value any, folder string) (any, error) {
	reference, ok := value.(map[string]any)
	if !ok || len(reference) != 1 {
		return value, nil
	}
	path, ok := reference["file"].(string)
	if !ok {
		return value, nil
	}
	return readText(folder, path)
}

// toolOf reads a tool. Keys that the service may know are kept.
func toolOf(definition map[string]any, folder string) (heads.Tool, error) {
	var faults []error
	definition, err := textMembers(definition, folder, "name", "description", "url")
	faults = append(faults, err)
	if parameters, ok := definition["parameters"].([]any); ok {
		parameters = slices.Clone(parameters)
		for i, p := range parameters {
			if members, ok := p.(map[string]any); ok {
				parameters[i], err = textMembers(members, folder, "name", "type", "description")
				faults = append(faults, err)
			}
		}
		definition["parameters"] = parameters
	}
	var tool heads.Tool
	doc, err := json.Marshal(definition)
	if err == nil {
		err = json.Unmarshal(doc, &tool)
	}
	return tool, errors.Join(append(faults, err)...)
}
