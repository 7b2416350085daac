package addresses

import (
	"bytes"
	"crypto/sha256"
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

// search returns what rewrite would make of a text, and what it would replace.
func search(t testing.TB, r *Rewriter, text string) (after string, found []Occurrence) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var out bytes.Buffer
	found, err := r.Search(t.Context(), file, &out)
	require.NoError(t, err)
	return out.String(), found
}

func TestAccessURLsAreFoundInEveryForm(t *testing.T) {
	r := New()
	require.NoError(t, r.Add(oldURL, newURL))
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
	} {
		after, _ := search(t, r, row.before)
		assert.Equal(t, row.after, after, name)
		_, again := search(t, r, after)
		assert.Empty(t, again, "a second run changes nothing: %s", name)
	}
	for _, text := range []string{ // a longer id, a longer host, another port, scheme, path, organization, a part
		oldURL + "1", oldURL + "-2", oldURL + ".html", oldURL + "%31", oldURL + "é", "https://my-chat.example.test/MyOrg-1/li-28379",
		"https://www.chat.example.test/MyOrg-1/li-28379", "https://chat.example.test.evil.com/MyOrg-1/li-28379",
		"https://chat.example.test:8443/MyOrg-1/li-28379", "ftp://chat.example.test/MyOrg-1/li-28379", "xhttps://chat.example.test/MyOrg-1/li-28379",
		"https://proxy.example.com//chat.example.test/MyOrg-1/li-28379", "https://chat.example.test/x/MyOrg-1/li-28379",
		"https://chat.example.test/MyOrg-12/li-28379", "https://chat.example.test/myorg-1/LI-28379", "chat.example.test/MyOrg-1/li-28379",
		"https://chat.example.test/MyOrg-1",
	} {
		after, found := search(t, r, text)
		assert.Equal(t, text, after)
		assert.Empty(t, found)
	}
}

func TestAccessURLsKeepPortsPathsAndEscapes(t *testing.T) {
	r := New()
	require.NoError(t, r.Add("http://127.0.0.1:8080/a/B%C3%BCro%20x/li-1", "https://new.example.com:444/B%C3%BCro%20x/li-1"))
	require.NoError(t, r.Add("http://127.0.0.1:8080/li-1/x", "http://127.0.0.1:8080/v2/li-1/x"))
	for before, after := range map[string]string{
		"http://127.0.0.1:8080/a/B%C3%BCro%20x/li-1?k":                     "https://new.example.com:444/B%C3%BCro%20x/li-1?k",
		"http://127.0.0.1:8080/a/Büro%20x/li-1?k":                          "https://new.example.com:444/B%C3%BCro%20x/li-1?k",
		"u=http%3A%2F%2F127.0.0.1%3A8080%2Fa%2FB%25C3%25BCro%2520x%2Fli-1": "u=https%3A%2F%2Fnew.example.com%3A444%2FB%25C3%25BCro%2520x%2Fli-1",
		"http://127.0.0.1:8080/li-1/x":                                     "http://127.0.0.1:8080/v2/li-1/x",
	} {
		got, _ := search(t, r, before)
		assert.Equal(t, after, got)
	}
}

func TestAnAccessURLIsFoundWhereverAWindowEnds(t *testing.T) {
	r := New()
	require.NoError(t, r.Add(oldURL, newURL))
	escaped := "https%253A%252F%252Fchat.example.test%252FMyOrg-1%252Fli-28379"
	limit := lookBack + window // of the first window
	for _, offset := range []int{limit - 150, limit - 20, limit - 3, limit - 1, limit, limit + 1, limit + overlap - 30, limit + overlap, 2*window + lookBack} {
		for _, shift := range []int{-21, 0, 7} {
			before := strings.Repeat("ä\n", (offset+shift)/3)
			tail := strings.Repeat("y", 3*overlap)
			after, found := search(t, r, before+oldURL+" "+oldURL+"1 "+escaped+"&"+oldURL+" "+tail)
			want := before + newURL + " " + oldURL + "1 " + strings.Replace(escaped, "chat", "stream", 1) + "&" + newURL + " " + tail
			require.Equal(t, sha256.Sum256([]byte(want)), sha256.Sum256([]byte(after)), "offset %d", offset+shift)
			require.Len(t, found, 3)
			require.Equal(t, strings.Count(before, "\n")+1, found[0].Line)
		}
	}
}
