package headstest

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/nearest"
)

// operations returns the eleven operations of the contract, and three others that
// were seen in the field.
func (c *core) operations() map[string]operation {
	return map[string]operation{
		"PUT /head/update":                         c.updateHead,
		"GET /head/{id}":                           c.getHead,
		"GET /head_visual/{headVisualId}":          c.getVisual,
		"PUT /head/{headId}/video-streaming":       c.putVideoStreaming,
		"PUT /head/{headId}/conversation-settings": c.putSettings,
		"PUT /head/{headId}/enable-events":         c.putEnableEvents,
		"POST /head-events":                        c.createWebhook,
		"GET /head-events":                         c.listWebhooks,
		"GET /head-events/{webhookId}":             c.getWebhook,
		"PATCH /head-events/{webhookId}":           c.patchWebhook,
		"DELETE /head-events/{webhookId}":          c.deleteWebhook,

		"GET /head/{headId}/enable-events":         c.getEnableEvents, // not in the contract
		"GET /head/{headId}/conversation-settings": c.getSettings,     // not in the contract
		"PUT /head/{headId}/splitter":              c.putSplitter,     // not in the contract
	}
}

// patterns returns the patterns of the operations, sorted.
func patterns() []string { return slices.Sorted(maps.Keys((&core{}).operations())) }

// operationMethods are the methods that an operation can have.
var operationMethods = []string{
	http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut,
}

// hasOperation reports whether the emulator has an operation for the method and
// path of a request. A path that ends in a name in the place of an id has none, so
// GET /head/all and DELETE /head/update are no operations, as on the service.
func (c *core) hasOperation(r *http.Request) bool {
	if path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect
		return false
	}
	_, pattern := c.mux.Handler(r)
	return pattern != "" && !c.namesNoRecord(pattern, path.Base(r.URL.Path))
}

// name matches the name of an operation. An id contains a digit, or is one letter.
var name = regexp.MustCompile(`^[A-Za-z]{2,}([-_.][A-Za-z]+)*$`)

// namesNoRecord reports whether the last segment of a path is a name where a route
// has an id. A test may have added a record whose id is such a name.
func (c *core) namesNoRecord(pattern, last string) bool {
	if !strings.HasSuffix(pattern, "}") || !name.MatchString(last) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isHead := c.st.heads[last]
	_, isVisual := c.st.visuals[last]
	return !isHead && !isVisual
}

// methodsWith returns the methods for which has returns true, given the request with
// that method.
func methodsWith(r *http.Request, methods []string, has func(*http.Request) bool) (allowed []string) {
	for _, method := range methods {
		other := r.WithContext(r.Context())
		other.Method = method
		if has(other) {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// notAnOperation refuses a request for which the service may have an operation and
// the emulator has none.
func (c *core) notAnOperation(r *http.Request) *refusal {
	refused := refuse(http.StatusNotFound, "%s %s is not an operation of this emulator; the nearest one is %s",
		r.Method, r.URL.Path, nearestOperation(r.Method, r.URL.Path))
	if _, pattern := c.mux.Handler(r); strings.HasSuffix(pattern, "}") { // its name may be meant as an id
		refused.message += fmt.Sprintf("; there is no %s %q", recordOf(pattern), path.Base(r.URL.Path))
	}
	return refused
}

// recordOf returns what the last parameter of a route identifies.
func recordOf(pattern string) string {
	switch {
	case strings.HasSuffix(pattern, "{webhookId}"):
		return "webhook"
	case strings.HasSuffix(pattern, "{headVisualId}"):
		return "head visual"
	default:
		return "head"
	}
}

// nearestOperation returns the pattern that differs least from a method and a path.
func nearestOperation(method, target string) (best string) {
	least := 0
	for _, pattern := range patterns() {
		itsMethod, route, _ := strings.Cut(pattern, " ")
		d := routeDistance(strings.Split(path.Clean(target), "/"), strings.Split(route, "/"))
		if method != itsMethod {
			d++
		}
		if best == "" || d < least {
			best, least = pattern, d
		}
	}
	return best
}

// maxCompared is how many bytes of a segment are compared, so that a long path costs
// little.
const maxCompared = 64

// routeDistance returns how much the segments of a path differ from those of a
// route. An id differs little from a parameter, and a name differs more.
func routeDistance(given, route []string) (d int) {
	for i := range max(len(given), len(route)) {
		switch {
		case i >= len(route):
			d += absent(given[i])
		case i >= len(given):
			d += absent(route[i])
		case !parameter.MatchString(route[i]):
			d += nearest.Distance(given[i][:min(len(given[i]), maxCompared)], route[i])
		case name.MatchString(given[i]):
			d += 5
		}
	}
	return d
}

// absent returns the distance between a segment and none.
func absent(segment string) int {
	if parameter.MatchString(segment) {
		return 4
	}
	return max(4, len(segment)*2/3)
}
