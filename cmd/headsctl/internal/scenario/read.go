package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// Load reads and checks the files. A folder stands for all files below it whose names
// end in .test.yaml or .test.yml. All faults of all files are joined in the error, each
// with FILE:LINE:COL.
func Load(reader Reader, paths []string) ([]*Scenario, error) {
	files, faults := find(paths)
	var all []*Scenario
	for _, file := range files {
		r := fileReader{reader: &reader, file: file, folder: filepath.Dir(file)}
		all = append(all, r.read()...)
		faults = append(faults, yamltext.Limit(once(r.faults))...)
	}
	return all, errors.Join(faults...)
}

// once leaves out faults that several scenarios have in common.
func once(faults []error) (kept []error) {
	seen := map[string]bool{}
	for _, fault := range faults {
		if text := fault.Error(); !seen[text] {
			seen[text] = true
			kept = append(kept, fault)
		}
	}
	return kept
}

// find returns the files that the paths stand for, each once, and the faults of the
// paths.
func find(paths []string) (files []string, faults []error) {
	for _, path := range paths {
		found, err := filesOf(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, file := range found {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, faults
}

func filesOf(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s can't be read: %w; check the path and its permissions", shown(path), pathCause(err))
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (strings.HasSuffix(name, ".test.yaml") || strings.HasSuffix(name, ".test.yml")) {
			files = append(files, name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there is no *.test.yaml or *.test.yml below it; name the files", shown(path))
	}
	return files, err
}

// pathCause returns the error of a file without its name.
func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// The keys of a scenario file.
var (
	fileKeys     = []string{"backend", "heads", "seed", "service", "scenarios"}
	backendKeys  = []string{"start", "url", "dir", "env", "ready", "ready_within", "shared_key", "service", "token"}
	startKeys    = []string{"start", "dir", "env"}
	runningKeys  = []string{"service", "token"}
	headsKeys    = []string{"file", "env", "replace", "only"}
	serviceKeys  = []string{"retry", "event_timeout", "tool_timeout", "timestamps", "responses"}
	scenarioKeys = []string{"name", "steps", "env", "heads", "seed", "service", "timeout"}
)

// fileReader reads one file and collects its faults.
type fileReader struct {
	reader *Reader
	file   string
	folder string
	faults []error

	backend *backendSpec
	broken  bool // what all scenarios have in common has faults
}

// fault adds faults with the name of the file.
func (r *fileReader) fault(errs ...error) {
	for _, err := range errs {
		var placed *yamltext.Error
		switch {
		case err == nil:
		case errors.As(err, &placed):
			r.faults = append(r.faults, fmt.Errorf("%s:%w", shown(r.file), placed))
		default:
			r.faults = append(r.faults, fmt.Errorf("%s: %w", shown(r.file), err))
		}
	}
}

func (r *fileReader) faultf(v *yamltext.Value, format string, args ...any) {
	r.fault(v.Errorf(format, args...))
}

func (r *fileReader) want(v *yamltext.Value, kind yamltext.Kind) bool {
	err := v.Want(kind)
	r.fault(err)
	return err == nil
}

// given reports whether an optional value is there. null is no value.
func given(v *yamltext.Value) bool { return v != nil && v.Kind != yamltext.Null }

// object reports whether the value is an object with no other keys than the known
// ones.
func (r *fileReader) object(v *yamltext.Value, known ...string) bool {
	if !r.want(v, yamltext.Object) {
		return false
	}
	for _, m := range v.Members {
		if !slices.Contains(known, m.Key) {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("unknown key %q%s; the keys here are %s", shown(m.Key), similar.Hint(m.Key, known), strings.Join(known, ", "))})
		}
	}
	return true
}

// duration reads a time such as 250ms, or returns the default.
func (r *fileReader) duration(v *yamltext.Value, otherwise time.Duration) time.Duration {
	if !given(v) {
		return otherwise
	}
	d, err := parseDuration(v)
	if err != nil {
		r.fault(err)
		return otherwise
	}
	return d
}

func parseDuration(v *yamltext.Value) (time.Duration, error) {
	if v.Kind != yamltext.Text && v.Kind != yamltext.Number {
		return 0, v.Errorf("this is %s; want a duration such as 250ms or 2s", v.Kind.WithArticle())
	}
	d, err := time.ParseDuration(v.Text)
	if err != nil || d < 0 {
		return 0, v.Errorf("%q is not a duration; write one such as 250ms, 2s or 1m", shown(v.Text))
	}
	return d, nil
}

// oneOf reads one of several words, or returns the first.
func (r *fileReader) oneOf(v *yamltext.Value, words ...string) string {
	if !given(v) || !r.want(v, yamltext.Text) {
		return words[0]
	}
	if !slices.Contains(words, v.Text) {
		r.faultf(v, "%q is unknown%s; use one of %s", shown(v.Text), similar.Hint(v.Text, words), strings.Join(words, ", "))
	}
	return v.Text
}

// early reads an optional text that is needed before anything starts, so that it can
// refer to the environment alone.
func (r *fileReader) early(v *yamltext.Value) string {
	if !given(v) || !r.want(v, yamltext.Text) {
		return ""
	}
	text, err := variables{}.expandText(v.Text)
	if err != nil {
		r.faultf(v, "%v", err)
	}
	return text
}

// read reads the file.
func (r *fileReader) read() []*Scenario {
	text, err := readFile(r.file)
	if err != nil {
		r.fault(err)
		return nil
	}
	file, err := yamltext.Parse(text)
	if err != nil {
		r.fault(withQuotesHint(err, text))
		return nil
	}
	if file.Kind == yamltext.Null {
		r.faultf(file, "the file is empty; write the keys %s", strings.Join(fileKeys, ", "))
		return nil
	}
	if !r.object(file, fileKeys...) {
		return nil
	}
	r.readBackend(file)
	r.backend.secrets = append(r.backend.secrets, secretsIn(file)...)
	return r.scenarios(file)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the file can't be read: %w; check the path and its permissions", pathCause(err))
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, yamltext.MaxBytes+1))
}

