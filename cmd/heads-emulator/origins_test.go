package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const preflight = "Access-Control-Request-Method: PUT"

func TestPagesOfAnAllowedOriginCallTheOperations(t *testing.T) {
	const page = "http://localhost:3000"
	p := start(t, "-allow-origin", "https://other.example.test", "-allow-origin", page)
	ans := p.send(p.request("OPTIONS", "/head/update", "", "Origin: "+page, preflight, "Access-Control-Request-Headers: authorization,content-type"))
	assert.Equal(t, 204, ans.status)
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, ans.header.Get("Access-Control-Allow-Methods"), "PUT")
	assert.Equal(t, "Authorization, Content-Type", ans.header.Get("Access-Control-Allow-Headers"))
	assert.Equal(t, "Origin", ans.header.Get("Vary"))
	assert.Empty(t, ans.header.Get("Access-Control-Allow-Credentials"))

	get := func(origin, token string) answer {
		return p.send(p.request("GET", "/head/"+p.Heads[0], "", "Origin: "+origin, "Authorization: Bearer "+token))
	}
	ans = get(page, p.Token)
	ans.ok(t, nil)
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, ans.header.Get("Access-Control-Expose-Headers"), "Retry-After")
	ans = get(page, "wrong")
	ans.refused(t, 401, "Bearer")
	assert.Equal(t, page, ans.header.Get("Access-Control-Allow-Origin"), "the page can read why")

	for _, origin := range []string{"https://attacker.example.test", "http://localhost:3001", "null", ""} {
		p.send(p.request("OPTIONS", "/head/update", "", "Origin: "+origin, preflight)).refused(t, 401, "Bearer")
		ans := get(origin, p.Token)
		assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"), origin)
		assert.Equal(t, "Origin", ans.header.Get("Vary"))
	}
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		ans := p.send(p.request(method, controlPrefix+"reset", "", "Origin: "+page, "Sec-Fetch-Site: same-site"))
		ans.refused(t, 403, "other sites")
		assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"))
	}
}

// A browser sends null as the origin of a page opened from a file.
func TestPagesOpenedFromAFileAreAdmittedWithNull(t *testing.T) {
	p := start(t, "-allow-origin", "null")
	ans := p.send(p.request("OPTIONS", "/head/update", "", "Origin: null", preflight))
	assert.Equal(t, []any{204, "null"}, []any{ans.status, ans.header.Get("Access-Control-Allow-Origin")})
	for origin, allowed := range map[string]string{"null": "null", "http://localhost:3000": "", "": ""} {
		ans := p.send(p.request("GET", "/head/"+p.Heads[0], "", "Origin: "+origin, "Authorization: Bearer "+p.Token))
		assert.Equal(t, allowed, ans.header.Get("Access-Control-Allow-Origin"), origin)
	}
	p.send(p.request("POST", controlPrefix+"reset", "", "Origin: null")).refused(t, 403, "other sites")
}

func TestNoOriginIsAllowedByDefault(t *testing.T) {
	p := start(t)
	ans := p.send(p.request("OPTIONS", "/head/update", "", "Origin: http://localhost:3000", preflight))
	ans.refused(t, 401, "Bearer")
	assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"))
}
