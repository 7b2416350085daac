package scenario

import (
	"cmp"
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
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/internal/loopback"
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
		faults = append(faults, yamltext.Limit(r.faults)...)
	}
	return all, errors.Join(faults...)
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

// fileReader reads one file and collects its faults.
type fileReader struct {
	reader *Reader
	file   string
	folder string
	faults []error

	backend *backendSpec
	broken  bool                     // what all scenarios have in common has faults
	valid   map[*yamltext.Value]bool // the scenarios in which the schema finds no fault
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

// early reads an optional text that is needed before anything starts, so that it can
// refer to the environment alone.
func (r *fileReader) early(v *yamltext.Value) string {
	if !v.IsGiven() || v.Kind != yamltext.Text {
		return ""
	}
	text, err := variables{}.text(v)
	r.fault(yamltext.Faults(err)...)
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
		r.faultf(file, "the file is empty; write the keys backend, heads and scenarios")
		return nil
	}
	r.valid = map[*yamltext.Value]bool{}
	r.fault(testSchema.Check(file, "", r.checks(file.Get("backend").Get("url").IsGiven()))...)
	before := len(r.faults)
	r.readBackend(file)
	r.backend.secrets = append(r.backend.secrets, secretsIn(file)...)
	return r.scenarios(file, before)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the file can't be read: %w; check the path and its permissions", pathCause(err))
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, yamltext.MaxBytes+1))
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|credential`)

// shortestSecret keeps a word of a letter or two from being hidden everywhere.
const shortestSecret = 4

// secretsIn returns the values of the environment that a file refers to under names
// that tell of secrets.
func secretsIn(v *yamltext.Value) (secrets []string) {
	for _, name := range yamltext.Names(v.Text) {
		name, isEnv := strings.CutPrefix(name, prefixEnv)
		if value := os.Getenv(name); isEnv && secretName.MatchString(name) && len(value) >= shortestSecret {
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
	v := file.Get("backend")
	b := &backendSpec{at: file, dir: r.folder, readyWithin: durationOf(v.Get("ready_within"), defaultReadyWithin)}
	r.backend = b
	if !v.IsGiven() {
		return
	}
	b.at = v
	if ready := v.Get("ready"); ready.IsGiven() {
		b.ready = ready
	}
	if start := v.Get("start"); start.IsGiven() {
		r.readStart(v, start)
	} else {
		r.readRunning(v)
	}
	r.readSharedKey(v.Get("shared_key"))
}

func (r *fileReader) readStart(v, start *yamltext.Value) {
	b := r.backend
	b.start = start
	if dir := r.early(v.Get("dir")); dir != "" {
		b.dir = relativeTo(r.folder, dir)
		if info, err := os.Stat(b.dir); err != nil || !info.IsDir() {
			r.faultf(v.Get("dir"), "there is no folder %s; make it, or give another path from the folder of this file", shown(b.dir))
			return
		}
	}
	if env := v.Get("env"); env.IsGiven() {
		b.env = env
	}
	r.fault(checkProgram(start, b.dir))
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
	if err != nil || !loopback.Is(host) || port == "" || port == "0" {
		r.faultf(v.Get("service"), "%q is not an address on this machine; write one such as 127.0.0.1:8787", shown(b.service))
	}
}

// readSharedKey reads a text or {env: NAME}.
func (r *fileReader) readSharedKey(v *yamltext.Value) {
	b := r.backend
	switch {
	case !v.IsGiven():
	case v.Kind == yamltext.Text:
		b.sharedKey = v
	case v.Get("env").IsGiven():
		name := v.Get("env").Text
		key, set := os.LookupEnv(name)
		switch {
		case b.start != nil && isServiceSetting(name):
			r.faultf(v, "a back end that is started never gets HEADS_* of the shell; leave shared_key out, and a key is generated")
		case key == "":
			r.faultf(v, "the environment variable %q is not set; set it to the shared key%s", shown(name), map[bool]string{true: ", it is empty"}[set])
		default:
			b.sharedKey = yamltext.NewText(yamltext.Escape(key))
			if len(key) >= shortestSecret {
				b.secrets = append(b.secrets, key)
			}
		}
	}
}

func readService(v *yamltext.Value) serviceSpec {
	s := defaultService
	if retry := v.Get("retry"); retry.IsGiven() {
		s.retry = []time.Duration{}
		for _, wait := range retry.Items {
			s.retry = append(s.retry, durationOf(wait, 0))
		}
	}
	s.eventTimeout = durationOf(v.Get("event_timeout"), s.eventTimeout)
	s.toolTimeout = durationOf(v.Get("tool_timeout"), s.toolTimeout)
	s.timestamps = cmp.Or(v.Get("timestamps").String(), s.timestamps)
	s.responses = cmp.Or(v.Get("responses").String(), s.responses)
	return s
}

// scenarios reads the scenarios of a file.
func (r *fileReader) scenarios(file *yamltext.Value, before int) (all []*Scenario) {
	base := &Scenario{reader: r.reader, File: r.file, folder: r.folder, backend: r.backend, timeout: defaultTimeout}
	base.heads = r.readHeads(file.Get("heads"))
	base.seed = file.Get("seed")
	base.service = readService(file.Get("service"))
	for _, name := range []string{"backend", "heads", "seed", "service"} {
		if v := file.Get(name); v.IsGiven() && len(testSchema.Check(v, name, nil)) > 0 {
			r.broken = true
		}
	}
	r.broken = r.broken || len(r.faults) > before || !file.Get("backend").IsGiven()
	list := file.Get("scenarios")
	if !list.IsGiven() {
		return nil
	}
	lines := map[string]int{}
	for _, v := range list.Items {
		s := r.scenario(v, base)
		if s.Name == "" {
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

// scenario reads a scenario. After a fault it has a name at most.
func (r *fileReader) scenario(v *yamltext.Value, base *Scenario) *Scenario {
	before := len(r.faults)
	s := *base
	s.Line = v.Line
	s.Name = shown(v.Get("name").String())
	if env := v.Get("env"); env.IsGiven() {
		if s.backend.url != "" {
			r.faultf(env, "a back end that runs already gets no environment; leave env out")
		}
		s.env = env
	}
	if heads := v.Get("heads"); heads.IsGiven() {
		s.heads = r.readHeads(heads)
	}
	if seed := v.Get("seed"); seed.IsGiven() {
		s.seed = seed
	}
	if service := v.Get("service"); service.IsGiven() {
		s.service = readService(service)
	}
	s.timeout = durationOf(v.Get("timeout"), defaultTimeout)
	r.readSeed(&s)
	if !r.valid[v] {
		return &s
	}
	for i, item := range v.Get("steps").Items {
		action := testSchema.Branch("step", item)
		s.steps = append(s.steps, &step{
			Value: item, number: i + 1, action: action, arg: item.Get(action),
			within: durationOf(item.Get("within"), defaultWithin), stays: durationOf(item.Get("stays"), 0),
		})
	}
	if !r.broken && len(r.faults) == before {
		r.check(&s)
	}
	return &s
}

// readHeads reads entries of heads.yaml, or what refers to such a file.
func (r *fileReader) readHeads(v *yamltext.Value) *headsSpec {
	switch {
	case !v.IsGiven() || len(testSchema.Check(v, "heads", nil)) > 0:
		return nil
	case v.Kind == yamltext.List:
		return r.readEntries(v)
	}
	return r.readHeadsFile(v)
}

func (r *fileReader) readEntries(v *yamltext.Value) *headsSpec {
	h := &headsSpec{at: v, inline: true}
	seen := map[string]bool{}
	for _, entry := range v.Items {
		label := entry.Get("label").String()
		if label != "" && seen[label] {
			r.faultf(entry.Get("label"), "the label %q is given twice; give each head its own", shown(label))
		}
		seen[label] = true
		h.ids, h.labels = append(h.ids, entry.Get("id").String()), append(h.labels, label)
	}
	return h
}

// readHeadsFile reads {file: PATH, env: NAME, replace: {…}, only: […]}.
func (r *fileReader) readHeadsFile(v *yamltext.Value) *headsSpec {
	h := &headsSpec{at: v}
	path := relativeTo(r.folder, r.early(v.Get("file")))
	specs, err := r.reader.HeadsFile(path, r.early(v.Get("env")))
	if err != nil {
		for _, part := range yamltext.Faults(err) {
			r.faultf(v.Get("file"), "%v", part)
		}
		return nil
	}
	if replace := v.Get("replace"); replace.IsGiven() {
		h.replace = replace
	}
	h.specs = r.only(v.Get("only"), specs)
	for _, spec := range h.specs {
		h.ids, h.labels = append(h.ids, spec.ID), append(h.labels, spec.Label)
	}
	return h
}

// only returns the specs whose labels or ids are in a list.
func (r *fileReader) only(list *yamltext.Value, specs []fleet.Spec) (kept []fleet.Spec) {
	if !list.IsGiven() {
		return specs
	}
	var known []string
	for _, spec := range specs {
		known = append(known, spec.Label, spec.ID)
	}
	for _, name := range list.Items {
		i := slices.IndexFunc(specs, func(s fleet.Spec) bool {
			return name.Text != "" && (s.Label == name.Text || strings.EqualFold(s.ID, name.Text))
		})
		if i < 0 {
			r.faultf(name, "the file has no head %q%s; use a label or an id", shown(name.Text), similar.Hint(name.Text, known))
			continue
		}
		kept = append(kept, specs[i])
	}
	return kept
}

// readSeed reads the file of an emulator's records.
func (r *fileReader) readSeed(s *Scenario) {
	if !s.seed.IsGiven() {
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