var (
	environmentReference = regexp.MustCompile(`\$\{env:([^{}]*)\}`)
	secretName           = regexp.MustCompile(`(?i)key|token|secret|passw|credential`)
)

// shortestSecret keeps a word of a letter or two from being hidden everywhere.
const shortestSecret = 4

// secretsIn returns the values of the environment that a file refers to under names
// that tell of secrets.
func secretsIn(v *yamltext.Value) (secrets []string) {
	for _, found := range environmentReference.FindAllStringSubmatch(v.Text, -1) {
		if value := os.Getenv(found[1]); secretName.MatchString(found[1]) && len(value) >= shortestSecret {
			secrets = append(secrets, value)
		}
	}
	for _, item := range v.Items {
		secrets = append(secrets, secretsIn(item)...)
	}
	for _, m := range v.Members {
		secrets = append(secrets, secretsIn(m.Value)...)
	}
	return secrets
}

// unquoted matches a variable that YAML takes for an object.
var unquoted = regexp.MustCompile(`[\[{,:]\s*[^"'\s,{}\[\]]*\$\{`)

// withQuotesHint adds to a syntax error what to do about variables inside { } and [ ].
func withQuotesHint(err error, text []byte) error {
	var fault *yamltext.Error
	if !errors.As(err, &fault) {
		return err
	}
	lines := strings.Split(string(text), "\n")
	from, to := max(fault.Line-3, 0), min(fault.Line+1, len(lines))
	for _, line := range lines[min(from, to):to] {
		if unquoted.MatchString(line) {
			return &yamltext.Error{Line: fault.Line, Column: fault.Column, Text: fault.Text + `; inside { } and [ ], write a text with a variable in quotes: "${NAME}"`}
		}
	}
	return err
}

func (r *fileReader) readBackend(file *yamltext.Value) {
	r.backend = &backendSpec{at: file, readyWithin: defaultReadyWithin, dir: r.folder}
	v := file.Get("backend")
	if !given(v) {
		r.faultf(file, "there is no back end; write backend: {start: …} for one to start, or {url: …} for one that runs")
		return
	}
	r.backend.at = v
	if !r.object(v, backendKeys...) {
		return
	}
	b := r.backend
	b.readyWithin = r.duration(v.Get("ready_within"), defaultReadyWithin)
	if ready := v.Get("ready"); given(ready) && r.want(ready, yamltext.Text) {
		if !strings.HasPrefix(ready.Text, "/") {
			r.faultf(ready, "%q is not a path; write one such as /health", shown(ready.Text))
		}
		b.ready = ready
	}
	start, running := v.Get("start"), v.Get("url")
	switch {
	case given(start) == given(running):
		r.faultf(v, "a back end has either start, the program to run, or url, where it runs already")
	case given(start):
		r.refuse(v, runningKeys, "start")
		r.readStart(v)
	default:
		r.refuse(v, startKeys, "url")
		r.readRunning(v)
	}
	r.readSharedKey(v.Get("shared_key"))
}

