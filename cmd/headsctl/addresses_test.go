package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	oldURL = "https://chat.example.test/MyOrg-1/li-28379"
	newURL = "https://stream.example.test/MyOrg-1/li-28379"
)

// moves is a report with moves from and to pairs of access URLs.
func moves(t testing.TB, pairs ...string) string {
	t.Helper()
	list := []object{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, object{"head_id": someID, "label": "", "old": pairs[i], "new": pairs[i+1]})
	}
	text, err := json.Marshal(object{"moves": list})
	require.NoError(t, err)
	return string(text)
}

// search returns what rewrite would make of a file, and what it would replace.
func search(t testing.TB, r *rewriter, file string) (after string, found []occurrence) {
	t.Helper()
	var out bytes.Buffer
	found, err := r.search(t.Context(), file, &out)
	require.NoError(t, err)
	return out.String(), found
}

func TestAccessURLsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ before, after string }{
		"plain":                  {"<a href='" + oldURL + "'>", "<a href='" + newURL + "'>"},
		"with the key":           {oldURL + "?api_key=abc", newURL + "?api_key=abc"},
		"end of a sentence":      {"See " + oldURL + ".", "See " + newURL + "."},
		"trailing slash":         {oldURL + "/", newURL + "/"},
		"http":                   {"http://chat.example.test/MyOrg-1/li-28379", newURL},
		"host in capitals":       {"HTTPS://Chat.Example.TEST/MyOrg-1/li-28379", newURL},
		"without a scheme":       {`src="//chat.example.test/MyOrg-1/li-28379"`, `src="//stream.example.test/MyOrg-1/li-28379"`},
		"CSS":                    {"url(//chat.example.test/MyOrg-1/li-28379)", "url(//stream.example.test/MyOrg-1/li-28379)"},
		"JSON":                   {`"https:\/\/chat.example.test\/MyOrg-1\/li-28379?api_key=a"`, `"https:\/\/stream.example.test\/MyOrg-1\/li-28379?api_key=a"`},
		"JSON in JSON":           {`https:\\\/\\\/chat.example.test\\\/MyOrg-1\\\/li-28379\\\"`, `https:\\\/\\\/stream.example.test\\\/MyOrg-1\\\/li-28379\\\"`},
		"JSON code points":       {`https:\u002f\u002fchat.example.test\u002fMyOrg-1\u002fli-28379\u003fapi_key`, `https:\u002f\u002fstream.example.test\u002fMyOrg-1\u002fli-28379\u003fapi_key`},
		"after an escape":        {`"a\nhttps://chat.example.test/MyOrg-1/li-28379\n"`, `"a\nhttps://stream.example.test/MyOrg-1/li-28379\n"`},
		"HTML":                   {"https:&#x2F;&#x2F;chat.example.test&#x2F;MyOrg-1&#x2F;li-28379?api_key=a&amp;b=c", "https:&#x2F;&#x2F;stream.example.test&#x2F;MyOrg-1&#x2F;li-28379?api_key=a&amp;b=c"},
		"HTML, decimal":          {"https&#58;&#47;&#47;chat.example.test&#47;MyOrg-1&#47;li-28379&quot;", "https&#58;&#47;&#47;stream.example.test&#47;MyOrg-1&#47;li-28379&quot;"},
		"in a query":             {"?next=https%3A%2F%2Fchat.example.test%2FMyOrg-1%2Fli-28379%3Fapi_key%3Da", "?next=https%3A%2F%2Fstream.example.test%2FMyOrg-1%2Fli-28379%3Fapi_key%3Da"},
		"in a query, lower case": {"next%3dhttps%3a%2f%2fchat.example.test%2fMyOrg-1%2fli-28379", "next%3dhttps%3a%2f%2fstream.example.test%2fMyOrg-1%2fli-28379"},
		"in a query of a query":  {"https%253A%252F%252Fchat.example.test%252FMyOrg-1%252Fli-28379%253Fa", "https%253A%252F%252Fstream.example.test%252FMyOrg-1%252Fli-28379%253Fa"},
		"two in a line":          {oldURL + " " + oldURL, newURL + " " + newURL},
		"below it":               {oldURL + "/embed", newURL + "/embed"},
		"longer id":              {oldURL + "1", ""},
		"longer id, dash":        {oldURL + "-2", ""},
		"longer id, dot":         {oldURL + ".html", ""},
		"longer id, escaped":     {oldURL + "%31", ""},
		"longer id, letter":      {oldURL + "é", ""},
		"longer host, left":      {"https://my-chat.example.test/MyOrg-1/li-28379", ""},
		"longer host, dot":       {"https://www.chat.example.test/MyOrg-1/li-28379", ""},
		"longer host, right":     {"https://chat.example.test.evil.com/MyOrg-1/li-28379", ""},
		"another port":           {"https://chat.example.test:8443/MyOrg-1/li-28379", ""},
		"another scheme":         {"ftp://chat.example.test/MyOrg-1/li-28379", ""},
		"scheme in a word":       {"xhttps://chat.example.test/MyOrg-1/li-28379", ""},
		"within a path":          {"https://proxy.example.com//chat.example.test/MyOrg-1/li-28379", ""},
		"below another path":     {"https://chat.example.test/x/MyOrg-1/li-28379", ""},
		"another organization":   {"https://chat.example.test/MyOrg-12/li-28379", ""},
		"other case of the id":   {"https://chat.example.test/myorg-1/LI-28379", ""},
		"no slashes":             {"chat.example.test/MyOrg-1/li-28379", ""},
		"cut off":                {"https://chat.example.test/MyOrg-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rewriter{hosts: map[string]*oldHost{}}
			require.NoError(t, r.add(oldURL, newURL))
			file := filepath.Join(t.TempDir(), "page")
			require.NoError(t, os.WriteFile(file, []byte(row.before), 0o600))
			after, found := search(t, r, file)
			if row.after == "" {
				assert.Equal(t, row.before, after)
				assert.Empty(t, found)
				return
			}
			assert.Equal(t, row.after, after)
			require.NoError(t, os.WriteFile(file, []byte(after), 0o600))
			_, again := search(t, r, file)
			assert.Empty(t, again, "a second run changes nothing")
		})
	}
}

