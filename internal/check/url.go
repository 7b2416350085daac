package check

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/internal/loopback"
	"github.com/headsapi/heads-go/internal/mask"
)

// Purpose is what a URL is for, with the rules that follow from it.
type Purpose struct {
	blank     Fault // of a blank URL
	malformed rule  // what refuses a URL before the other rules; its URL is nil if it can't be parsed
	rules     []rule
	all       bool // report the faults of all rules, not only the first
}

// rule returns what is wrong with a URL.
type rule func(raw string, u *url.URL) Fault

// URL returns the parsed URL, or nil if it is malformed, and its faults.
func URL(raw string, p Purpose) (*url.URL, []Fault) {
	if strings.TrimSpace(raw) == "" {
		return nil, []Fault{p.blank}
	}
	u, err := url.Parse(raw)
	if err != nil {
		u = nil
	}
	if f := p.malformed(raw, u); f.Found() {
		return nil, []Fault{f}
	}
	var faults []Fault
	for _, refuse := range p.rules {
		if f := refuse(raw, u); f.Found() {
			faults = append(faults, f)
			if !p.all {
				break
			}
		}
	}
	return u, faults
}

// Callback is a URL that the service calls: of a webhook or of a tool. Plain http is
// allowed to a loopback host, for work with the emulator.
var Callback = Purpose{
	blank: Fault{Problem: "is blank", Remedy: "give an https:// URL"},
	malformed: when(func(_ string, u *url.URL) bool { return u == nil || u.Hostname() == "" || u.Opaque != "" },
		Fault{Problem: "is not an absolute URL", Remedy: "want https:// and a host"}),
	rules: []rule{
		placeholderInCallback,
		when(hasSpace, Fault{Problem: "holds a space", Remedy: "take it out, or escape it as %20"}),
		when(hasUser, Fault{Problem: "carries a user name or password, which the service is not known to send", Remedy: "put a secret into the path"}),
		when(hasFragment, Fault{Problem: "carries a fragment, which is never sent", Remedy: "remove it"}),
		func(_ string, u *url.URL) Fault {
			if u.Scheme == "https" || u.Scheme == "http" && loopback.Is(u.Hostname()) {
				return Fault{}
			}
			return Fault{Problem: mask.Quote(u.Scheme+"://"+u.Host) + " is not https, which the service demands", Remedy: "use an https:// URL"}
		},
	},
}

// ToolBase is the base URL of a ToolHandler. Its faults show the scheme and the host
// alone, as the rest may hold a password.
var ToolBase = Purpose{
	blank: Fault{Problem: "is blank", Remedy: "give one like https://tools.example.com/heads"},
	malformed: when(func(_ string, u *url.URL) bool { return u == nil || !u.IsAbs() || u.Hostname() == "" },
		Fault{Problem: "is not an absolute URL", Remedy: "give one like https://tools.example.com/heads"}),
	all: true,
	rules: []rule{
		func(_ string, u *url.URL) Fault {
			switch {
			case isPlain(u):
				return Fault{Problem: fmt.Sprintf("is plain http to %s, which the service does not call", u.Host), Remedy: "use https"}
			case !isHTTP(u):
				return Fault{Problem: fmt.Sprintf("has scheme %s", u.Scheme), Remedy: "use https"}
			}
			return Fault{}
		},
		when(hasUser, Fault{"holds a user name or a password", "use WithPathToken or WithToolAuth", usePathToken}),
		when(func(raw string, u *url.URL) bool { return hasQuery(raw, u) || hasFragment(raw, u) },
			Fault{Problem: "has a query or a fragment", Remedy: "leave it out"}),
		when(hasSpace, Fault{Problem: "holds a space", Remedy: "take it out"}),
		when(func(_ string, u *url.URL) bool { return slices.ContainsFunc(strings.Split(u.Path, "/"), isDots) },
			Fault{Problem: "has a path with . or .. in it", Remedy: "write it out"}),
	},
}

// Base is the base URL of the service, or of access URLs. Plain http is allowed to a
// loopback host. The faults show neither userinfo nor query, and nothing of a text that
// is no URL, since that can be a token put in the wrong place.
var Base = baseURL(false)

