package scenario

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// actions has the modifiers of each action.
var actions = map[string][]string{
	"say":      {"head", "session"},
	"user":     {"head", "session"},
	"call":     {"head", "session", "with", "unchecked", "expect", "save"},
	"http":     {"body", "headers", "expect", "within", "stays", "save"},
	"run":      {"expect", "within", "stays"},
	"backend":  {},
	"fault":    {},
	"wait":     {},
	"events":   {"session", "webhook", "within", "stays"},
	"requests": {"others", "within", "stays"},
	"state":    {"head", "within", "stays"},
}

// actionNames are in the order of the page.
var actionNames = []string{"say", "user", "call", "http", "run", "backend", "fault", "wait", "events", "requests", "state"}

// The keys of expectations.
var expectKeys = map[string][]string{
	"call": {"status", "message", "body", "json", "problem", "within"},
	"http": {"status", "body", "json"},
	"run":  {"exit", "stdout", "stderr"},
}

var (
	userWords    = []string{"inactive", "timeout", "close"}
	backendWords = []string{"kill", "stop", "start", "restart"}
	othersWords  = []string{"any", "reads", "none"}
	outcomes     = []string{"delivered", "failed", "retrying"}
	eventTypes   = []string{string(heads.EventStartConversation), string(heads.EventEndConversation), string(heads.EventInactivityWarning), string(heads.EventTimeoutConversation)}
	itemKeys     = []string{"event", "outcome", "answers", "within"}
	requestKeys  = []string{"request", "query", "body", "status", "count"}
)

func (r *fileReader) readSteps(s *Scenario, v *yamltext.Value) (steps []*step) {
	list := v.Get("steps")
	if !given(list) {
		r.faultf(v, "the scenario has no steps; add a list with the key steps")
		return nil
	}
	if !r.want(list, yamltext.List) {
		return nil
	}
	if len(list.Items) == 0 {
		r.faultf(list, "there are no steps; add one such as - say: Hello")
	}
	for i, item := range list.Items {
		if st := r.readStep(s, item); st != nil {
			st.number = i + 1
			steps = append(steps, st)
		}
	}
	return steps
}

// readStep reads a step, or returns nil after a fault.
func (r *fileReader) readStep(s *Scenario, v *yamltext.Value) *step {
	if !r.want(v, yamltext.Object) {
		return nil
	}
	st := &step{Value: v}
	for _, m := range v.Members {
		if _, ok := actions[m.Key]; !ok {
			continue
		}
		if st.action != "" {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("a step has one action, and this one has %s and %s; make two steps", st.action, m.Key)})
			return nil
		}
		st.action, st.arg = m.Key, m.Value
	}
	if st.action == "" {
		hint := "; a step has one action: " + strings.Join(actionNames, ", ")
		for _, m := range v.Members {
			r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("unknown action %q%s%s", shown(m.Key), similar.Hint(m.Key, actionNames), hint)})
			return nil
		}
		r.faultf(v, "the step is empty%s", hint)
		return nil
	}
	before := len(r.faults)
	r.object(v, append([]string{st.action}, actions[st.action]...)...)
	st.within = r.duration(v.Get("within"), defaultWithin)
	st.stays = r.duration(v.Get("stays"), 0)
	r.checkModifiers(v)
	r.checkAction(s, st)
	if len(r.faults) > before {
		return nil
	}
	return st
}

// checkModifiers checks those that every action has in the same form.
func (r *fileReader) checkModifiers(v *yamltext.Value) {
	for _, key := range []string{"head", "session", "webhook"} {
		if m := v.Get(key); m != nil {
			r.want(m, yamltext.Text)
		}
	}
	if save := v.Get("save"); save != nil && r.want(save, yamltext.Object) {
		for _, m := range save.Members {
			switch {
			case !environmentName.MatchString(m.Key) || slices.Contains([]string{varPort, varBackend, varBaseURL, varHead, varSession, varTemp}, m.Key):
				r.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("%q can't be the name of a variable; use other letters, digits and _", shown(m.Key))})
			case r.want(m.Value, yamltext.Text) && !hasReference(m.Value.Text):
				if _, err := parsePath(m.Value.Text); err != nil {
					r.faultf(m.Value, "%v", err)
				}
			}
		}
	}
}

func (r *fileReader) checkAction(s *Scenario, st *step) {
	switch st.action {
	case "say":
		r.want(st.arg, yamltext.Text)
	case "user":
		r.word(st.arg, userWords)
	case "call":
		r.checkCall(st)
	case "http":
		r.checkHTTP(st)
	case "run":
		r.fault(checkProgram(st.arg, r.folder)...)
		r.checkExpect(st)
	case "backend":
		if s.backend.url != "" {
			r.faultf(st.Value, "a back end that runs already (url) can't be killed or started here; use backend: {start: …}")
		}
		r.word(st.arg, backendWords)
	case "fault":
		r.fault(checkFault(st.arg)...)
	case "wait":
		_, err := parseDuration(st.arg)
		r.fault(err)
	case "events":
		r.checkEvents(st.arg)
	case "requests":
		r.checkRequests(st)
	case "state":
		r.fault(checkPaths(st.arg)...)
	}
}

// word requires one of several words.
func (r *fileReader) word(v *yamltext.Value, words []string) {
	if !r.want(v, yamltext.Text) {
		return
	}
	if !slices.Contains(words, v.Text) {
		r.faultf(v, "%q is unknown%s; use one of %s", shown(v.Text), similar.Hint(v.Text, words), strings.Join(words, ", "))
	}
}

