package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/addresses"
)

const (
	oldURL = "https://chat.example.test/MyOrg-1/li-28379"
	newURL = "https://stream.example.test/MyOrg-1/li-28379"
)

// moves is a report that moves oldURL to newURL.
const moves = `{"moves":[{"head_id":"` + someID + `","label":"","old":"` + oldURL + `","new":"` + newURL + `"}]}`

func moving(t testing.TB) *terminal {
	c := newTerminal(t)
	c.write("report.json", moves)
	return c
}

func (c *terminal) rewrite(args ...string) string {
	c.t.Helper()
	return c.ok(append([]string{"addresses", "rewrite", "--moves", "report.json"}, args...)...)
}

func (c *terminal) scan(code int, args ...string) string {
	c.t.Helper()
	return c.ends(code, append([]string{"addresses", "scan", "--moves", "report.json"}, args...)...).stdout
}

func TestAFolderIsRewrittenAndBackedUp(t *testing.T) {
	c := moving(t)
	large := strings.Repeat(strings.Repeat("x", 99)+"\n", 500_000) + oldURL + "\n" // 50 MB
	files := map[string]string{
		"site/index.html": "<p>\n<a href=\"" + oldURL + "?api_key=s3cret&amp;x=1\">\n", "site/app.js": "go('//chat.example.test/MyOrg-1/li-28379')",
		"site/data/config.json": `{"u":"https:\/\/chat.example.test\/MyOrg-1\/li-28379"}`, "site/README.md": "<" + oldURL + ">\r\n" + oldURL + "0\r\n",
		"site/latin1.txt": "B\xfcro " + oldURL, "site/large.log": large, "site/binary": oldURL + "\x00", "site/.git/config": oldURL,
		"site/node_modules/a/b.js": oldURL, "site/old.html.bak": oldURL, "site/old.html.bak.3": oldURL, "site/empty": "",
		"site/app.js.bak": "an earlier backup", "elsewhere/linked.html": oldURL, "elsewhere/untouched.html": "nothing",
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
	assert.Equal(t, want, lines(c.scan(0, "site")))
	c.scan(3, "--exit-code", "site", "site/app.js")
	assert.Equal(t, []addresses.Occurrence{{File: "site/index.html", Line: 2, Old: oldURL, New: newURL}},
		parse[[]addresses.Occurrence](t, c.scan(0, "-o", "json", "site/index.html")))
	want = append(want, "6 files, 6 addresses")
	assert.Equal(t, want, lines(c.rewrite("site")), "the lines of scan, and totals")
	assert.Equal(t, "<p>\n<a href=\""+newURL+"?api_key=s3cret&amp;x=1\">\n", c.read("site/index.html"))
	assert.Equal(t, "<"+newURL+">\r\n"+oldURL+"0\r\n", c.read("site/README.md"))
	assert.Equal(t, "B\xfcro "+newURL, c.read("site/latin1.txt"))
	assert.Equal(t, strings.ReplaceAll(large, oldURL, newURL), c.read("site/large.log"))
	for _, name := range []string{"site/index.html", "site/README.md", "site/latin1.txt", "site/large.log", "site/data/config.json"} {
		assert.Equal(t, files[name], c.read(name+".bak"), name)
	}
	assert.Equal(t, "an earlier backup", c.read("site/app.js.bak"))
	assert.Equal(t, files["site/app.js"], c.read("site/app.js.bak.2"))
	for _, name := range []string{"site/app.js", "site/app.js.bak.2"} {
		assert.Equal(t, os.FileMode(0o754), need(os.Stat(filepath.Join(c.dir, name)))(t).Mode(), name)
	}
	for _, name := range []string{"site/binary", "site/.git/config", "site/node_modules/a/b.js", "site/old.html.bak", "site/old.html.bak.3", "elsewhere/linked.html"} {
		assert.Equal(t, files[name], c.read(name), "%s is skipped", name)
	}

	before := tree(t, c.dir)
	assert.Equal(t, "0 files, 0 addresses\n", c.rewrite("site"))
	assert.Equal(t, before, tree(t, c.dir), "a second run changes nothing")
	c.scan(0, "--exit-code", "site")
}

// tree returns the names, modes and times of all files.
func tree(t testing.TB, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info := need(entry.Info())(t)
		all = append(all, fmt.Sprint(path, " ", info.Mode(), " ", info.ModTime()))
		return nil
	}))
	return all
}

