package headstest

import (
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/internal/nearest"
)

// patterns are the patterns of the operations, sorted: the eleven operations of the
// contract, and three others that were seen in the field.
var patterns = []string{
	"DELETE /head-events/{webhookId}",
	"GET /head-events",
	"GET /head-events/{webhookId}",
	"GET /head/{headId}/conversation-settings", // not in the contract
	"GET /head/{headId}/enable-events",         // not in the contract
	"GET /head/{id}",
	"GET /head_visual/{headVisualId}",
	"PATCH /head-events/{webhookId}",
	"POST /head-events",
	"PUT /head/update",
	"PUT /head/{headId}/conversation-settings",
	"PUT /head/{headId}/enable-events",
	"PUT /head/{headId}/splitter", // not in the contract
	"PUT /head/{headId}/video-streaming",
}

// name matches the name of an operation. An id contains a digit, or is one letter.
var name = regexp.MustCompile(`^[A-Za-z]{2,}([-_.][A-Za-z]+)*$`)

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
	for _, pattern := range patterns {
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

var parameter = regexp.MustCompile(`\{[^{}/]*\}`)

// sameRoute compares routes and ignores the names of their parameters.
func sameRoute(a, b string) bool {
	return parameter.ReplaceAllString(a, "{}") == parameter.ReplaceAllString(b, "{}")
}

// isPathOf reports whether a path matches a route.
func isPathOf(path, route string) bool {
	ok, _ := regexp.MatchString("^"+parameter.ReplaceAllString(route, "[^/{}?#]+")+"$", path)
	return ok
}