func TestAccessURLsKeepPortsPathsAndEscapes(t *testing.T) {
	t.Parallel()
	r := &rewriter{hosts: map[string]*oldHost{}}
	require.NoError(t, r.add("http://127.0.0.1:8080/a/B%C3%BCro%20x/li-1", "https://new.example.com:444/B%C3%BCro%20x/li-1"))
	require.NoError(t, r.add("http://127.0.0.1:8080/li-1/x", "http://127.0.0.1:8080/v2/li-1/x"))
	for before, after := range map[string]string{
		"http://127.0.0.1:8080/a/B%C3%BCro%20x/li-1?k":                     "https://new.example.com:444/B%C3%BCro%20x/li-1?k",
		"http://127.0.0.1:8080/a/Büro%20x/li-1?k":                          "https://new.example.com:444/B%C3%BCro%20x/li-1?k",
		"u=http%3A%2F%2F127.0.0.1%3A8080%2Fa%2FB%25C3%25BCro%2520x%2Fli-1": "u=https%3A%2F%2Fnew.example.com%3A444%2FB%25C3%25BCro%2520x%2Fli-1",
		"http://127.0.0.1:8080/li-1/x":                                     "http://127.0.0.1:8080/v2/li-1/x",
	} {
		file := filepath.Join(t.TempDir(), "page")
		require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
		got, _ := search(t, r, file)
		assert.Equal(t, after, got)
	}
}

