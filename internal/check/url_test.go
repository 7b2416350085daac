package check_test

import (
	"testing"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/stretchr/testify/assert"
)

// Every purpose of a URL has its own rules. The first fault is returned, or all.
func TestURLsAreCheckedForTheirPurpose(t *testing.T) {
	purposes := map[string]check.Purpose{
		"callback": check.Callback, "tools": check.ToolBase, "base": check.Base, "insecure base": check.InsecureBase, "access": check.Access,
	}
	for raw, want := range map[string]map[string][]string{
		"https://a.example.com/x": {},
		" ":                       {"callback": {"is blank"}, "tools": {"is blank"}, "base": {"is blank"}, "insecure base": {"is blank"}, "access": {"is blank"}},
		"a.example.com": {"callback": {"is not an absolute URL"}, "tools": {"is not an absolute URL"}, "base": {"is not absolute"},
			"insecure base": {"is not absolute"}, "access": {"is not an absolute https URL"}},
		"https://a.example.com:x": {"callback": {"is not an absolute URL"}, "tools": {"is not an absolute URL"}, "base": {"can't be parsed as a URL"},
			"insecure base": {"can't be parsed as a URL"}, "access": {"is not an absolute https URL"}},
		"http://a.example.com": {"callback": {`"http://a.example.com" is not https, which the service demands`}, "tools": {"is plain http to a.example.com, which the service does not call"},
			"base": {`"http://a.example.com" is plain http, which would show the token to the network`}},
		"ftp://a.example.com": {"callback": {`"ftp://a.example.com" is not https, which the service demands`}, "tools": {"has scheme ftp"},
			"base": {`"ftp://a.example.com" is neither http nor https`}, "insecure base": {`"ftp://a.example.com" is neither http nor https`}, "access": {"is not an absolute https URL"}},
		"https://": {"callback": {"is not an absolute URL"}, "tools": {"is not an absolute URL"}, "base": {`"https://" has no host`},
			"insecure base": {`"https://" has no host`}, "access": {"is not an absolute https URL"}},
		"https://u:hush@a.example.com/b c?k=hush#f": {
			"callback":      {"holds a space"},
			"tools":         {"holds a user name or a password", "has a query or a fragment", "holds a space"},
			"base":          {`"[redacted]" carries a user name or password`},
			"insecure base": {`"[redacted]" carries a user name or password`},
			"access":        {"is not an absolute https URL"}},
		"https://a.example.com/b#f": {"callback": {"carries a fragment, which is never sent"}, "tools": {"has a query or a fragment"},
			"base": {`"https://a.example.com/b" carries a query or fragment`}, "insecure base": {`"https://a.example.com/b" carries a query or fragment`}},
		"https://a.example.com/b?": {"tools": {"has a query or a fragment"},
			"base": {`"https://a.example.com/b" carries a query or fragment`}, "insecure base": {`"https://a.example.com/b" carries a query or fragment`}},
		"https://a.example.com/../b":             {"tools": {"has a path with . or .. in it"}},
		"https://a.example.com/<ORG>/secret":     {"callback": {`holds the placeholder "<ORG>"`}},
		"https://a.example.com/canary/%3CORG%3E": {"callback": {`holds the placeholder "<ORG>"`}},
		"https://a.example.com/YOUR_ORG":         {"callback": {`holds the placeholder "YOUR_ORG"`}},
		"https://a.example.com/b?t=YOUR_TOKEN": {"callback": {`holds the placeholder "YOUR_TOKEN"`}, "tools": {"has a query or a fragment"},
			"base": {`"https://a.example.com/b" carries a query or fragment`}, "insecure base": {`"https://a.example.com/b" carries a query or fragment`}},
		"https://[fe80::1%25eth0]/b": {"access": {"is not an absolute https URL"}},
		"http://127.0.0.1:1/b":       {},
	} {
		for name, purpose := range purposes {
			var problems []string
			_, faults := check.URL(raw, purpose)
			for _, f := range faults {
				problems = append(problems, f.Problem)
				assert.NotEmpty(t, f.Remedy)
			}
			assert.Equal(t, want[name], problems, "%s: %s", name, raw)
		}
	}
}

func TestHostsOfURLsAreExact(t *testing.T) {
	for raw, problem := range map[string]string{
		"https:a.example.com":        "has no host",
		"https://:443":               "has no host",
		"https:///b":                 "has no host",
		"//a.example.com":            "is neither http nor https",
		"/b":                         "is not absolute",
		"a.example.com:443":          "is not absolute",
		"https://me@a.example.com":   "carries a user name or password",
		"https://a.example.com/#":    "carries a query or fragment",
		`https://a.example.com/"?k`:  "carries a query or fragment",
		"https://a.example.com/b ":   "holds a space",
		"http://x.localhost":         "is plain http",
		"http://127.0.0.1.a.example": "is plain http",
		"http://0.0.0.0":             "is plain http",
		"HTTPS://a.example.com":      "",
		"http://127.9.9.9":           "",
		"http://[::1]:80":            "",
		"http://LOCALHOST:8080":      "",
	} {
		_, faults := check.URL(raw, check.Base)
		if problem == "" {
			assert.Empty(t, faults, raw)
			continue
		}
		if assert.Len(t, faults, 1, raw) {
			assert.Contains(t, faults[0].Problem, problem, raw)
		}
	}
	_, faults := check.URL("https://a.example.com/a/%2e%2E/b", check.ToolBase)
	assert.Len(t, faults, 1, "escaped dots")
}
