package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// delivery is the delivery of one event to one webhook, with all its attempts.
type delivery struct {
	event   string
	answers []int // 0 is none
	slowest time.Duration
	ended   bool
	outcome string
}

func (d *delivery) String() string {
	text := fmt.Sprintf("%s %s %v", d.event, d.outcome, d.answers)
	if !d.ended {
		return text + " (not ended)"
	}
	return text
}

// deliveries returns those of a session to a webhook, or to any for "": the ended ones
// in the order in which they ended, then the one under way.
func (w *world) deliveries(s *session, webhook string) (all []*delivery, webhooks int) {
	open, seen := map[int64]*delivery{}, map[int64]bool{}
	var order []int64
	for _, attempt := range w.emulator.Deliveries() {
		if attempt.Event.SessionID != s.ID() || webhook != "" && attempt.URL != webhook {
			continue
		}
		d := open[attempt.WebhookID]
		if d == nil {
			d = &delivery{event: string(attempt.Event.Type)}
			open[attempt.WebhookID] = d
		}
		if !seen[attempt.WebhookID] {
			seen[attempt.WebhookID] = true
			order = append(order, attempt.WebhookID)
		}
		d.add(attempt, w.gate)
		if d.ended {
			all = append(all, d)
			delete(open, attempt.WebhookID)
		}
	}
	for _, id := range order {
		if d := open[id]; d != nil {
			all = append(all, d)
		}
	}
	return all, len(seen)
}

func (d *delivery) add(attempt headstest.Delivery, g *gate) {
	answered := attempt.Err == nil && attempt.Status/100 == 2
	made := attempt.Attempt > len(d.answers) // giving up is no attempt
	if made {
		status := attempt.Status
		if attempt.Err != nil {
			status = 0
		}
		d.answers = append(d.answers, status)
		d.slowest = max(d.slowest, attempt.Duration-g.held(attempt.At, attempt.Duration))
	}
	d.ended = attempt.Final
	switch {
	case !attempt.Final:
		d.outcome = "retrying"
	case answered:
		d.outcome = "delivered"
	default:
		d.outcome = "failed"
	}
}

// wantedEvent is an item of events.
type wantedEvent struct {
	event, outcome string
	answers        []int // nil: any
	within         time.Duration
}

func readWantedEvent(v *yamltext.Value) wantedEvent {
	want := wantedEvent{event: v.Text, outcome: "delivered"}
	if v.Kind != yamltext.Object {
		return want
	}
	want.event = v.Get("event").String()
	if outcome := v.Get("outcome"); outcome.IsGiven() {
		want.outcome = outcome.Text
	}
	if answers := v.Get("answers"); answers.IsGiven() {
		want.answers = []int{}
		for _, status := range answers.Items {
			want.answers = append(want.answers, numberOf(status, 0))
		}
	}
	want.within = durationOf(v.Get("within"), 0)
	return want
}

func (e wantedEvent) String() string {
	text := e.event + " " + e.outcome
	if e.answers != nil {
		text += " " + fmt.Sprint(e.answers)
	}
	return text
}

// fits returns why a delivery is not the wanted one, or "". A delivery that is retried
// may still become it.
func (e wantedEvent) fits(d *delivery) string {
	switch {
	case d.event != e.event:
		return "another event was delivered"
	case d.outcome != e.outcome:
		return "the delivery has another outcome"
	case e.answers != nil && !slices.Equal(e.answers, d.answers):
		return "the attempts were answered otherwise"
	case e.within > 0 && d.slowest > e.within:
		return fmt.Sprintf("an attempt took %v, longer than %v", roundTime(d.slowest), e.within)
	}
	return ""
}

// events compares the deliveries of a session since the last step that did.
func (w *world) events(ctx context.Context, st *step) error {
	s, err := w.eventSession(st)
	if err != nil {
		return err
	}
	if st, err = w.expanded(st); err != nil {
		return err
	}
	webhook := st.Get("webhook").String()
	var wanted []wantedEvent
	for _, item := range st.arg.Items {
		wanted = append(wanted, readWantedEvent(item))
	}
	err = w.await(ctx, st, func(context.Context) verdict { return w.compareEvents(s, webhook, wanted) })
	if err != nil {
		return err
	}
	s.taken[webhook] += len(wanted)
	if n := len(wanted); n > 0 && wanted[n-1].outcome == "retrying" {
		s.taken[webhook]-- // it stays for the next step
	}
	return nil
}

