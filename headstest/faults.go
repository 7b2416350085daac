package headstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// CutPoint is the point at which a fault closes the connection without an answer.
//
// If a reused connection is closed before the answer, the client's transport may
// retry a GET by itself. So a cut that happens only once may have no visible effect.
type CutPoint int

// Points at which a fault closes the connection.
const (
	CutNone   CutPoint = iota // the connection stays open
	CutBefore                 // before the request has its effect
	CutAfter                  // after it
)

// Fault is a fault in the answers to requests. Without Status and Cut, the
// operation runs, and only the other fields of the fault apply.
type Fault struct {
	Method, Route string        // empty: any. A route of the contract, its parameters under any name, or a path
	Status, Times int           // Status: answered at once, without effect. Times 0: always
	Body          string        // the answer's body; without Status it replaces the operation's own
	RetryAfter    time.Duration // sent as Retry-After in whole seconds, rounded up
	Latency       time.Duration // the wait before the effect; with After or CutAfter, the wait after it
	Cut           CutPoint
	After         bool    // the request has its effect before Status is answered
	CutBody       bool    // the connection is closed half way through the body; an empty answer is not sent at all
	Share         float64 // the share of matching requests, chosen at random; with WithSeed the same in every run; 0: all
}

// fault is an injected fault and how often it can still happen.
type fault struct {
	Fault
	left int
}

// Validate returns an error if the fault can't happen: if no operation has its
// method and route, if its status can't end an answer, or if its share is not from
// 0 to 1.
func (f Fault) Validate() error {
	switch {
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d can't end an answer; give 0 or one from 200 to 599", f.Status)
	case !(f.Share >= 0 && f.Share <= 1): // NaN too
		return fmt.Errorf("share %v is not from 0 to 1", f.Share)
	case !f.hasOperation():
		return fmt.Errorf(`no operation has method %q and route %q, so the fault would never happen; give a route such as "/head/{id}", or leave it out`,
			or(f.Method, "any"), or(f.Route, "any"))
	}
	return nil
}

func (f Fault) hasOperation() bool {
	for _, pattern := range patterns() {
		method, route, _ := strings.Cut(pattern, " ")
		if (f.Method == "" || strings.EqualFold(f.Method, method)) && (f.Route == "" || sameRoute(f.Route, route) || isPathOf(f.Route, route)) {
			return true
		}
	}
	return false
}

// Inject adds a fault to the answers of later requests. If several faults match a
// request, the one that was injected first is used. The credential is checked after
// the fault. Inject panics if Validate returns an error.
func (e *Emulator) Inject(f Fault) (remove func()) {
	if err := f.Validate(); err != nil {
		panic("headstest: Inject: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	st, injected := e.st, &fault{f, f.Times}
	st.faults = append(st.faults, injected)
	e.notify()
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notify()
		st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f == injected })
	}
}

// RemoveFaults removes all faults of requests and deliveries. An event that a fault
// with Reorder holds back still waits for the next event.
func (e *Emulator) RemoveFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.st.faults, e.st.deliveryFaults = nil, nil
	e.notify()
}

// takeFault returns the fault that matches and counts it.
func (c *core) takeFault(r *http.Request) (Fault, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.st.faults) == 0 {
		return Fault{}, false
	}
	_, pattern := c.mux.Handler(r)
	i := slices.IndexFunc(c.st.faults, func(f *fault) bool { return f.matches(r, pattern) && f.strikes(c.st.chance) })
	if i < 0 {
		return Fault{}, false
	}
	f := c.st.faults[i]
	if f.left--; f.left == 0 {
		c.st.faults = slices.Delete(c.st.faults, i, i+1)
	}
	c.notify()
	return f.Fault, true
}

var parameter = regexp.MustCompile(`\{[^{}/]*\}`)

func (f Fault) matches(r *http.Request, pattern string) bool {
	if f.Method != "" && !strings.EqualFold(f.Method, r.Method) {
		return false
	}
	if f.Route == "" || f.Route == r.URL.Path {
		return true
	}
	_, route, _ := strings.Cut(pattern, " ")
	return sameRoute(f.Route, route)
}

// strikes reports whether a matching request is in the fault's share.
func (f Fault) strikes(chance *rand.Rand) bool {
	return f.Share == 0 || chance.Float64() < f.Share
}

// sameRoute compares routes and ignores the names of their parameters.
func sameRoute(a, b string) bool {
	return parameter.ReplaceAllString(a, "{}") == parameter.ReplaceAllString(b, "{}")
}

// isPathOf reports whether a path matches a route.
func isPathOf(path, route string) bool {
	ok, _ := regexp.MatchString("^"+parameter.ReplaceAllString(route, "[^/{}?#]+")+"$", path)
	return ok
}

// cutting is how much of an answer is not sent.
type cutting int

const (
	cutNothing cutting = iota
	cutMiddle
	cutWhole
)

// underFaults answers a request and applies its fault.
func (c *core) underFaults(r *http.Request, answer func() reply) (reply, cutting) {
	f, ok := c.takeFault(r)
	if !ok {
		return answer(), cutNothing
	}
	late := f.After || f.Cut == CutAfter
	if !late && !c.delay(r, f.Latency) || f.Cut == CutBefore {
		return reply{}, cutWhole
	}
	var rep reply
	if late || f.Status == 0 {
		rep = answer()
	}
	if late && !c.delay(r, f.Latency) || f.Cut == CutAfter {
		return reply{}, cutWhole
	}
	rep = f.reshape(rep)
	switch {
	case !f.CutBody:
		return rep, cutNothing
	case len(rep.body) == 0:
		return reply{}, cutWhole
	default:
		return rep, cutMiddle
	}
}

// delay waits and reports whether the caller has not left.
func (c *core) delay(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-c.lifetime.Done():
	}
	return false
}

// reshape replaces the status, body and Retry-After of an answer with the fault's.
func (f Fault) reshape(rep reply) reply {
	if f.Status != 0 {
		rep = reply{f.Status, http.Header{}, nil}
	}
	if f.Body != "" {
		rep.body = []byte(f.Body)
		rep.header.Set("Content-Type", "text/plain; charset=utf-8")
		if json.Valid(rep.body) {
			rep.header.Set("Content-Type", "application/json")
		}
	}
	if f.RetryAfter > 0 {
		rep.header.Set("Retry-After", wholeSeconds(f.RetryAfter))
	}
	return rep
}
