package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/console"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vendored has the files of the npm package htm 3.1.1, which contains Preact, and the licences
// of both.
var vendored = map[string]string{
	"standalone.module.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7", // htm/preact/standalone.module.js
	"LICENSE.htm":          "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
	"LICENSE.preact":       "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
}

func TestVendoredFilesAreThoseOfTheirPackages(t *testing.T) {
	files, err := filepath.Glob("vendored/*")
	require.NoError(t, err)
	assert.Len(t, files, len(vendored))
	for name, sum := range vendored {
		text, err := os.ReadFile("vendored/" + name)
		require.NoError(t, err)
		got := sha256.Sum256(text)
		assert.Equal(t, sum, hex.EncodeToString(got[:]), name)
	}
}

// The page draws text of others with templates, which escape it, and loads nothing from elsewhere.
func TestOwnFilesAreSmallAndHoldNoMarkupFromText(t *testing.T) {
	const all, lines, columns = 80 << 10, 300, 120
	// A namespace, and an example of a webhook's URL.
	own := strings.NewReplacer("http://www.w3.org/2000/svg", "", "http://127.0.0.1:8080/events", "")
	total := 0
	files, err := filepath.Glob("assets/*")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		total += len(text)
		rows := strings.Split(string(text), "\n")
		assert.Less(t, len(rows), lines, name)
		for n, row := range rows {
			if filepath.Ext(name) != ".svg" {
				assert.LessOrEqual(t, utf8.RuneCountInString(row), columns, "%s:%d", name, n+1)
			}
		}
		for _, foreign := range []string{"http://", "https://", "innerHTML", "dangerouslySet", "insertAdjacentHTML", "eval(", "style=", "<script>"} {
			assert.NotContains(t, own.Replace(string(text)), foreign, name)
		}
	}
	assert.Less(t, total, all)
}

// The first page is everything that a browser loads for it: the page, and the files that it and its
// modules name.
func TestFirstPageIsSmall(t *testing.T) {
	const all = 120_000
	page := httptest.NewRecorder()
	console.ServePage(page)
	total, seen := 0, map[string]bool{}
	named := regexp.MustCompile(`"(?:\./|/_emulator/assets/)([\w.]+)"`)
	var load func(text string)
	load = func(text string) {
		total += len(text)
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				file := httptest.NewRecorder()
				require.True(t, console.ServeAsset(file, m[1]), m[1])
				assert.NotEmpty(t, file.Header().Get("Content-Type"))
				load(file.Body.String())
			}
		}
	}
	load(page.Body.String())
	assert.Less(t, total, all)
	files, err := filepath.Glob("assets/*")
	require.NoError(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		assert.True(t, seen[name] || name == "index.html", "%s is loaded", name)
	}
	assert.True(t, seen["standalone.module.js"])
}

func TestOnlyFilesOfThePageAreServed(t *testing.T) {
	for _, name := range []string{"", "index.html", "LICENSE.htm", "../console.go", "nothing.js", "../vendored/standalone.module.js"} {
		rec := httptest.NewRecorder()
		assert.False(t, console.ServeAsset(rec, name), name)
		assert.Empty(t, rec.Body.String(), name)
	}
}

func TestPolicyAllowsNothingInlineAndNothingFromElsewhere(t *testing.T) {
	h := http.Header{}
	console.SetSecurityHeaders(h)
	policy := h.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self'")
	assert.NotContains(t, policy, "unsafe")
	assert.NotContains(t, policy, "http")
}
