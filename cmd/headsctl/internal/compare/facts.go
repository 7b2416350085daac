// Package compare finds how heads differ between environments.
package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/fleet"
)

// fact is what a head has, or should have, in one field. Both texts have names of
// values in their URLs.
type fact struct {
	exact string // to compare
	shown string // masked
}

// Facts are the facts of one head in one environment.
type Facts struct {
	x     *Explainer
	is    map[string]fact   // by field
	want  map[string]fact   // of the file
	names map[string]string // of fields as they are shown
	drift map[string]bool   // whether the field is not as the file wants it
	order []string          // of the fields: those of the file first among webhooks and tools
}

// unlike are fields that are never the same for two heads.
var unlike = []string{"publicUrl", "ttsProvider", "ttsVoice"} // the last two are the voice

// FactsOf compares a head with what the file wants of it.
func FactsOf(x *Explainer, head *heads.Head, hooks []heads.Webhook, spec *fleet.Spec) (*Facts, error) {
	f := &Facts{x: x, is: map[string]fact{}, want: map[string]fact{}, names: map[string]string{}, drift: map[string]bool{}}
	f.takeFields(head, spec)
	f.put("voice", head.TTSProvider+"/"+head.TTSVoice)
	f.put("streaming", fmt.Sprint(head.VideoStreaming))
	f.put("delivery", fmt.Sprint(head.EnableEvents))
	if spec.Voice != nil {
		f.wants("voice", spec.Voice.Provider+"/"+spec.Voice.ID)
	}
	if spec.Streaming != nil {
		f.wants("streaming", fmt.Sprint(*spec.Streaming))
	}
	if spec.Delivery != nil {
		f.wants("delivery", fmt.Sprint(*spec.Delivery))
	}
	f.takeWebhooks(hooks, spec)
	f.takeTools(head, spec)
	return f, f.findDrift(head, hooks, spec)
}

// put sets what a field is, wants what it should be.
func (f *Facts) put(field, text string)   { f.is[f.known(field)] = fact{text, text} }
func (f *Facts) wants(field, text string) { f.want[f.known(field)] = fact{text, text} }

func (f *Facts) known(field string) string {
	if !slices.Contains(f.order, field) {
		f.order = append(f.order, field)
	}
	return field
}

// takeFields takes the fields that an update can change.
func (f *Facts) takeFields(head *heads.Head, spec *fleet.Spec) {
	exact := rawjson.MapTexts(head.Raw.Bytes(), f.x.put)
	shown := redact.Body(exact)
	for _, name := range heads.WritableFields() {
		if slices.Contains(unlike, name) {
			continue
		}
		field := f.known(fieldName(name))
		f.is[field] = f.fieldFact(name, rawjson.Get(exact, name), rawjson.Get(shown, name))
		value, ok := spec.Set[name]
		if !ok {
			continue
		}
		wanted, _ := rawjson.Encode(map[string]any{name: value}) // it was read from a file
		wanted = rawjson.MapTexts(wanted, f.x.put)
		f.want[field] = f.fieldFact(name, rawjson.Get(wanted, name), rawjson.Get(redact.Body(wanted), name))
	}
}

const systemPrompt = "promptConfig.system_prompt"

// fieldName is how plan calls a field.
func fieldName(name string) string {
	if name == "promptConfig" {
		return systemPrompt
	}
	return name
}

func (f *Facts) fieldFact(name string, exact, shown []byte) fact {
	if name == "promptConfig" {
		exact, shown = rawjson.Get(exact, "system_prompt"), rawjson.Get(shown, "system_prompt")
	}
	return fact{plainValue(exact), f.x.show(plainValue(shown))}
}

// plainValue returns a value of JSON as a text that is the same for equal values: ""
// for what is absent, null or empty.
func plainValue(value []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return ""
	}
	switch v := plainNumbers(v).(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		if len(v) == 0 {
			return ""
		}
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
	}
	text, _ := rawjson.Encode(v) // it was decoded from JSON
	return string(text)
}

// exactDigits is how many digits a float64 keeps.
const exactDigits = 15

// plainNumbers writes numbers in one way, as far as no digit is lost.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Float64(); err == nil && len(v) <= exactDigits {
			return json.Number(strconv.FormatFloat(n, 'g', -1, 64))
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return v
}