func (w *world) eventSession(st *step) (*session, error) {
	if st.Get("session") == nil {
		if w.last == nil {
			return nil, errors.New("there is no session yet; it opens at its first say, user or call")
		}
		return w.last, nil
	}
	_, name, err := w.whose(st)
	if err != nil {
		return nil, err
	}
	s := w.find(func(s *session) bool { return s.name == name })
	if s == nil {
		return nil, fmt.Errorf("no step has opened a session %q", shown(name))
	}
	return s, nil
}

func (w *world) compareEvents(s *session, webhook string, wanted []wantedEvent) verdict {
	// In this order: when nothing is left, the journal has everything.
	left := s.Undelivered()
	all, webhooks := w.deliveries(s, webhook)
	if webhooks > 1 && webhook == "" {
		return verdict{&problem{text: "the head has several webhooks; add webhook: URL"}, true}
	}
	fresh := all[min(s.taken[webhook], len(all)):]
	refuse := func(text string, final bool) verdict {
		return verdict{&problem{text, listText(wanted), deliveriesText(fresh, left)}, final}
	}
	for i, d := range fresh {
		if i >= len(wanted) {
			return refuse("there are more events than expected", true)
		}
		why := wanted[i].fits(d)
		switch {
		case why == "" && wanted[i].outcome == "retrying":
			return holdsNow
		case why != "" && d.ended:
			return refuse(fmt.Sprintf("event %d: %s", i+1, why), true)
		case why != "":
			return refuse(fmt.Sprintf("event %d: its delivery has not ended", i+1), false)
		}
	}
	switch {
	case len(fresh) < len(wanted) && left == 0:
		return refuse("there are fewer events than expected", true)
	case len(fresh) < len(wanted):
		return refuse("there are fewer events than expected", false)
	case left > 0:
		return refuse("deliveries have not ended", false)
	}
	return holdsNow
}

func listText(wanted []wantedEvent) string {
	texts := []string{}
	for _, e := range wanted {
		texts = append(texts, e.String())
	}
	return textOrNone(texts)
}