func (r *fileReader) checkCall(st *step) {
	r.want(st.arg, yamltext.Text)
	if with := st.Get("with"); given(with) {
		r.want(with, yamltext.Object)
		_, err := with.AppendJSON(nil)
		r.fault(err)
	}
	if unchecked := st.Get("unchecked"); given(unchecked) {
		r.want(unchecked, yamltext.Bool)
	}
	r.checkExpect(st)
}

var requestLine = regexp.MustCompile(`^([A-Z]+) (/\S*)$`)

// checkRequestLine checks METHOD /PATH.
func (r *fileReader) checkRequestLine(v *yamltext.Value) bool {
	if !r.want(v, yamltext.Text) {
		return false
	}
	if !requestLine.MatchString(v.Text) {
		r.faultf(v, "%q is not a method and a path; write them as in GET /orders/7", shown(v.Text))
		return false
	}
	return true
}

func (r *fileReader) checkHTTP(st *step) {
	r.checkRequestLine(st.arg)
	if headers := st.Get("headers"); given(headers) && r.want(headers, yamltext.Object) {
		for _, m := range headers.Members {
			r.want(m.Value, yamltext.Text)
		}
	}
	if body := st.Get("body"); body != nil && body.Kind != yamltext.Text {
		_, err := body.AppendJSON(nil)
		r.fault(err)
	}
	r.checkExpect(st)
}

func (r *fileReader) checkExpect(st *step) {
	expect := st.Get("expect")
	if !given(expect) || !r.object(expect, expectKeys[st.action]...) {
		return
	}
	for _, m := range expect.Members {
		switch m.Key {
		case "within":
			r.duration(m.Value, 0)
		case "json":
			r.fault(checkPaths(m.Value)...)
		default:
			r.fault(checkExpectation(m.Value)...)
		}
	}
}

func (r *fileReader) checkEvents(list *yamltext.Value) {
	if !r.want(list, yamltext.List) {
		return
	}
	for i, item := range list.Items {
		event := item
		if item.Kind == yamltext.Object {
			if !r.object(item, itemKeys...) {
				continue
			}
			if event = item.Get("event"); event == nil {
				r.faultf(item, "the item has no event; add one of %s", strings.Join(eventTypes, ", "))
				continue
			}
			r.checkEventItem(item, i == len(list.Items)-1)
		}
		r.word(event, eventTypes)
	}
}

func (r *fileReader) checkEventItem(item *yamltext.Value, last bool) {
	if outcome := item.Get("outcome"); given(outcome) {
		r.word(outcome, outcomes)
		if outcome.Text == "retrying" && !last {
			r.faultf(outcome, "retrying can only be the last item, since what follows waits behind it; put the rest into a later step")
		}
	}
	if answers := item.Get("answers"); given(answers) && r.want(answers, yamltext.List) {
		for _, status := range answers.Items {
			if n, err := strconv.Atoi(status.Text); r.want(status, yamltext.Number) && (err != nil || n < 0 || n > 999) {
				r.faultf(status, "%s is not a status; write one such as 503, or 0 for no answer", shown(status.Text))
			}
		}
	}
	r.duration(item.Get("within"), 0)
}

func (r *fileReader) checkRequests(st *step) {
	if others := st.Get("others"); given(others) {
		r.word(others, othersWords)
	}
	if !r.want(st.arg, yamltext.List) {
		return
	}
	for _, item := range st.arg.Items {
		request := item
		if item.Kind == yamltext.Object {
			if !r.object(item, requestKeys...) {
				continue
			}
			if request = item.Get("request"); request == nil {
				r.faultf(item, "the item has no request; add one such as request: GET /head/{id}")
				continue
			}
			for _, key := range []string{"query", "body", "status"} {
				if v := item.Get(key); v != nil {
					r.fault(checkExpectation(v)...)
				}
			}
			if count := item.Get("count"); given(count) {
				if n, err := strconv.Atoi(count.Text); r.want(count, yamltext.Number) && (err != nil || n < 0) {
					r.faultf(count, "%s is not a number of requests; write 0 or more", shown(count.Text))
				}
			}
		}
		if r.checkRequestLine(request) {
			r.fault(checkRoute(request, request.Text))
		}
	}
}

// checkRoute returns the fault of a method and a route that are no operation of the
// service.
func checkRoute(v *yamltext.Value, text string) error {
	method, route, _ := strings.Cut(text, " ")
	route = reference.ReplaceAllString(route, "{id}")
	if (headstest.Fault{Method: method, Route: route}).Validate() == nil {
		return nil
	}
	return v.Errorf("%q is no operation of the service; the nearest one is %s", shown(text), nearestOperation(method, route))
}

var nearestIn = regexp.MustCompile(`the nearest one is ([A-Z]+ [^;"]+)`)

var routeParameter = regexp.MustCompile(`\{[^{}/]*\}`)

// nearestOperation asks an emulator, which knows all operations.
func nearestOperation(method, route string) string {
	e := headstest.NewEmulator()
	defer e.Close()
	reply := httptest.NewRecorder()
	path := routeParameter.ReplaceAllString(route, "0")
	request, err := http.NewRequest(method, "http://emulator"+path, http.NoBody)
	if err != nil {
		return "GET /head/{id}"
	}
	e.ServeHTTP(reply, request)
	if found := nearestIn.FindStringSubmatch(reply.Body.String()); found != nil {
		return strings.TrimSpace(found[1])
	}
	if allowed := reply.Header().Get("Allow"); allowed != "" { // the path is right
		return strings.TrimSpace(strings.Split(allowed, ",")[0]) + " " + route
	}
	// The path and method are an operation; without a token the answer is 401.
	return method + " " + route
}