// InsecureBase is Base with plain http to any host.
var InsecureBase = baseURL(true)

func baseURL(insecure bool) Purpose {
	const example = "want an address such as https://api.example.com"
	return Purpose{
		blank: Fault{Problem: "is blank", Remedy: "give an address such as https://api.example.com"},
		malformed: func(_ string, u *url.URL) Fault {
			switch {
			case u == nil:
				return Fault{Problem: "can't be parsed as a URL", Remedy: example}
			case u.Host == "" && !isHTTP(u):
				return Fault{Problem: "is not absolute", Remedy: "want https:// and a host"}
			}
			return Fault{}
		},
		rules: []rule{
			shown(func(_ string, u *url.URL) bool { return !isHTTP(u) }, Fault{Problem: "is neither http nor https", Remedy: "want https:// and a host"}),
			shown(func(_ string, u *url.URL) bool { return u.Hostname() == "" }, Fault{Problem: "has no host", Remedy: example}),
			shown(hasUser, Fault{Problem: "carries a user name or password", Remedy: "take them out, the token is given on its own"}),
			shown(func(raw string, u *url.URL) bool { return hasQuery(raw, u) || strings.Contains(raw, "#") },
				Fault{Problem: "carries a query or fragment", Remedy: "end the address after its path"}),
			shown(hasSpace, Fault{Problem: "holds a space", Remedy: "take it out"}),
			shown(func(_ string, u *url.URL) bool { return !insecure && isPlain(u) },
				Fault{"is plain http, which would show the token to the network", "use https, or WithInsecureHTTP", useInsecureHTTP}),
		},
	}
}

// Access is an access URL. Its path and query have further rules.
var Access = Purpose{
	blank: Fault{"is blank", "give the publicUrl of a head as Heads.Get reads it", useHeadsGet},
	malformed: when(func(raw string, u *url.URL) bool {
		return u == nil || !isHTTP(u) || u.Hostname() == "" || hasUser(raw, u) || hasSpace(raw, u) ||
			strings.Contains(u.Host, "%") // a zone, which is of one machine
	}, Fault{"is not an absolute https URL", "give the publicUrl of a head as Heads.Get reads it", useHeadsGet}),
}

// when returns the rule that f is the fault of a URL for which broken is true.
func when(broken func(raw string, u *url.URL) bool, f Fault) rule {
	return func(raw string, u *url.URL) Fault {
		if broken(raw, u) {
			return f
		}
		return Fault{}
	}
}

// shown is when for a fault that begins with the URL.
func shown(broken func(raw string, u *url.URL) bool, f Fault) rule {
	return func(raw string, u *url.URL) Fault {
		if !broken(raw, u) {
			return Fault{}
		}
		text := mask.BareURLs(raw)
		if strings.ContainsAny(text, "@?#") {
			text = mask.Redacted
		}
		return Fault{fmt.Sprintf("%q %s", text, f.Problem), f.Remedy, f.Use}
	}
}

func isHTTP(u *url.URL) bool                { return u.Scheme == "http" || u.Scheme == "https" }
func isPlain(u *url.URL) bool               { return u.Scheme == "http" && !loopback.Is(u.Hostname()) }
func hasUser(_ string, u *url.URL) bool     { return u.User != nil }
func hasQuery(_ string, u *url.URL) bool    { return u.RawQuery != "" || u.ForceQuery }
func hasFragment(_ string, u *url.URL) bool { return u.Fragment != "" }
func hasSpace(raw string, _ *url.URL) bool  { return strings.Contains(raw, " ") }

func placeholderInCallback(raw string, u *url.URL) Fault {
	found := SampleInURL(u)
	if part := partPlaceholder.FindString(u.Path); part != "" {
		found = part // raw may have it escaped, beside a secret
	} else if IsPlaceholder(raw) {
		found = placeholderIn(raw)
	}
	if found == "" {
		return Fault{}
	}
	return Fault{Problem: fmt.Sprintf("holds the placeholder %q", found), Remedy: "give the real URL"}
}
