package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	paths "path"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/loopback"
)

// head is a head of a scenario.
type head struct{ id, label string }

func findHead(all []head, name string) (head, bool) {
	for _, h := range all {
		if name != "" && h.label == name || strings.EqualFold(h.id, name) {
			return h, true
		}
	}
	return head{}, false
}

func labelsOf(all []head) (labels []string) {
	for _, h := range all {
		if h.label != "" {
			labels = append(labels, h.label)
		}
	}
	return labels
}

// records are what the emulator of a scenario starts with.
type records struct {
	seed  headstest.Seed
	heads []head // those of the file first
}

// setUp makes the records of a scenario: it adds the heads to an emulator of its own
// and applies their entries, as headsctl apply does. It sets the variables of the
// heads.
func (s *Scenario) setUp(ctx context.Context, vars variables, chance *rand.Rand, sharedKey string) (*records, []error) {
	e := headstest.NewEmulator(append(s.service.options(), headstest.WithSeed(chance.Uint64()), headstest.WithLoopbackHTTP())...)
	defer e.Close()
	r := &records{}
	if s.heads != nil {
		for i, id := range s.heads.ids {
			if id == "" {
				id = newID(chance)
			}
			r.heads = append(r.heads, head{id, s.heads.labels[i]})
		}
	}
	setHeads(vars, r.heads)
	if faults := s.plant(e, r, vars); len(faults) > 0 {
		return nil, faults
	}
	setHeads(vars, r.heads)
	if faults := s.apply(ctx, e, r.heads, vars); len(faults) > 0 {
		return nil, faults
	}
	r.seed = e.Export()
	if faults := s.checkCallees(e); len(faults) > 0 {
		return nil, faults
	}
	for i, registration := range r.seed.Registrations {
		r.seed.Registrations[i] = withMember(registration, "sharedKey", sharedKey)
	}
	return r, nil
}

// setHeads sets the variables of the heads.
func setHeads(vars variables, all []head) {
	for i, h := range all {
		if i == 0 {
			vars.set(varHead, h.id)
		}
		if h.label != "" {
			vars.set(varHead+":"+h.label, h.id)
		}
	}
}

