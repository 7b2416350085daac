package headsfile

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// Environment is an installation of the service that a file has heads in.
type Environment struct {
	Name                               string
	BaseURL, Token, ChatURL, StreamURL Setting
	Values                             map[string]string // of ${name}, with the secret ones that were used
	Protect                            bool              // changes are confirmed with the name

	at, valuesAt *yamltext.Value
	secrets      map[string]secretValue // of ${name}
}

// Setting is the value of a setting, or the name of the variable that holds it. The
// zero Setting is one that the file doesn't have.
type Setting struct {
	Text, Variable string

	at    *yamltext.Value
	check func(string) error // of a value; nil accepts all
}

// Value returns the setting, "" if the file doesn't have it. If the variable is not
// set or its value is refused, that is an error with its place.
func (s Setting) Value() (string, error) {
	if s.Variable == "" {
		return s.Text, nil
	}
	value := os.Getenv(s.Variable)
	if value == "" {
		return "", s.at.Errorf("the variable %s is not set; set it", s.Variable)
	}
	if s.check != nil {
		if err := s.check(value); err != nil {
			return "", s.at.Errorf("the URL in %s %v", s.Variable, err)
		}
	}
	return value, nil
}

// Client returns a client for the environment. A token that is given goes before that
// of the file. The error joins all faults of the settings.
func (e *Environment) Client(token string, opts ...heads.Option) (*heads.Client, error) {
	var faults []error
	value := func(s Setting) string {
		text, err := s.Value()
		if err != nil {
			faults = append(faults, err)
		}
		return text
	}
	baseURL, chatURL, streamURL := value(e.BaseURL), value(e.ChatURL), value(e.StreamURL)
	switch {
	case token != "":
	case e.Token.at == nil:
		faults = append(faults, e.at.Errorf("%s has no token; write token: {env: NAME}, or give --token-file", e.Name))
	default:
		token = value(e.Token)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if chatURL != "" || streamURL != "" {
		opts = append([]heads.Option{heads.WithAccessBases(chatURL, streamURL)}, opts...)
	}
	return heads.New(baseURL, token, opts...)
}

// JSON returns the entry of the environment in a file, without its values.
func (e *Environment) JSON() []byte {
	var members [][]byte
	add := func(key string, s Setting) {
		switch {
		case s.Variable != "":
			members = append(members, rawjson.AppendMember(nil, key, reference("env", s.Variable)))
		case s.Text != "":
			members = append(members, rawjson.AppendMember(nil, key, rawjson.String(s.Text)))
		}
	}
	add("base_url", e.BaseURL)
	add("token", e.Token)
	add("chat_url", e.ChatURL)
	add("stream_url", e.StreamURL)
	if names := e.secretsRead(); len(names) > 0 {
		var values [][]byte
		for _, name := range names {
			values = append(values, rawjson.AppendMember(nil, name, e.secrets[name].json()))
		}
		members = append(members, rawjson.AppendMember(nil, "values", object(values...)))
	}
	if e.Protect {
		members = append(members, rawjson.AppendMember(nil, "protect", []byte("true")))
	}
	return object(members...)
}

// reference returns {"env": "NAME"} or {"file": "PATH"}.
func reference(key, text string) []byte {
	return object(rawjson.AppendMember(nil, key, rawjson.String(text)))
}

var (
	environmentKeys = []string{"base_url", "token", "chat_url", "stream_url", "values", "protect"}

	environmentName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	valueName       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// tokenPrefix begins the name of each variable that holds a token.
const tokenPrefix = "HEADS_"

// reserved is the ${name} that stands for the name of the environment.
const reserved = "env"

func (r *specReader) environments(v *yamltext.Value) (all []*Environment) {
	if !r.isObject(v) {
		return nil
	}
	for _, m := range v.Members {
		if !environmentName.MatchString(m.Key) {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("%q is no name of an environment; use lower-case letters, digits, - and _, with a letter first", m.Key)})
			continue
		}
		all = append(all, r.environment(m))
	}
	if len(v.Members) == 0 {
		r.fault(v.Errorf("there are no environments; describe one, or leave out the key"))
	}
	for _, e := range all {
		r.sameValues(all[0], e)
		r.sameValues(e, all[0])
	}
	r.tokensOfOneHost(all)
	return all
}