func textOrNone(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func deliveriesText(all []*delivery, left int) string {
	texts := []string{}
	for _, d := range all {
		texts = append(texts, d.String())
	}
	text := textOrNone(texts)
	if left > 0 {
		text += fmt.Sprintf("; %d not ended", left)
	}
	return text
}

// wantedRequest is an item of requests.
type wantedRequest struct {
	text                string
	method, route       string
	query, body, status *yamltext.Value
	count               int
}

func readWantedRequest(v *yamltext.Value) wantedRequest {
	want := wantedRequest{text: v.Text, count: 1}
	if v.Kind == yamltext.Object {
		want.text = v.Get("request").String()
		want.query, want.body, want.status = v.Get("query"), v.Get("body"), v.Get("status")
		want.count = numberOf(v.Get("count"), 1)
	}
	want.method, want.route, _ = strings.Cut(want.text, " ")
	return want
}

func (q wantedRequest) matches(r headstest.Request) bool {
	return q.method == r.Method && isOfRoute(r.Path, q.route) &&
		(q.query == nil || compareQuery(q.query, r.Query) == nil) &&
		(q.body == nil || compareText(q.body, string(r.Body), "") == nil) &&
		(q.status == nil || compareNumber(q.status, r.Status, "") == nil)
}

var routeParameter = regexp.MustCompile(`\{[^{}/]*\}`)

// isOfRoute reports whether a path is that of a route, or the path itself.
func isOfRoute(path, route string) bool {
	given, wanted := strings.Split(path, "/"), strings.Split(route, "/")
	return len(given) == len(wanted) && slices.EqualFunc(given, wanted, func(a, b string) bool {
		return a == b || a != "" && routeParameter.FindString(b) == b && b != ""
	})
}

// compareQuery compares a query with a text or with a map of its values.
func compareQuery(want *yamltext.Value, query string) *mismatch {
	if want.Kind != yamltext.Object || isOperator(want) {
		return compare(want, query, true, "")
	}
	request, err := http.NewRequest(http.MethodGet, "/?"+query, http.NoBody)
	if err != nil {
		return &mismatch{}
	}
	values := map[string]any{}
	for name, all := range request.URL.Query() {
		values[name] = all[0]
	}
	return compare(want, values, true, "")
}

// requests compares what the back end has sent to the service since the last step that
// did.
func (w *world) requests(ctx context.Context, st *step) error {
	st, err := w.expanded(st)
	if err != nil {
		return err
	}
	var wanted []wantedRequest
	for _, item := range st.arg.Items {
		wanted = append(wanted, readWantedRequest(item))
	}
	others := st.Get("others").String()
	last := w.requestsSeen
	err = w.await(ctx, st, func(context.Context) verdict {
		var fresh []headstest.Request
		for _, r := range w.emulator.Requests() {
			if r.ID > w.requestsSeen {
				fresh = append(fresh, r)
				last = max(last, r.ID)
			}
		}
		return compareRequests(wanted, others, fresh)
	})
	if err == nil {
		w.requestsSeen = last
	}
	return err
}

// compareRequests finds a sent request for each wanted one, and checks the rest.
func compareRequests(wanted []wantedRequest, others string, sent []headstest.Request) verdict {
	var slots []int // the item of each wanted request
	for i, q := range wanted {
		for range q.count {
			slots = append(slots, i)
		}
	}
	slotOf := assign(len(slots), len(sent), func(slot, request int) bool { return wanted[slots[slot]].matches(sent[request]) })
	refuse := func(text string, final bool) verdict {
		return verdict{&problem{text, requestsText(wanted), sentText(sent)}, final}
	}
	used := 0
	for i, r := range sent {
		switch {
		case slotOf[i] >= 0:
			used++
		case slices.ContainsFunc(wanted, func(q wantedRequest) bool { return q.matches(r) }):
			return refuse(fmt.Sprintf("%s %s was sent more often than expected", r.Method, shown(r.Path)), true)
		case others == "none", others == "reads" && r.Method != http.MethodGet:
			return refuse(fmt.Sprintf("%s %s was not expected", r.Method, shown(r.Path)), true)
		}
	}
	if used < len(slots) {
		return refuse("there are fewer requests than expected", false)
	}
	return holdsNow
}

// assign gives each slot a request that fits, if that is possible, and returns the
// slot of each request or -1.
func assign(slots, requests int, fits func(slot, request int) bool) []int {
	slotOf := slices.Repeat([]int{-1}, requests)
	var place func(slot int, tried []bool) bool
	place = func(slot int, tried []bool) bool {
		for r := range requests {
			if tried[r] || !fits(slot, r) {
				continue
			}
			tried[r] = true
			if slotOf[r] < 0 || place(slotOf[r], tried) {
				slotOf[r] = slot
				return true
			}
		}
		return false
	}
	for slot := range slots {
		place(slot, make([]bool, requests))
	}
	return slotOf
}

func requestsText(wanted []wantedRequest) string {
	texts := []string{}
	for _, q := range wanted {
		text := q.text
		if q.count != 1 {
			text += fmt.Sprintf(" (%d times)", q.count)
		}
		for _, part := range []struct {
			name string
			v    *yamltext.Value
		}{{"query", q.query}, {"body", q.body}, {"status", q.status}} {
			if part.v != nil {
				text += " " + part.name + " " + shownValue(part.v)
			}
		}
		texts = append(texts, text)
	}
	return textOrNone(texts)
}

func sentText(sent []headstest.Request) string {
	texts := []string{}
	for _, r := range sent {
		text := fmt.Sprintf("%s %s %d", r.Method, shown(r.Path), r.Status)
		if len(r.Body) > 0 {
			text += " body " + shown(string(r.Body))
		}
		texts = append(texts, text)
	}
	return textOrNone(texts)
}

// state compares a head with what GET /head/{id} shows.
func (w *world) state(ctx context.Context, st *step) error {
	h, _, err := w.whose(st)
	if err != nil {
		return err
	}
	if st, err = w.expanded(st); err != nil {
		return err
	}
	return w.await(ctx, st, func(context.Context) verdict {
		if found := comparePaths(st.arg, w.document(h.id), ""); found != nil {
			return verdict{problem: found.problem()}
		}
		return holdsNow
	})
}