// newID returns a UUID.
func newID(chance *rand.Rand) string {
	a, b := chance.Uint64(), chance.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// withMember returns an object with another member.
func withMember(object json.RawMessage, key, text string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	members[key], _ = json.Marshal(text)
	changed, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return changed
}

// plant adds the records of the seed file, and heads for the entries that it has
// not.
func (s *Scenario) plant(e *headstest.Emulator, r *records, vars variables) []error {
	if s.seeded != nil {
		if err := s.importSeed(e, vars); err != nil {
			var faults []error
			for _, fault := range yamltext.Faults(err) {
				faults = append(faults, s.seed.Errorf("the seed %s: %v", shown(s.seed.Text), fault))
			}
			return faults
		}
	}
	seeded := map[string]string{}
	for _, id := range e.Heads() {
		seeded[id] = ""
	}
	for i, h := range r.heads {
		if _, ok := seeded[h.id]; ok {
			delete(seeded, h.id)
			continue
		}
		// A malformed id is a fault that apply tells better.
		if headsfile.ID.MatchString(h.id) {
			e.AddHead(headstest.Head{ID: h.id, Name: labelOr(h.label, i), OperationMode: heads.OperationModeOC, EnableEvents: true})
		}
	}
	for _, document := range e.Snapshot().Heads {
		var h struct{ ID, Name string }
		if json.Unmarshal(document, &h) != nil {
			continue
		}
		if _, ok := seeded[h.ID]; ok {
			r.heads = append(r.heads, head{h.ID, h.Name})
		}
	}
	if len(r.heads) == 0 {
		return []error{s.backend.at.Errorf("there are no heads; add heads, a list of entries as in heads.yaml, or a seed")}
	}
	return nil
}

func labelOr(label string, i int) string {
	if label != "" {
		return label
	}
	return fmt.Sprintf("Head %d", i+1)
}

func (s *Scenario) importSeed(e *headstest.Emulator, vars variables) error {
	expanded, err := vars.expand(s.seeded)
	if err != nil {
		return err
	}
	document, err := expanded.AppendJSON(nil)
	if err != nil {
		return err
	}
	seed, err := headstest.ParseSeed(document)
	if err != nil {
		return err
	}
	_, err = e.Import(seed)
	return err
}

// apply applies the entries. The faults are at their entries.
func (s *Scenario) apply(ctx context.Context, e *headstest.Emulator, all []head, vars variables) []error {
	if s.heads == nil || len(s.heads.ids) == 0 {
		return nil
	}
	specs, err := s.heads.resolve(s.reader, s.folder, vars)
	if err != nil {
		return yamltext.Faults(err)
	}
	for i := range specs {
		specs[i].ID = all[i].id
	}
	report, err := fleet.Apply(ctx, e.Client(), specs, fleet.Options{StopAfter: -1})
	if err != nil {
		return s.headFaults(err)
	}
	var faults []error
	for i, result := range report.Results {
		if result.Err != nil {
			faults = append(faults, s.heads.entry(i).Errorf("apply would end with: %s", s.reader.Plain(result.Err)))
		}
	}
	return faults
}

// resolve returns the specs with their variables replaced.
func (h *headsSpec) resolve(reader *Reader, folder string, vars variables) ([]fleet.Spec, error) {
	if h.inline {
		entries, err := vars.expand(h.at)
		if err != nil {
			return nil, err
		}
		return reader.Heads(entries, folder)
	}
	if h.replace == nil {
		return slices.Clone(h.specs), nil
	}
	replace, err := vars.expand(h.replace)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, m := range slices.SortedFunc(slices.Values(replace.Members), func(a, b yamltext.Member) int { return len(b.Key) - len(a.Key) }) {
		pairs = append(pairs, m.Key, m.Value.Text)
	}
	return replaceTexts(h.specs, strings.NewReplacer(pairs...))
}

// replaceTexts replaces parts of all texts of the specs.
func replaceTexts(specs []fleet.Spec, replacer *strings.Replacer) (replaced []fleet.Spec, err error) {
	document, err := json.Marshal(specs)
	if err != nil {
		return nil, err
	}
	value, err := decodeJSON(document)
	if err != nil {
		return nil, err
	}
	if document, err = json.Marshal(mapTexts(value, replacer.Replace)); err != nil {
		return nil, err
	}
	return replaced, json.Unmarshal(document, &replaced)
}

func mapTexts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = mapTexts(v[i], change)
		}
	case map[string]any:
		for key := range v {
			v[key] = mapTexts(v[key], change)
		}
	}
	return v
}

// headFaults returns the faults of the specs at the values that they are about.
func (s *Scenario) headFaults(err error) (faults []error) {
	for _, part := range yamltext.Faults(err) {
		text := s.reader.Plain(part)
		found := headsfile.InSpec.FindStringSubmatchIndex(text)
		if found == nil {
			faults = append(faults, s.heads.at.Errorf("%s", text))
			continue
		}
		n := 0
		_, _ = fmt.Sscan(text[found[2]:found[3]], &n)
		rest := text[found[1]:]
		at, _ := headsfile.PartOf(s.heads.entry(n), rest)
		faults = append(faults, at.Errorf("%s", rest))
	}
	return faults
}

// checkCallees refuses webhooks and tools of other hosts: a test calls nobody else.
func (s *Scenario) checkCallees(e *headstest.Emulator) (faults []error) {
	refuse := func(what, address string) {
		if !s.mayCall(address) {
			faults = append(faults, s.callee(what, address))
		}
	}
	for _, document := range e.Snapshot().Heads {
		var h struct {
			ConversationSettings struct {
				Tools []struct{ URL string }
			}
		}
		_ = json.Unmarshal(document, &h)
		for _, tool := range h.ConversationSettings.Tools {
			refuse("tool", tool.URL)
		}
	}
	for _, document := range e.Snapshot().Webhooks {
		var w struct{ WebhookURL string }
		_ = json.Unmarshal(document, &w)
		refuse("webhook", w.WebhookURL)
	}
	return faults
}