func TestAPathThatIsASymbolicLinkIsFollowed(t *testing.T) {
	c := moving(t)
	c.write("release/page.html", oldURL)
	require.NoError(t, os.Symlink("release", filepath.Join(c.dir, "current")))
	assert.Equal(t, "current/page.html:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", c.rewrite("--no-backup", "current"))
	assert.Equal(t, newURL, c.read("release/page.html"))
	assert.Equal(t, []string{"page.html"}, names(t, filepath.Join(c.dir, "release")), "no backup")
}

func TestAFileThatCantBeWrittenDoesNotStopTheOthers(t *testing.T) {
	a, c := newApp(os.Stdin, os.Stdout, need(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t), nil), newTerminal(t)
	c.write("a", "", "b", "", "c", "")
	var visited []string
	err := a.walk(t.Context(), addresses.New(), []string{c.dir}, func(file string) error {
		visited = append(visited, filepath.Base(file))
		return os.ErrPermission
	})
	assert.Equal(t, []string{"a", "b", "c"}, visited)
	assert.Equal(t, exitFailed, a.exitCode(err))
}

func TestMovesFromStdinAndNoMoves(t *testing.T) {
	c := newTerminal(t)
	c.write("page.html", oldURL)
	assert.Equal(t, result{0, "page.html:1: " + oldURL + " → " + newURL + "\n", ""}, c.runWith(moves, "addresses", "scan", "--moves", "-", "page.html"))
	assert.Equal(t, result{0, "[]\n", ""}, c.runWith(`{"moves":[]}`, "addresses", "scan", "--moves", "-", "-o", "json", "page.html"))
}

func asUTF16(order binary.ByteOrder, text string) string {
	out, _ := binary.Append(nil, order, utf16.Encode([]rune(text)))
	return string(out)
}

func TestTextsInUTF16AreRewrittenOrNamed(t *testing.T) {
	c := moving(t)
	long := strings.Repeat("Grüße 👋 世界\r\n", 40_000) // several pieces, with pairs of units at their ends
	before, after := map[string]string{}, map[string]string{}
	for name, order := range map[string]binary.ByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		for form, frame := range map[string]string{"marked": "\ufeff%s", "plain": "%s", "long": "\ufeff" + long + "%s" + long, "shifted": "x" + long + "%s"} {
			before[name+form] = asUTF16(order, fmt.Sprintf(frame, oldURL+"?api_key=k\n"))
			after[name+form] = asUTF16(order, fmt.Sprintf(frame, newURL+"?api_key=k\n"))
			c.write("site/"+name+form, before[name+form])
		}
	}
	assert.Contains(t, c.scan(0, "site"), "site/biglong:40001: "+oldURL+" → "+newURL+"\n")
	assert.Contains(t, c.rewrite("site"), "8 files, 8 addresses\n")
	for name := range before {
		assert.Equal(t, after[name], c.read("site/"+name), name)
		assert.Equal(t, before[name], c.read("site/"+name+".bak"), name)
	}

	pair := asUTF16(binary.LittleEndian, "👋")
	for name, broken := range map[string]string{"lonely": pair[:2], "reversed": pair[2:] + pair[:2], "odd": "x"} {
		content := asUTF16(binary.LittleEndian, "\ufeff"+oldURL) + broken
		c.write("broken/"+name, content)
		r := c.fails(1, "broken/"+name+" is broken UTF-16", "addresses", "rewrite", "--moves", "report.json", "broken/"+name)
		assert.Equal(t, "0 files, 0 addresses\n", r.stdout)
		assert.Equal(t, content, c.read("broken/"+name))
		c.fails(1, "broken/"+name, "addresses", "scan", "--moves", "report.json", "broken/"+name)
	}
}

