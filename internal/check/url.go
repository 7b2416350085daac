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

// rule says what is wrong with a URL. It is data, so that a program holds the rules of those
// purposes alone that it has use for.
type rule struct {
	broken func(raw string, u *url.URL) bool
	fault  Fault
	shown  bool                               // the fault begins with the URL
	refuse func(raw string, u *url.URL) Fault // in place of the others, if the fault depends on the URL
}

func (r rule) check(raw string, u *url.URL) Fault {
	switch {
	case r.refuse != nil:
		return r.refuse(raw, u)
	case !r.broken(raw, u):
		return Fault{}
	case !r.shown:
		return r.fault
	}
	text := mask.BareURLs(raw)
	if strings.ContainsAny(text, "@?#") {
		text = mask.Redacted
	}
	return Fault{fmt.Sprintf("%q %s", text, r.fault.Problem), r.fault.Remedy, r.fault.Use}
}

// URL returns the parsed URL, or nil if it is malformed, and its faults.
func URL(raw string, p Purpose) (*url.URL, []Fault) {
	if strings.TrimSpace(raw) == "" {
		return nil, []Fault{p.blank}
	}
	u, err := url.Parse(raw)
	if err != nil {
		u = nil
	}
	if f := p.malformed.check(raw, u); f.Found() {
		return nil, []Fault{f}
	}
	var faults []Fault
	for _, r := range p.rules {
		if f := r.check(raw, u); f.Found() {
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
	malformed: rule{broken: func(_ string, u *url.URL) bool { return u == nil || u.Hostname() == "" || u.Opaque != "" },
		fault: Fault{Problem: "is not an absolute URL", Remedy: "want https:// and a host"}},
	rules: []rule{
		{refuse: placeholderInCallback},
		{broken: hasSpace, fault: Fault{Problem: "holds a space", Remedy: "take it out, or escape it as %20"}},
		{broken: hasUser, fault: Fault{Problem: "carries a user name or password, which the service is not known to send", Remedy: "put a secret into the path"}},
		{broken: hasFragment, fault: Fault{Problem: "carries a fragment, which is never sent", Remedy: "remove it"}},
		{refuse: func(_ string, u *url.URL) Fault {
			if u.Scheme == "https" || u.Scheme == "http" && loopback.Is(u.Hostname()) {
				return Fault{}
			}
			return Fault{Problem: mask.Quote(u.Scheme+"://"+u.Host) + " is not https, which the service demands", Remedy: "use an https:// URL"}
		}},
	},
}

// ToolBase is the base URL of a ToolHandler. Its faults show the scheme and the host
// alone, as the rest may hold a password.
var ToolBase = Purpose{
	blank: Fault{Problem: "is blank", Remedy: "give one like https://tools.example.com/heads"},
	malformed: rule{broken: func(_ string, u *url.URL) bool { return u == nil || !u.IsAbs() || u.Hostname() == "" },
		fault: Fault{Problem: "is not an absolute URL", Remedy: "give one like https://tools.example.com/heads"}},
	all: true,
	rules: []rule{
		{refuse: func(_ string, u *url.URL) Fault {
			switch {
			case isPlain(u):
				return Fault{Problem: fmt.Sprintf("is plain http to %s, which the service does not call", u.Host), Remedy: "use https"}
			case !isHTTP(u):
				return Fault{Problem: fmt.Sprintf("has scheme %s", u.Scheme), Remedy: "use https"}
			}
			return Fault{}
		}},
		{broken: hasUser, fault: Fault{"holds a user name or a password", "use WithPathToken or WithToolAuth", usePathToken}},
		{broken: func(raw string, u *url.URL) bool { return hasQuery(raw, u) || hasFragment(raw, u) },
			fault: Fault{Problem: "has a query or a fragment", Remedy: "leave it out"}},
		{broken: hasSpace, fault: Fault{Problem: "holds a space", Remedy: "take it out"}},
		{broken: func(_ string, u *url.URL) bool { return slices.ContainsFunc(strings.Split(u.Path, "/"), isDots) },
			fault: Fault{Problem: "has a path with . or .. in it", Remedy: "write it out"}},
	},
}

// Base is the base URL of the service, or of access URLs. Plain http is allowed to a
// loopback host, and to any if it is insecure. The faults show neither userinfo nor query,
// and nothing of a text that is no URL, since that can be a token put in the wrong place.
func Base(insecure bool) Purpose {
	p := base
	if insecure {
		p.rules = p.rules[:len(p.rules)-1]
	}
	return p
}

const baseExample = "want an address such as https://api.example.com"

var base = Purpose{
	blank: Fault{Problem: "is blank", Remedy: "give an address such as https://api.example.com"},
	malformed: rule{refuse: func(_ string, u *url.URL) Fault {
		switch {
		case u == nil:
			return Fault{Problem: "can't be parsed as a URL", Remedy: baseExample}
		case u.Host == "" && !isHTTP(u):
			return Fault{Problem: "is not absolute", Remedy: "want https:// and a host"}
		}
		return Fault{}
	}},
	rules: []rule{
		{shown: true, broken: func(_ string, u *url.URL) bool { return !isHTTP(u) }, fault: Fault{Problem: "is neither http nor https", Remedy: "want https:// and a host"}},
		{shown: true, broken: func(_ string, u *url.URL) bool { return u.Hostname() == "" }, fault: Fault{Problem: "has no host", Remedy: baseExample}},
		{shown: true, broken: hasUser, fault: Fault{Problem: "carries a user name or password", Remedy: "take them out, the token is given on its own"}},
		{shown: true, broken: func(raw string, u *url.URL) bool { return hasQuery(raw, u) || strings.Contains(raw, "#") },
			fault: Fault{Problem: "carries a query or fragment", Remedy: "end the address after its path"}},
		{shown: true, broken: hasSpace, fault: Fault{Problem: "holds a space", Remedy: "take it out"}},
		{shown: true, broken: func(_ string, u *url.URL) bool { return isPlain(u) }, // the last, for Base
			fault: Fault{"is plain http, which would show the token to the network", "use https, or WithInsecureHTTP", useInsecureHTTP}},
	},
}

// Access is an access URL. Its path and query have further rules.
var Access = Purpose{
	blank: Fault{"is blank", "give the publicUrl of a head as Heads.Get reads it", useHeadsGet},
	malformed: rule{broken: func(raw string, u *url.URL) bool {
		return u == nil || !isHTTP(u) || u.Hostname() == "" || hasUser(raw, u) || hasSpace(raw, u) ||
			strings.Contains(u.Host, "%") // a zone, which is of one machine
	}, fault: Fault{"is not an absolute https URL", "give the publicUrl of a head as Heads.Get reads it", useHeadsGet}},
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