func TestAFolderIsRewrittenAndBackedUp(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	large := strings.Repeat(strings.Repeat("x", 99)+"\n", 500_000) + oldURL + "\n" // 50 MB
	files := map[string]string{
		"site/index.html":          "<p>\n<a href=\"" + oldURL + "?api_key=s3cret&amp;x=1\">\n",
		"site/app.js":              "go('//chat.example.test/MyOrg-1/li-28379')",
		"site/data/config.json":    `{"u":"https:\/\/chat.example.test\/MyOrg-1\/li-28379"}`,
		"site/README.md":           "<" + oldURL + ">\r\n" + oldURL + "0\r\n",
		"site/latin1.txt":          "B\xfcro " + oldURL,
		"site/large.log":           large,
		"site/binary":              oldURL + "\x00",
		"site/.git/config":         oldURL,
		"site/node_modules/a/b.js": oldURL,
		"site/old.html.bak":        oldURL,
		"site/old.html.bak.3":      oldURL,
		"site/empty":               "",
		"site/app.js.bak":          "an earlier backup",
		"elsewhere/linked.html":    oldURL,
		"elsewhere/untouched.html": "nothing",
	}
	for name, text := range files {
		c.write(name, text)
	}
	require.NoError(t, os.Symlink("../elsewhere/linked.html", filepath.Join(c.dir, "site", "link.html")))
	require.NoError(t, os.Symlink("../elsewhere", filepath.Join(c.dir, "site", "folder")))
	require.NoError(t, os.Chmod(filepath.Join(c.dir, "site", "app.js"), 0o754))

	want := []string{
		"site/README.md:1: " + oldURL + " → " + newURL, "site/app.js:1: " + oldURL + " → " + newURL,
		"site/data/config.json:1: " + oldURL + " → " + newURL, "site/index.html:2: " + oldURL + " → " + newURL,
		"site/large.log:500001: " + oldURL + " → " + newURL, "site/latin1.txt:1: " + oldURL + " → " + newURL,
	}
	assert.Equal(t, want, lines(c.ok("addresses", "scan", "--moves", "report.json", "site")))
	assert.Equal(t, 3, c.run("addresses", "scan", "--moves", "report.json", "--exit-code", "site", "site/app.js").code)
	asJSON := parse[[]occurrence](t, c.ok("addresses", "scan", "--moves", "report.json", "-o", "json", "site/index.html"))
	assert.Equal(t, []occurrence{{"site/index.html", 2, oldURL, newURL}}, asJSON)

	want = append(want, "6 files, 6 addresses")
	assert.Equal(t, want, lines(c.ok("addresses", "rewrite", "--moves", "report.json", "site")), "the lines of scan, and totals")
	assert.Equal(t, "<p>\n<a href=\""+newURL+"?api_key=s3cret&amp;x=1\">\n", c.read("site/index.html"))
	assert.Equal(t, "<"+newURL+">\r\n"+oldURL+"0\r\n", c.read("site/README.md"))
	assert.Equal(t, "B\xfcro "+newURL, c.read("site/latin1.txt"))
	assert.True(t, bytes.HasSuffix([]byte(c.read("site/large.log")), []byte(newURL+"\n")))
	assert.Len(t, c.read("site/large.log"), len(large)+len(newURL)-len(oldURL))
	for _, name := range []string{"site/index.html", "site/README.md", "site/latin1.txt", "site/large.log", "site/data/config.json"} {
		assert.Equal(t, sha256.Sum256([]byte(files[name])), sha256.Sum256([]byte(c.read(name+".bak"))), name)
	}
	assert.Equal(t, "an earlier backup", c.read("site/app.js.bak"))
	assert.Equal(t, files["site/app.js"], c.read("site/app.js.bak.2"))
	for _, name := range []string{"site/app.js", "site/app.js.bak.2"} {
		info, err := os.Stat(filepath.Join(c.dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o754), info.Mode(), name)
	}
	for _, name := range []string{"site/binary", "site/.git/config", "site/node_modules/a/b.js", "site/old.html.bak", "site/old.html.bak.3", "elsewhere/linked.html"} {
		assert.Equal(t, files[name], c.read(name), "%s is skipped", name)
	}

	before := tree(t, c.dir)
	assert.Equal(t, "0 files, 0 addresses\n", c.ok("addresses", "rewrite", "--moves", "report.json", "site"))
	assert.Equal(t, before, tree(t, c.dir), "a second run changes nothing")
	assert.Equal(t, 0, c.run("addresses", "scan", "--moves", "report.json", "--exit-code", "site").code)
}

// tree returns names and sizes of all files.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(path, info.Mode(), info.ModTime()))
		return nil
	}))
	return all
}

func TestNoBackupKeepsNone(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	c.write("page.html", oldURL)
	c.ok("addresses", "rewrite", "--moves", "report.json", "--no-backup", "page.html")
	assert.Equal(t, newURL, c.read("page.html"))
	assert.NoFileExists(t, filepath.Join(c.dir, "page.html.bak"))
}

func TestAPathThatIsASymbolicLinkIsFollowed(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	c.write("release/page.html", oldURL)
	require.NoError(t, os.Symlink("release", filepath.Join(c.dir, "current")))
	assert.Equal(t, "current/page.html:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", c.ok("addresses", "rewrite", "--moves", "report.json", "current"))
	assert.Equal(t, newURL, c.read("release/page.html"))
}

func TestAFileThatCantBeWrittenDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	r := &rewriter{a: newApp(os.Stdin, os.Stdout, os.Stderr, nil), hosts: map[string]*oldHost{}}
	null := openFull(t)
	r.a.stderr = newOutput(null)
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	var visited []string
	err := r.walk(t.Context(), []string{dir}, func(file string) error {
		visited = append(visited, filepath.Base(file))
		return os.ErrPermission
	})
	assert.Equal(t, []string{"a", "b", "c"}, visited)
	assert.Equal(t, exitFailed, r.a.exitCode(err))
}

func TestMovesFromStdinAndNoMoves(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("page.html", oldURL)
	r := c.runWith(moves(t, oldURL, newURL), "addresses", "scan", "--moves", "-", "page.html")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stdout, "page.html:1: ")
	r = c.runWith(`{"moves":[]}`, "addresses", "scan", "--moves", "-", "-o", "json", "page.html")
	assert.Equal(t, result{0, "[]\n", ""}, r)
}
