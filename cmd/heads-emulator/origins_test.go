package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPagesOfAnAllowedOriginCallTheOperations(t *testing.T) {
	const page = "http://localhost:3000"
	p := start(t, "-allow-origin", "https://other.example.test", "-allow-origin", page)
	preflight := func(path, origin string) answer {
		req := p.request("OPTIONS", path, "")
		req.Header = http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"PUT"}, "Access-Control-Request-Headers": {"authorization,content-type"}}
		return p.send(req)
	}
	ans := preflight("/head/update", page)
	assert.Equal(t, 204, ans.status)
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, ans.header.Get("Access-Control-Allow-Methods"), "PUT")
	assert.Equal(t, "Authorization, Content-Type", ans.header.Get("Access-Control-Allow-Headers"))
	assert.Equal(t, "Origin", ans.header.Get("Vary"))
	assert.Empty(t, ans.header.Get("Access-Control-Allow-Credentials"))

	get := func(origin, token string) answer {
		req := p.request("GET", "/head/"+p.Heads[0], "")
		req.Header.Set("Origin", origin)
		req.Header.Set("Authorization", "Bearer "+token)
		return p.send(req)
	}
	ans = get(page, p.Token)
	ans.ok(t, nil)
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, ans.header.Get("Access-Control-Expose-Headers"), "Retry-After")
	ans = get(page, "wrong")
	ans.refused(t, 401, "Bearer")
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"), "the page can read why")

	for _, origin := range []string{"https://attacker.example.test", "http://localhost:3001", "null", ""} {
		assert.Equal(t, 401, preflight("/head/update", origin).status, origin)
		ans := get(origin, p.Token)
		assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"), origin)
		assert.Equal(t, "Origin", ans.header.Get("Vary"))
	}
}

// A browser sends null as the origin of a page opened from a file.
func TestPagesOpenedFromAFileAreAdmittedWithNull(t *testing.T) {
	p := start(t, "-allow-origin", "null")
	preflight := p.request("OPTIONS", "/head/update", "")
	preflight.Header = http.Header{"Origin": {"null"}, "Access-Control-Request-Method": {"PUT"}, "Access-Control-Request-Headers": {"authorization"}}
	ans := p.send(preflight)
	assert.Equal(t, []any{204, "null"}, []any{ans.status, ans.header.Get("Access-Control-Allow-Origin")})
	for origin, allowed := range map[string]string{"null": "null", "http://localhost:3000": "", "": ""} {
		req := p.request("GET", "/head/"+p.Heads[0], "")
		req.Header.Set("Origin", origin)
		req.Header.Set("Authorization", "Bearer "+p.Token)
		assert.Equal(t, allowed, p.send(req).header.Get("Access-Control-Allow-Origin"), origin)
	}
	req := p.request("POST", controlPrefix+"reset", "")
	req.Header.Set("Origin", "null")
	p.send(req).refused(t, 403, "other sites")
}

func TestAllowedOriginsStayOutOfTheControlAPI(t *testing.T) {
	const page = "http://localhost:3000"
	p := start(t, "-allow-origin", page)
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		req := p.request(method, controlPrefix+"reset", "")
		req.Header.Set("Origin", page)
		req.Header.Set("Sec-Fetch-Site", "same-site")
		ans := p.send(req)
		ans.refused(t, 403, "other sites")
		assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"))
	}
}

func TestNoOriginIsAllowedByDefault(t *testing.T) {
	p := start(t)
	req := p.request("OPTIONS", "/head/update", "")
	req.Header = http.Header{"Origin": {"http://localhost:3000"}, "Access-Control-Request-Method": {"PUT"}}
	ans := p.send(req)
	ans.refused(t, 401, "Bearer")
	assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"))
}