// refuse adds faults for keys that don't go with another one.
func (r *fileReader) refuse(v *yamltext.Value, keys []string, with string) {
	for _, m := range v.Members {
		if m.Key != with && slices.Contains(keys, m.Key) {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("%s does not go with %s; leave one of them out", m.Key, with)})
		}
	}
}

func (r *fileReader) readStart(v *yamltext.Value) {
	b := r.backend
	b.start = v.Get("start")
	if dir := r.early(v.Get("dir")); dir != "" {
		b.dir = relativeTo(r.folder, dir)
		if info, err := os.Stat(b.dir); err != nil || !info.IsDir() {
			r.faultf(v.Get("dir"), "there is no folder %s; make it, or give another path from the folder of this file", shown(b.dir))
			return
		}
	}
	b.env = r.readEnv(v.Get("env"))
	r.fault(checkProgram(b.start, b.dir)...)
}

func relativeTo(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// checkProgram returns the faults of words to run, or of a text for the shell.
func checkProgram(v *yamltext.Value, folder string) []error {
	if v.Kind == yamltext.Text {
		if strings.TrimSpace(v.Text) == "" {
			return []error{v.Errorf("there is no program; write its words as a list, or a text for the shell")}
		}
		return nil
	}
	if v.Kind != yamltext.List || len(v.Items) == 0 {
		return []error{v.Errorf("want the words of a program as a list, or a text for the shell")}
	}
	var faults []error
	for _, word := range v.Items {
		if word.Kind != yamltext.Number { // -p 8080 reads as one
			faults = append(faults, word.Want(yamltext.Text))
		}
	}
	if program := v.Items[0]; !hasReference(program.Text) {
		if _, err := findProgram(program.Text, folder); err != nil {
			faults = append(faults, program.Errorf("%v", err))
		}
	}
	return faults
}

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnv reads additions to the environment.
func (r *fileReader) readEnv(v *yamltext.Value) *yamltext.Value {
	if !given(v) || !r.want(v, yamltext.Object) {
		return nil
	}
	for _, m := range v.Members {
		if !environmentName.MatchString(m.Key) {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("%q is not the name of an environment variable; use letters, digits and _", shown(m.Key))})
		}
		r.want(m.Value, yamltext.Text)
	}
	return v
}

func (r *fileReader) readRunning(v *yamltext.Value) {
	b := r.backend
	b.url = strings.TrimRight(r.early(v.Get("url")), "/")
	if u, err := url.Parse(b.url); b.url != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		r.faultf(v.Get("url"), "this is not the URL of a back end; write one such as http://127.0.0.1:8080")
		b.url = ""
	}
	b.token = r.early(v.Get("token"))
	if b.service = r.early(v.Get("service")); b.service == "" {
		if b.token != "" {
			r.faultf(v.Get("token"), "token wants service, the address at which the back end expects the service")
		}
		return
	}
	host, port, err := net.SplitHostPort(b.service)
	if err != nil || !isThisMachine(host) || port == "" || port == "0" {
		r.faultf(v.Get("service"), "%q is not an address on this machine; write one such as 127.0.0.1:8787", shown(b.service))
	}
}

// readSharedKey reads a text or {env: NAME}.
func (r *fileReader) readSharedKey(v *yamltext.Value) {
	b := r.backend
	switch {
	case !given(v):
	case v.Kind == yamltext.Text:
		b.sharedKey = v
	case !r.object(v, "env"):
	case !given(v.Get("env")):
		r.faultf(v, "want a text, or {env: NAME}")
	case r.want(v.Get("env"), yamltext.Text):
		name := v.Get("env").Text
		key, set := os.LookupEnv(name)
		switch {
		case b.start != nil && isServiceSetting(name):
			r.faultf(v, "a back end that is started never gets HEADS_* of the shell; leave shared_key out, and a key is generated")
		case key == "":
			r.faultf(v, "the environment variable %q is not set; set it to the shared key%s", shown(name), map[bool]string{true: ", it is empty"}[set])
		default:
			b.sharedKey = textValue(strings.ReplaceAll(key, "${", "$${"))
			if len(key) >= shortestSecret {
				b.secrets = append(b.secrets, key)
			}
		}
	}
}

