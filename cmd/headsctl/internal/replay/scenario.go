package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// Scenario is a file of headsctl test.
type Scenario struct {
	Backend   scenarioBackEnd  `json:"backend"`
	Service   *scenarioService `json:"service,omitempty"`
	Heads     []*scenarioHead  `json:"heads"`
	Scenarios []scenarioSteps  `json:"scenarios"`
}

type scenarioBackEnd struct {
	URL       string            `json:"url"`
	SharedKey map[string]string `json:"shared_key"`
}

type scenarioService struct {
	Timestamps string `json:"timestamps"`
}

type scenarioHead struct {
	ID       string             `json:"id,omitempty"`
	Label    string             `json:"label"`
	Webhooks []*scenarioWebhook `json:"webhooks,omitempty"`
	Tools    []*scenarioTool    `json:"tools,omitempty"`

	tools map[string]int // where they are, by name
}

type scenarioWebhook struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`

	path string
}

type scenarioTool struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	URL         string              `json:"url"`
	Parameters  []scenarioParameter `json:"parameters"`
}

type scenarioParameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

type scenarioSteps struct {
	Name  string `json:"name"`
	Steps []step `json:"steps"`
}

// step is one of say, user, call and events, with its modifiers.
type step struct {
	Say     string          `json:"say,omitempty"`
	User    string          `json:"user,omitempty"`
	Call    string          `json:"call,omitempty"`
	Events  []any           `json:"events,omitempty"` // a type, or a failedEvent
	Head    string          `json:"head,omitempty"`
	Session string          `json:"session,omitempty"`
	With    json.RawMessage `json:"with,omitempty"`
	Expect  any             `json:"expect,omitempty"`
	Webhook string          `json:"webhook,omitempty"`
}

// failedEvent is an event that the back end has refused in every attempt.
type failedEvent struct {
	Event   string `json:"event"`
	Outcome string `json:"outcome"`
}

// AsTest returns a scenario in which users do what the entries were caused by. A back end
// that answers as it was recorded passes it. Left are the entries that no step can stand
// for: events of unknown types, and calls of tools whose names are redacted.
func AsTest(entries []*recording.Entry, backEnd, name string) (s *Scenario, left []*recording.Entry) {
	b := &builder{
		heads: map[string]*scenarioHead{}, sessions: map[string]*session{}, taken: map[string]bool{}, entries: entries,
		following: map[string][]*recording.Entry{}, answers: map[string]answers{},
		scenario: &Scenario{Backend: scenarioBackEnd{literal(backEnd), map[string]string{"env": "HEADS_SHARED_KEY"}}},
	}
	var steps []*recording.Entry
	for _, e := range entries {
		if e.Type == recording.KindEvent && !slices.Contains(eventTypes, e.Event) || e.Type == recording.KindToolCall && (e.Tool == "" || recording.HasRedacted(e.Tool)) {
			left = append(left, e)
			continue
		}
		steps = append(steps, e)
		b.configure(e)
	}
	b.index()
	for _, e := range steps {
		if e.Type == recording.KindToolCall {
			b.call(e)
		} else {
			b.event(e)
		}
	}
	b.scenario.Scenarios = []scenarioSteps{{literal(name), b.steps}}
	return b.scenario, left
}

const (
	start      = string(heads.EventStartConversation)
	end        = string(heads.EventEndConversation)
	inactivity = string(heads.EventInactivityWarning)
	timeout    = string(heads.EventTimeoutConversation)
)

var eventTypes = []string{start, end, inactivity, timeout}

type builder struct {
	scenario *Scenario
	entries  []*recording.Entry

	following map[string][]*recording.Entry // by head, session and type
	answers   map[string]answers            // by path, head, session and type, and with the body too
	heads     map[string]*scenarioHead      // by id
	sessions  map[string]*session           // by head and id
	named     int                           // sessions so far
	taken     map[string]bool               // events that have a step
	steps     []step
}

// session is where a session of the recording stands.
type session struct {
	name           string
	started, ended bool
}

// configure gives the head of an entry the webhook or the tool of it.
func (b *builder) configure(e *recording.Entry) {
	h := b.heads[e.HeadID]
	if h == nil {
		h = &scenarioHead{Label: fmt.Sprintf("head-%d", len(b.heads)+1), tools: map[string]int{}}
		if headsfile.ID.MatchString(e.HeadID) {
			h.ID = e.HeadID
		}
		b.heads[e.HeadID] = h
		b.scenario.Heads = append(b.scenario.Heads, h)
	}
	if e.Type == recording.KindToolCall {
		h.addTool(e)
		return
	}
	if _, f, err := timestampOf(e.Body); err == nil && strings.Contains(f.layout, "T") {
		b.scenario.Service = &scenarioService{"iso"}
	}
	i := slices.IndexFunc(h.Webhooks, func(w *scenarioWebhook) bool { return w.path == e.Path })
	if i < 0 {
		i = len(h.Webhooks)
		h.Webhooks = append(h.Webhooks, &scenarioWebhook{URL: addressOf(e.Path), path: e.Path})
	}
	if w := h.Webhooks[i]; !slices.Contains(w.Events, e.Event) {
		w.Events = append(w.Events, e.Event)
	}
}

func (h *scenarioHead) addTool(e *recording.Entry) {
	i, known := h.tools[e.Tool]
	if !known {
		i = len(h.Tools)
		h.tools[e.Tool] = i
		h.Tools = append(h.Tools, &scenarioTool{Name: literal(e.Tool), Description: literal("Recorded calls of " + e.Tool + "."), URL: addressOf(e.Path), Parameters: []scenarioParameter{}})
	}
	t := h.Tools[i]
	for _, a := range argumentsOf(e.Body) {
		if !slices.ContainsFunc(t.Parameters, func(p scenarioParameter) bool { return p.Name == literal(a.name) }) {
			t.Parameters = append(t.Parameters, scenarioParameter{literal(a.name), typeOf(a.value), literal("Recorded argument " + a.name + ".")})
		}
	}
}

type argument struct {
	name  string
	value json.RawMessage
}

// argumentsOf returns the arguments of a call as they were sent, in their order.
func argumentsOf(body []byte) (arguments []argument) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	_, _ = decoder.Token()
	for decoder.More() {
		name, _ := decoder.Token()
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return arguments
		}
		if text, ok := name.(string); ok && text != "session_metadata" {
			arguments = append(arguments, argument{text, value})
		}
	}
	return arguments
}

func typeOf(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case '"', 'n':
		return "string"
	}
	return "number"
}

// PathToken is the variable that has what is redacted in the paths. The variables of the
// service, HEADS_*, are not for scenarios.
const PathToken = "PATH_TOKEN"

// addressOf returns the URL of a path.
func addressOf(path string) string {
	return "${BACKEND}" + strings.ReplaceAll(literal(path), recording.Redacted, "${env:"+PathToken+"}")
}

// literal escapes what a scenario would take for a variable.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// of returns the session of an entry. A session that has ended, or has started when it
// starts, is followed by another one of the same id.
func (b *builder) of(e *recording.Entry) *session {
	key := e.HeadID + "\n" + e.SessionID
	s := b.sessions[key]
	if s == nil || s.ended || s.started && e.Event == start {
		b.named++
		s = &session{name: fmt.Sprintf("session-%d", b.named)}
		b.sessions[key] = s
	}
	return s
}

// add adds a step of the user or a call.
func (b *builder) add(e *recording.Entry, st step) {
	st.Session = b.of(e).name
	if len(b.scenario.Heads) > 1 {
		st.Head = b.heads[e.HeadID].Label
	}
	b.steps = append(b.steps, st)
}

func (b *builder) call(e *recording.Entry) {
	var with map[string]json.RawMessage
	for _, a := range argumentsOf(e.Body) {
		if with == nil {
			with = map[string]json.RawMessage{}
		}
		with[a.name] = a.value
	}
	st := step{Call: literal(e.Tool)}
	if with != nil {
		st.With = []byte(literal(string(encode(with))))
	}
	if e.Answer.By == recording.ByBackEnd {
		message, problem := readReply(e.Answer)
		switch {
		case problem == "":
			st.Expect = map[string]string{"message": literal(message)}
		case e.Answer.Status != 200:
			st.Expect = map[string]int{"status": e.Answer.Status}
		default:
			st.Expect = map[string]any{"problem": map[string]string{"matches": "."}}
		}
	}
	b.add(e, st)
}

// encode writes JSON in which ${ is never escaped.
func encode(value any) []byte {
	var plain any
	var out bytes.Buffer
	doc, _ := json.Marshal(value) // made of values that were read
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	_ = decoder.Decode(&plain)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(plain)
	return bytes.TrimSpace(out.Bytes())
}

// event adds what the user did, and the events that this causes. A redelivery and a
// delivery to another webhook are the same event.
func (b *builder) event(e *recording.Entry) {
	if b.taken[eventOf(e)] {
		return
	}
	b.taken[eventOf(e)] = true
	types := []string{e.Event}
	switch e.Event {
	case start:
		b.add(e, step{Say: "Hello"})
	case inactivity:
		b.add(e, step{User: "inactive"})
	case timeout, end:
		other := end
		if e.Event == end {
			other = timeout
		}
		if both := b.next(e, other); both != nil || e.Event == timeout {
			types = []string{timeout, end}
			if both != nil {
				b.taken[eventOf(both)] = true
			}
			b.add(e, step{User: "timeout"})
		} else {
			b.add(e, step{User: "close"})
		}
	}
	s := b.of(e)
	b.expect(e, types)
	s.started = s.started || e.Event == start
	s.ended = e.Event == end || e.Event == timeout
}

// next returns the event of a type in the session of e that has no step.
func (b *builder) next(e *recording.Entry, eventType string) *recording.Entry {
	series := seriesOf(e, eventType)
	for len(b.following[series]) > 0 {
		first := b.following[series][0]
		if !b.taken[eventOf(first)] {
			return first
		}
		b.following[series] = b.following[series][1:]
	}
	return nil
}

// answers are those of the back end to deliveries of one kind.
type answers struct{ accepted, refused bool }

func seriesOf(e *recording.Entry, eventType string) string {
	return e.HeadID + "\n" + e.SessionID + "\n" + eventType
}

// index makes the lookups of next and failed, so that they don't search all entries.
func (b *builder) index() {
	for _, e := range b.entries {
		if e.Type != recording.KindEvent {
			continue
		}
		series := seriesOf(e, e.Event)
		b.following[series] = append(b.following[series], e)
		for _, key := range []string{e.Path + "\n" + series, e.Path + "\n" + series + "\n" + eventOf(e)} {
			a := b.answers[key]
			a.accepted = a.accepted || e.Delivered()
			a.refused = a.refused || e.Answer.By == recording.ByBackEnd || e.Outcome != nil && e.Outcome.Status != 0
			b.answers[key] = a
		}
	}
}

// eventOf is the same for all deliveries of an event.
func eventOf(e *recording.Entry) string { return string(e.Body) }

// expect adds the step events for each webhook that has events of the types.
func (b *builder) expect(e *recording.Entry, types []string) {
	h := b.heads[e.HeadID]
	for _, w := range h.Webhooks {
		st := step{}
		for _, eventType := range types {
			switch {
			case !slices.Contains(w.Events, eventType):
			case b.failed(e, w.path, eventType):
				st.Events = append(st.Events, failedEvent{eventType, "failed"})
			default:
				st.Events = append(st.Events, eventType)
			}
		}
		if len(h.Webhooks) > 1 {
			st.Webhook = w.URL
		}
		if st.Events != nil {
			b.steps = append(b.steps, st)
		}
	}
}

// failed reports whether the back end has refused each recorded delivery of the event to
// a path. Deliveries that it has not answered are ignored.
func (b *builder) failed(e *recording.Entry, path, eventType string) bool {
	key := path + "\n" + seriesOf(e, eventType)
	if eventType == e.Event {
		key += "\n" + eventOf(e)
	}
	a := b.answers[key]
	return a.refused && !a.accepted
}