// mayCall reports whether a URL is on loopback, below that of the back end, or of a host
// that was allowed.
func (s *Scenario) mayCall(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if loopback.Is(u.Hostname()) || s.reader.allows(u) {
		return true
	}
	if s.backend.url == "" {
		return false
	}
	base, err := url.Parse(s.backend.url)
	return err == nil && u.Scheme == base.Scheme && strings.EqualFold(u.Host, base.Host) && isBelow(u.Path, base.Path)
}

// isBelow reports whether a decoded path is another one or below it, however a server
// reads dots and backslashes.
func isBelow(decoded, base string) bool {
	base = strings.TrimRight(base, "/") + "/"
	return strings.HasPrefix(paths.Clean("/"+strings.ReplaceAll(decoded, `\`, "/"))+"/", base)
}

// callbackHosts are the hosts that the emulator sends to: the back end's, and those of
// --allow-host.
func (s *Scenario) callbackHosts() map[string]string {
	hosts := map[string]string{}
	maps.Copy(hosts, s.reader.CallbackHosts)
	if base, err := url.Parse(s.backend.url); err == nil && base.Host != "" && !s.reader.allows(base) {
		hosts[strings.TrimSuffix(base.Host, ":"+base.Port())+":"+portOf(s.backend.url)] = ""
	}
	return hosts
}

// strays reports whether a URL is at the host of the back end, but not below its URL. Of
// what the emulator sends, this alone is left to check.
func (s *Scenario) strays(u *url.URL) bool {
	base, err := url.Parse(s.backend.url)
	return err == nil && strings.EqualFold(u.Hostname(), base.Hostname()) && portOf(u.String()) == portOf(s.backend.url) && !s.mayCall(u.String())
}

// allows reports whether --allow-host names the host of a URL.
func (r *Reader) allows(u *url.URL) bool {
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	for name := range r.CallbackHosts {
		if name == anyHost || strings.EqualFold(name, host) || strings.EqualFold(name, host+":"+portOf(u.String())) {
			return true
		}
	}
	return false
}

// anyHost is the name of --allow-host that stands for all hosts.
const anyHost = "*"

const calleeFault = "is neither on this machine nor below the url of the back end, and a test calls nobody else"

// callee is the fault of a URL that a test must not call, where the file has it.
func (s *Scenario) callee(what, address string) error {
	at := s.backend.at
	switch {
	case s.heads != nil:
		at = s.heads.at
		if found := findText(at, address); found != nil {
			at = found
		}
	case s.seed != nil:
		at = s.seed
	}
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	return at.Errorf(`the %s at %s %s; write its URL with "${BACKEND}", or replace: {%q: "${BACKEND}"}, or allow its host with --allow-host`, what, shown(host), calleeFault, shown(host))
}

// findText returns the value that has a text.
func findText(v *yamltext.Value, text string) *yamltext.Value {
	if v.Kind == yamltext.Text && v.Text == text {
		return v
	}
	for _, item := range v.Items {
		if found := findText(item, text); found != nil {
			return found
		}
	}
	for _, m := range v.Members {
		if found := findText(m.Value, text); found != nil {
			return found
		}
	}
	return nil
}

// options are those of the emulator of a scenario. Time limits are those of outbound.
func (s serviceSpec) options() []headstest.Option {
	opts := []headstest.Option{headstest.WithRetrySchedule(s.retry...), headstest.WithAccessURLs(chatURL, streamURL)}
	if s.timestamps == "iso" {
		opts = append(opts, headstest.WithTimestampLayout("2006-01-02T15:04:05.000Z"))
	}
	switch s.responses {
	case "record":
		opts = append(opts, headstest.WithResponses(headstest.ResponsesRecord))
	case "bool":
		opts = append(opts, headstest.WithResponses(headstest.ResponsesBool))
	}
	return opts
}

// The bases of access URLs, which are those of an emulator unless it is told others.
const (
	chatURL   = "https://chat.example.test"
	streamURL = "https://stream.example.test"
)
