package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// visitFile opens an address that is not the console's, such as that of a file.
func visitFile(t testing.TB, address string) *tab {
	b := newTab(t)
	b.do(chromedp.Navigate(address))
	return b
}

// A page opened from a file reads a head and changes it if its origin is allowed, and
// otherwise its browser refuses it both.
func TestPageOpenedFromAFileCallsTheOperations(t *testing.T) {
	for _, args := range [][]string{{"-allow-origin", "null"}, nil} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			p := start(t, args...)
			name := filepath.Join(t.TempDir(), "page.html")
			require.NoError(t, os.WriteFile(name, []byte("<!doctype html><title>A page</title>"), 0o600))
			b := visitFile(t, "file://"+name)
			call := func(method, path, body string) string {
				return eval[string](b, fmt.Sprintf(`fetch(%q, {method: %q, body: %s, headers: {Authorization: %q, "Content-Type": "application/json"}})
					.then(async (r) => r.status + " " + await r.text(), () => "refused by the browser")`, p.BaseURL+path, method, body, "Bearer "+p.Token))
			}
			read := call("GET", "/head/"+p.Heads[0], "undefined")
			changed := call("PUT", "/head/update", fmt.Sprintf(`JSON.stringify({id: %q, name: "Bea"})`, p.Heads[0]))
			control := eval[string](b, fmt.Sprintf(`fetch(%q).then((r) => "answered", () => "refused by the browser")`, p.ConsoleURL+"state"))
			assert.Equal(t, "refused by the browser", control, "the control API is for the console's own page")
			name = p.call("GET", "/head/"+p.Heads[0], "")
			if args != nil {
				assert.Contains(t, read, `"name":"Ada"`)
				assert.Equal(t, "200 ", changed)
				assert.Contains(t, name, `"name":"Bea"`)
			} else {
				assert.Equal(t, []string{"refused by the browser", "refused by the browser"}, []string{read, changed})
				assert.Contains(t, name, `"name":"Ada"`)
			}
		})
	}
}

// A name that has been made to resolve to this machine is not admitted, whatever the
// browser takes for the same origin.
func TestReboundNameReadsNothing(t *testing.T) {
	p := start(t)
	b := visitFile(t, "http://"+reboundName+p.ConsoleURL[len("http://127.0.0.1"):])
	assert.Contains(t, eval[string](b, "document.body.innerText"), "call the control API at a loopback address")
	for _, path := range []string{"", "state", "export?keys=true", "heads/" + p.Heads[0] + "/address", "stream"} {
		answer := eval[string](b, fmt.Sprintf(`fetch("/_emulator/%s", {headers: {"Content-Type": "application/json"}}).then(async (r) => r.status + await r.text())`, path))
		assert.Regexp(t, "^403", answer, path)
		assert.NotContains(t, answer, p.Heads[0], path)
	}
	assert.Equal(t, 403, eval[int](b, `fetch("/_emulator/reset", {method: "POST", headers: {"Content-Type": "application/json"}}).then((r) => r.status)`))
}

// The policy of the page is enforced: a script that is written into it does not run.
func TestPolicyOfThePageStopsInjectedScripts(t *testing.T) {
	b := visitFile(t, start(t).ConsoleURL)
	outcome := eval[[]string](b, `new Promise((done) => {
		const blocked = [];
		document.addEventListener("securitypolicyviolation", (e) => {
			blocked.push(e.effectiveDirective);
			if (blocked.length === 5) done([...blocked.sort(), typeof window.hacked]);
		});
		const add = (name, fields) => document.body.appendChild(Object.assign(document.createElement(name), fields));
		add("script", {textContent: "window.hacked = 1"});
		const button = add("button");
		button.setAttribute("onclick", "window.hacked = 1");
		button.click();
		add("img", {src: "data:image/gif;base64,R0lGODlhAQABAAAAACw="});
		add("style", {textContent: "body { color: red }"});
		add("iframe", {src: "/_emulator/state"});
	})`)
	assert.Equal(t, []string{"frame-src", "img-src", "script-src-attr", "script-src-elem", "style-src-elem", "undefined"}, outcome)
	assert.Equal(t, "refused", eval[string](b, `fetch("https://attacker.example.test/").then(() => "sent", () => "refused")`))
}