func TestBinariesAreToldByTheirBeginning(t *testing.T) {
	c := moving(t)
	late := strings.Repeat(" ", 8<<10) + "\x00" + oldURL
	huge := c.write("site/odd", "ab\x00"+oldURL, "site/late", late, "site/image", "\x7fELF\x02\x01\x01\x00"+oldURL)
	require.NoError(t, os.Truncate(huge, 30<<30)) // sparse
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "ulimit -v 8000000 && exec "+headsctl+" addresses rewrite --moves report.json site")
	cmd.Env, cmd.Dir = c.env, c.dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "site/late:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", string(out))
	assert.Equal(t, strings.ReplaceAll(late, oldURL, newURL), c.read("site/late"))
}

func TestASecondRunCleansUpWhatTheFirstLeft(t *testing.T) {
	c := moving(t)
	for _, path := range []string{"site", "site/page.html"} {
		c.write("site/page.html", oldURL, "site/page.html.bak", "of another day", "site/.headsctl-notes.tmp", "a file of yours",
			"site/page.html.bak.2", oldURL, "site/.headsctl-12345.tmp", oldURL, "site/.headsctl-678", oldURL[:20]) // by the run that was killed
		assert.Contains(t, c.scan(0, "site"), "page.html:1: ", "alone")
		assert.FileExists(t, filepath.Join(c.dir, "site/.headsctl-678"), "scan changes nothing")
		assert.Equal(t, "site/page.html:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", c.rewrite(path))
		assert.Equal(t, []string{".headsctl-notes.tmp", "page.html", "page.html.bak", "page.html.bak.2"}, names(t, filepath.Join(c.dir, "site")))
		assert.Equal(t, "of another day", c.read("site/page.html.bak"))
	}
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	for _, entry := range need(os.ReadDir(dir))(t) {
		all = append(all, entry.Name())
	}
	return all
}

func digest(t testing.TB, path string) [sha256.Size]byte {
	t.Helper()
	return sha256.Sum256([]byte(contents(t, path)))
}

// written is how many bytes the temporary files of a folder have.
func written(dir string) (size int64) {
	found, _ := filepath.Glob(filepath.Join(dir, ".headsctl-*"))
	for _, path := range found {
		if info, err := os.Stat(path); err == nil {
			size = info.Size()
		}
	}
	return size
}

// Killed while it writes the backup, while it writes the file, and between the two.
func TestARewriteThatIsKilledLeavesWholeFiles(t *testing.T) {
	const kills, size = 4, 32 << 20
	c := moving(t)
	line := []byte(strings.Repeat("x", 4<<10) + " " + oldURL + "\n")
	page := c.write("site/page.html", "")
	original := bytes.Repeat(line, size/len(line))
	old, rewritten := sha256.Sum256(original), sha256.Sum256(bytes.ReplaceAll(original, []byte(oldURL), []byte(newURL)))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for killed := 0; killed < kills; {
		require.NoError(t, os.WriteFile(page, original, 0o600))
		inBackup, moment := killed%2 == 0, random.Int64N(int64(size))
		cmd := c.command(t.Context(), "addresses", "rewrite", "--moves", "report.json", "site")
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 {
			_, absent := os.Stat(page + ".bak")
			if written(filepath.Dir(page)) > moment && (absent != nil) == inBackup {
				_ = cmd.Process.Kill()
				break
			}
			runtime.Gosched()
		}
		if <-ended == nil {
			require.NoError(t, os.Remove(page+".bak"))
			continue // it was done before it was struck
		}
		killed++
		if _, err := os.Stat(page + ".bak"); err == nil {
			require.Contains(t, [][sha256.Size]byte{old, rewritten}, digest(t, page), "the file is the old or the new one, seed %d", seed)
			require.Equal(t, old, digest(t, page+".bak"), "a backup is whole or absent, seed %d", seed)
		} else {
			require.Equal(t, old, digest(t, page), "seed %d", seed)
		}
		c.rewrite("site")
		require.Equal(t, rewritten, digest(t, page))
		require.Equal(t, old, digest(t, page+".bak"))
		require.Equal(t, []string{"page.html", "page.html.bak"}, names(t, filepath.Dir(page)), "the second run cleans up")
		require.NoError(t, os.Remove(page+".bak"))
	}
}