func (r *fileReader) readService(v *yamltext.Value) serviceSpec {
	s := defaultService
	if !given(v) || !r.object(v, serviceKeys...) {
		return s
	}
	if retry := v.Get("retry"); given(retry) && r.want(retry, yamltext.List) {
		s.retry = []time.Duration{}
		for _, wait := range retry.Items {
			s.retry = append(s.retry, r.duration(wait, 0))
		}
	}
	s.eventTimeout = r.duration(v.Get("event_timeout"), s.eventTimeout)
	s.toolTimeout = r.duration(v.Get("tool_timeout"), s.toolTimeout)
	s.timestamps = r.oneOf(v.Get("timestamps"), "plain", "iso")
	s.responses = r.oneOf(v.Get("responses"), "empty", "record", "bool")
	return s
}

// scenarios reads the scenarios of a file.
func (r *fileReader) scenarios(file *yamltext.Value) (all []*Scenario) {
	base := &Scenario{reader: r.reader, File: r.file, folder: r.folder, backend: r.backend, timeout: defaultTimeout}
	base.heads = r.readHeads(file.Get("heads"))
	base.seed = file.Get("seed")
	base.service = r.readService(file.Get("service"))
	r.broken = len(r.faults) > 0
	list := file.Get("scenarios")
	if !given(list) {
		r.faultf(file, "there are no scenarios; write a list with the key scenarios")
		return nil
	}
	if !r.want(list, yamltext.List) {
		return nil
	}
	if len(list.Items) == 0 {
		r.faultf(list, "there are no scenarios; write each with name and steps")
	}
	lines := map[string]int{}
	for _, v := range list.Items {
		s := r.scenario(v, base)
		if s == nil {
			continue
		}
		if line, twice := lines[s.Name]; twice {
			r.faultf(v.Get("name"), "the name %q is that of line %d too; give another name", shown(s.Name), line)
		}
		lines[s.Name] = s.Line
		all = append(all, s)
	}
	return all
}

func (r *fileReader) scenario(v *yamltext.Value, base *Scenario) *Scenario {
	if !r.object(v, scenarioKeys...) {
		return nil
	}
	before := len(r.faults)
	s := *base
	s.Line = v.Line
	name := v.Get("name")
	if !given(name) {
		r.faultf(v, "the scenario has no name; add name: TEXT")
		return nil
	}
	if !r.want(name, yamltext.Text) {
		return nil
	}
	if s.Name = shown(name.Text); s.Name == "" {
		r.faultf(name, "the name is empty; say what the scenario shows")
	}
	if env := v.Get("env"); given(env) && s.backend.url != "" {
		r.faultf(env, "a back end that runs already gets no environment; leave env out")
	} else {
		s.env = r.readEnv(env)
	}
	if heads := v.Get("heads"); given(heads) {
		s.heads = r.readHeads(heads)
	}
	if seed := v.Get("seed"); given(seed) {
		s.seed = seed
	}
	if service := v.Get("service"); given(service) {
		s.service = r.readService(service)
	}
	s.timeout = r.duration(v.Get("timeout"), defaultTimeout)
	r.readSeed(&s)
	s.steps = r.readSteps(&s, v)
	if !r.broken && len(r.faults) == before {
		r.check(&s)
	}
	return &s
}

// readSeed reads the file of an emulator's records.
func (r *fileReader) readSeed(s *Scenario) {
	if !given(s.seed) {
		return
	}
	path := r.early(s.seed)
	if path == "" {
		return
	}
	text, err := readFile(relativeTo(r.folder, path))
	if err == nil {
		s.seeded, err = yamltext.Parse(text)
	}
	if err != nil {
		r.faultf(s.seed, "the seed %s: %v", shown(path), err)
	}
}