// tokensOfOneHost refuses a variable whose token would be sent to several hosts.
func (r *specReader) tokensOfOneHost(all []*Environment) {
	first := map[string]*Environment{}
	for _, e := range all {
		variable := e.Token.Variable
		if variable == "" || e.BaseURL.at == nil {
			continue
		}
		before := first[variable]
		if before == nil {
			first[variable] = e
			continue
		}
		if e.BaseURL.host() != before.BaseURL.host() {
			r.fault(e.Token.at.Errorf("the token in %s is that of %s too, which has another base_url; give each host a variable of its own", variable, before.Name))
		}
	}
}

// host returns the host and port of a URL, or the variable that holds it: two variables
// may hold two hosts.
func (s Setting) host() string {
	if s.Variable != "" {
		return "$" + s.Variable
	}
	u, err := url.Parse(s.Text)
	if err != nil {
		return s.Text
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

func (r *specReader) environment(m yamltext.Member) *Environment {
	e, v := &Environment{Name: m.Key, at: m.Value, valuesAt: m.Value}, m.Value
	if !r.isObject(v, environmentKeys...) {
		return e
	}
	e.BaseURL = r.urlSetting(v.Get("base_url"), checkBaseURL)
	if e.BaseURL.at == nil {
		r.fault(v.Errorf("base_url is missing; give the address of the service, or {env: NAME}"))
	}
	e.ChatURL, e.StreamURL = r.urlSetting(v.Get("chat_url"), checkAccessURL), r.urlSetting(v.Get("stream_url"), checkAccessURL)
	e.Token = r.tokenSetting(v.Get("token"))
	if protect := r.bool(v.Get("protect")); protect != nil {
		e.Protect = *protect
	}
	if values := v.Get("values"); given(values) {
		e.valuesAt = values
		r.readValues(e, values)
	}
	return e
}

// urlSetting reads a URL or {env: NAME}.
func (r *specReader) urlSetting(v *yamltext.Value, check func(string) error) Setting {
	switch {
	case !given(v):
		return Setting{}
	case v.Kind == yamltext.Object:
		s := r.variable(v)
		s.check = check
		return s
	case r.want(v, yamltext.Text):
		if err := check(v.Text); err != nil {
			r.fault(v.Errorf("this URL %v", err))
		}
	}
	return Setting{Text: v.Text, at: v}
}

// checkBaseURL and checkAccessURL let the library check a URL.
func checkBaseURL(text string) error {
	_, err := heads.New(text, "token")
	return reasonOf(err)
}

func checkAccessURL(text string) error {
	_, err := heads.New("https://example.com", "token", heads.WithAccessBases(text, ""))
	return reasonOf(err)
}

// reasonOf returns what is wrong and what to do, without the names of Go.
func reasonOf(err error) error {
	var fault *heads.InvalidError
	if errors.As(err, &fault) {
		return errors.New(fault.Problem + "; " + fault.Remedy)
	}
	return err
}

// tokenSetting reads {env: NAME}. A token in its place is not shown.
func (r *specReader) tokenSetting(v *yamltext.Value) Setting {
	switch {
	case !given(v):
		return Setting{}
	case v.Kind == yamltext.Object:
		s := r.variable(v)
		if s.Variable != "" && !strings.HasPrefix(s.Variable, tokenPrefix) {
			r.fault(v.Errorf("the variable of a token begins with %s, so that no file sends another variable of your shell; rename %s", tokenPrefix, s.Variable))
		}
		return s
	}
	r.fault(v.Errorf("a token does not belong in a file; put it into a variable, and write {env: NAME}"))
	return Setting{at: v}
}

// variable reads {env: NAME}.
func (r *specReader) variable(v *yamltext.Value) Setting {
	if !r.isObject(v, "env") {
		return Setting{at: v}
	}
	name := v.Get("env")
	switch {
	case name == nil && len(v.Members) == 0:
		r.fault(v.Errorf("this is an empty object; write {env: NAME}"))
	case name == nil: // that was the fault
	case name.Kind != yamltext.Text || !variableName.MatchString(name.Text):
		r.fault(name.Errorf("this is no name of a variable; use letters, digits and _"))
	default:
		return Setting{Variable: name.Text, at: v}
	}
	return Setting{at: v}
}

// checkIDs refuses ids that do not tell in which environments a head is.
func (f *File) checkIDs(r *specReader) {
	list := f.root.Get("heads")
	if !given(list) || list.Kind != yamltext.List {
		return
	}
	seen := map[string]seenID{}
	for _, entry := range list.Items {
		if entry.Kind != yamltext.Object {
			continue
		}
		switch ids := entry.Get("id"); {
		case !given(ids):
			r.fault(entry.Errorf("the head has no id; write %s", f.idsExample()))
		case ids.Kind != yamltext.Object:
			r.fault(ids.Errorf("this id does not say in which environment; write %s", f.idsExample()))
		default:
			f.checkIDsOf(r, ids, seen)
		}
	}
}

// seenID is where an id was first.
type seenID struct {
	environment string
	at          *yamltext.Value
}

func (f *File) checkIDsOf(r *specReader, ids *yamltext.Value, seen map[string]seenID) {
	names := f.Names()
	for _, m := range ids.Members {
		id := m.Value
		switch key := strings.ToLower(id.Text); {
		case !slices.Contains(names, m.Key):
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("there is no environment %q%s", m.Key, similar.Hint(m.Key, names))})
		case id.Kind == yamltext.Null:
		case !r.want(id, yamltext.Text):
		case !ID.MatchString(id.Text):
			r.fault(id.Errorf("%q is not the id of a head; give the UUID in the head's id field, or null if the head is not there", show.Clip(id.Text, maxShown)))
		case seen[key].at == nil:
			seen[key] = seenID{m.Key, id}
		case seen[key].environment == m.Key:
			r.fault(id.Errorf("this id is given twice for %s, first in line %d; put all that is wanted of one head into one entry", m.Key, seen[key].at.Line))
		default:
			r.fault(id.Errorf("this id is given for %s, and for %s in line %d; a head is in one environment", m.Key, seen[key].environment, seen[key].at.Line))
		}
	}
	for _, name := range names {
		if ids.Get(name) == nil {
			r.fault(ids.Errorf("the id for %s is missing; give it, or null if the head is not there", name))
		}
	}
}