// takeWebhooks takes the registrations, by URL.
func (f *Facts) takeWebhooks(hooks []heads.Webhook, spec *fleet.Spec) {
	for _, w := range spec.Webhooks {
		f.wants(f.webhook(w.URL), eventList(w.Events))
	}
	times := map[string]int{}
	slices.SortFunc(hooks, func(a, b heads.Webhook) int { // the oldest of a URL counts
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	for _, h := range hooks {
		field := f.webhook(h.URL)
		if times[field]++; times[field] == 1 {
			f.put(field, eventList(h.Events()))
		}
	}
	for field, n := range times {
		if n > 1 {
			f.put(field, fmt.Sprintf("%s (%d registrations)", f.is[field].exact, n))
		}
		if _, ok := f.want[field]; !ok && spec.PruneWebhooks && spec.Webhooks != nil {
			f.wants(field, "")
		}
	}
}

// webhook returns the field of the registrations of a URL.
func (f *Facts) webhook(url string) string {
	exact := f.x.put(url)
	field := "webhook " + urlKey(exact)
	f.names[field] = "webhook " + f.x.showURL(exact)
	return field
}

// urlKey returns the same text for equivalent URLs, as the library compares those of
// registrations; it exports no such function.
func urlKey(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		return text
	}
	u.Host = strings.ToLower(u.Host)
	if host, found := strings.CutSuffix(u.Host, map[string]string{"https": ":443", "http": ":80"}[u.Scheme]); found {
		u.Host = host
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	return u.String()
}

func eventList(types []heads.EventType) string {
	var texts []string
	for _, t := range types {
		texts = append(texts, strings.ToLower(string(t)))
	}
	slices.Sort(texts)
	if len(texts) == 0 {
		return "no event"
	}
	return strings.Join(slices.Compact(texts), ", ")
}

// takeTools takes the tools, by name.
func (f *Facts) takeTools(head *heads.Head, spec *fleet.Spec) {
	if spec.Tools != nil {
		for _, tool := range *spec.Tools {
			document, err := tool.MarshalJSON()
			if err == nil {
				f.want[f.known("tool "+tool.Name)] = f.toolFact(document)
			}
		}
	}
	if head.ConversationSettings == nil {
		return
	}
	for _, tool := range head.ConversationSettings.Tools {
		field := f.known("tool " + tool.Name)
		if document, err := tool.MarshalJSON(); err == nil {
			f.is[field] = f.toolFact(document)
		}
		if _, ok := f.want[field]; !ok && spec.Tools != nil {
			f.wants(field, "")
		}
	}
}

func (f *Facts) toolFact(document []byte) fact {
	exact := rawjson.MapTexts(document, f.x.put)
	return fact{plainValue(exact), f.x.show(plainValue(redact.Body(exact)))}
}

// findDrift asks package fleet what is not as the file wants it.
func (f *Facts) findDrift(head *heads.Head, hooks []heads.Webhook, spec *fleet.Spec) error {
	check := func(field string, part fleet.Spec) error {
		changes, err := fleet.Drift(head, hooks, part)
		f.drift[field] = f.drift[field] || len(changes) > 0
		return err
	}
	for name, value := range spec.Set {
		if err := check(fieldName(name), fleet.Spec{Set: map[string]any{name: value}}); err != nil {
			return err
		}
	}
	for field, part := range map[string]fleet.Spec{
		"voice": {Voice: spec.Voice}, "streaming": {Streaming: spec.Streaming}, "delivery": {Delivery: spec.Delivery},
	} {
		if err := check(field, part); err != nil {
			return err
		}
	}
	for _, w := range spec.Webhooks {
		if err := check(f.webhook(w.URL), fleet.Spec{Webhooks: []fleet.WebhookSpec{w}}); err != nil {
			return err
		}
	}
	tools, err := fleet.Drift(head, nil, fleet.Spec{Tools: spec.Tools})
	for _, c := range tools {
		for _, field := range f.order {
			if show.Clip(field, maxShown) == c.Field {
				f.drift[field] = true
			}
		}
	}
	if spec.PruneWebhooks && spec.Webhooks != nil { // what is there and not wanted, once or twice
		for field, is := range f.is {
			if strings.HasPrefix(field, "webhook ") && is.exact != f.want[field].exact {
				f.drift[field] = true
			}
		}
	}
	return err
}
