package check_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/stretchr/testify/assert"
)

// Every purpose of a URL has its own rules. The first fault is returned, or all.
func TestURLsAreCheckedForTheirPurpose(t *testing.T) {
	const absolute, https, query = "is not an absolute URL", "is not an absolute https URL", "has a query or a fragment"
	const carries, user = `"https://a.example.com/b" carries a query or fragment`, `"[redacted]" carries a user name or password`
	purposes := []check.Purpose{check.Callback, check.ToolBase, check.Base(false), check.Base(true), check.Access}
	for raw, want := range map[string][5]string{ // in the order of the purposes, where $ is the URL
		"https://a.example.com/x": {},
		"http://127.0.0.1:1/b":    {},
		" ":                       {"is blank", "is blank", "is blank", "is blank", "is blank"},
		"a.example.com":           {absolute, absolute, "is not absolute", "is not absolute", https},
		"https://a.example.com:x": {absolute, absolute, "can't be parsed as a URL", "can't be parsed as a URL", https},
		"http://a.example.com": {"$ is not https, which the service demands", "is plain http to a.example.com, which the service does not call",
			"$ is plain http, which would show the token to the network"},
		"ftp://a.example.com": {"$ is not https, which the service demands", "has scheme ftp", "$ is neither http nor https", "$ is neither http nor https", https},
		"https://":            {absolute, absolute, "$ has no host", "$ has no host", https},
		"https://u:hush@a.example.com/b c?k=hush#f": {"holds a space", "holds a user name or a password; " + query + "; holds a space", user, user, https},
		"https://a.example.com/b#f":                 {"carries a fragment, which is never sent", query, carries, carries},
		"https://a.example.com/b?":                  {"", query, carries, carries},
		"https://a.example.com/b?t=YOUR_TOKEN":      {`holds the placeholder "YOUR_TOKEN"`, query, carries, carries},
		"https://a.example.com/../b":                {"", "has a path with . or .. in it"},
		"https://a.example.com/<ORG>/secret":        {`holds the placeholder "<ORG>"`},
		"https://a.example.com/canary/%3CORG%3E":    {`holds the placeholder "<ORG>"`},
		"https://a.example.com/YOUR_ORG":            {`holds the placeholder "YOUR_ORG"`},
		"https://[fe80::1%25eth0]/b":                {4: https},
	} {
		for i, purpose := range purposes {
			var problems []string
			_, faults := check.URL(raw, purpose)
			for _, f := range faults {
				problems = append(problems, f.Problem)
				assert.NotEmpty(t, f.Remedy)
			}
			assert.Equal(t, strings.ReplaceAll(want[i], "$", strconv.Quote(raw)), strings.Join(problems, "; "), "%d: %s", i, raw)
		}
	}
}

func TestHostsOfURLsAreExact(t *testing.T) {
	for problem, raws := range map[string][]string{
		"has no host":                     {"https:a.example.com", "https://:443", "https:///b"},
		"is neither http nor https":       {"//a.example.com"},
		"is not absolute":                 {"/b", "a.example.com:443"},
		"carries a user name or password": {"https://me@a.example.com"},
		"carries a query or fragment":     {"https://a.example.com/#", `https://a.example.com/"?k`},
		"holds a space":                   {"https://a.example.com/b "},
		"is plain http":                   {"http://x.localhost", "http://127.0.0.1.a.example", "http://0.0.0.0"},
		"":                                {"HTTPS://A.example.com", "http://127.9.9.9", "http://[::1]:80", "http://LOCALHOST:8080"},
	} {
		for _, raw := range raws {
			_, faults := check.URL(raw, check.Base(false))
			assert.Len(t, faults, map[bool]int{true: 1}[problem != ""], raw)
			for _, f := range faults {
				assert.Contains(t, f.Problem, problem, raw)
			}
		}
	}
	_, faults := check.URL("https://a.example.com/a/%2e%2E/b", check.ToolBase)
	assert.Len(t, faults, 1, "escaped dots")
}