// idsExample is how an id is written in the file.
func (f *File) idsExample() string {
	var texts []string
	for _, name := range f.Names() {
		texts = append(texts, name+": UUID")
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// Select returns the heads of an environment that were named by id or label, each
// once, out of all that Heads returned for it. The error joins what is wrong with the
// names.
func Select(all []Head, environment string, named []string) ([]Head, error) {
	var found []Head
	var faults []error
	seen := map[string]bool{}
	for _, name := range named {
		h, err := find(all, environment, name)
		switch {
		case err != nil:
			faults = append(faults, err)
		case !seen[h.Spec.ID]:
			seen[h.Spec.ID] = true
			found = append(found, h)
		}
	}
	return found, errors.Join(faults...)
}

// find returns the head of an id or label.
func find(all []Head, environment, name string) (Head, error) {
	var labelled []Head
	var labels []string
	for _, h := range all {
		for _, where := range slices.Sorted(maps.Keys(h.IDs)) {
			if !strings.EqualFold(h.IDs[where], name) || name == "" {
				continue
			}
			if where != environment {
				return Head{}, fmt.Errorf("%s is the id of %q in %s; %s", name, h.Label, where, h.place(environment))
			}
			return h, nil
		}
		labels = append(labels, h.Label)
		if h.Label == name && name != "" {
			labelled = append(labelled, h)
		}
	}
	switch {
	case len(labelled) > 1:
		return Head{}, fmt.Errorf("%d heads have the label %q; give the id", len(labelled), name)
	case len(labelled) == 0:
		return Head{}, fmt.Errorf("no head of the file has the id or label %q%s", name, similar.Hint(name, labels))
	case labelled[0].Spec == nil:
		return Head{}, fmt.Errorf("%q: %s", name, labelled[0].place(environment))
	}
	return labelled[0], nil
}

// place tells the id of a head in an environment.
func (h *Head) place(environment string) string {
	if h.Spec == nil {
		return fmt.Sprintf("it is not in %s", environment)
	}
	return fmt.Sprintf("in %s it is %s", environment, h.Spec.ID)
}

// IsEnvironmentName reports whether an environment can have this name.
func IsEnvironmentName(name string) bool {
	return environmentName.MatchString(name) && name != reserved
}
