package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
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
)

// full reports whether tests run with all their rounds and sizes: HEADSCTL_FULL=1.
var full = os.Getenv("HEADSCTL_FULL") != ""

func TestAnAccessURLIsFoundWhereverAWindowEnds(t *testing.T) {
	t.Parallel()
	r := &rewriter{hosts: map[string]*oldHost{}}
	require.NoError(t, r.add(oldURL, newURL))
	escaped := "https%253A%252F%252Fchat.example.test%252FMyOrg-1%252Fli-28379"
	limit := lookBack + window // of the first window
	for _, offset := range []int{limit - 150, limit - 20, limit - 3, limit - 1, limit, limit + 1, limit + overlap - 30, limit + overlap, 2*window + lookBack} {
		for _, shift := range []int{-21, 0, 7} {
			before := strings.Repeat("ä\n", (offset+shift)/3)
			file := filepath.Join(t.TempDir(), "page")
			tail := strings.Repeat("y", 3*overlap)
			require.NoError(t, os.WriteFile(file, []byte(before+oldURL+" "+oldURL+"1 "+escaped+"&"+oldURL+" "+tail), 0o600))
			after, found := search(t, r, file)
			want := before + newURL + " " + oldURL + "1 " + strings.Replace(escaped, "chat", "stream", 1) + "&" + newURL + " " + tail
			require.Equal(t, sha256.Sum256([]byte(want)), sha256.Sum256([]byte(after)), "offset %d", offset+shift)
			require.Len(t, found, 3)
			require.Equal(t, strings.Count(before, "\n")+1, found[0].Line)
		}
	}
}

// asUTF16 returns a text in UTF-16.
func asUTF16(order binary.ByteOrder, text string) string {
	units := utf16.Encode([]rune(text))
	out := make([]byte, 2*len(units))
	for i, unit := range units {
		order.PutUint16(out[2*i:], unit)
	}
	return string(out)
}

func TestTextsInUTF16AreRewrittenOrNamed(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	long := strings.Repeat("Grüße 👋 世界\r\n", 40_000) // several pieces, with pairs of units at their ends
	before, after := map[string]string{}, map[string]string{}
	for name, order := range map[string]binary.ByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		for form, frame := range map[string]string{"marked": "\ufeff%s", "plain": "%s", "long": "\ufeff" + long + "%s" + long, "shifted": "x" + long + "%s"} {
			before[name+form] = asUTF16(order, fmt.Sprintf(frame, oldURL+"?api_key=k\n"))
			after[name+form] = asUTF16(order, fmt.Sprintf(frame, newURL+"?api_key=k\n"))
			c.write("site/"+name+form, before[name+form])
		}
	}
	scan := c.ok("addresses", "scan", "--moves", "report.json", "site")
	assert.Contains(t, scan, "site/biglong:40001: "+oldURL+" → "+newURL+"\n")
	assert.Contains(t, c.ok("addresses", "rewrite", "--moves", "report.json", "site"), "8 files, 8 addresses\n")
	for name := range before {
		assert.Equal(t, sha256.Sum256([]byte(after[name])), digest(t, filepath.Join(c.dir, "site", name)), name)
		assert.Equal(t, sha256.Sum256([]byte(before[name])), digest(t, filepath.Join(c.dir, "site", name+".bak")), name)
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
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	huge := c.write("site/image", "\x7fELF\x02\x01\x01\x00"+oldURL)
	require.NoError(t, os.Truncate(huge, 30<<30)) // sparse
	c.write("site/odd", "ab\x00"+oldURL)
	late := strings.Repeat(" ", sampleSize) + "\x00" + oldURL
	c.write("site/late", late)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "ulimit -v 8000000 && exec "+headsctl+" addresses rewrite --moves report.json site")
	cmd.Env, cmd.Dir = c.env, c.dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "site/late:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", string(out))
	assert.Equal(t, strings.ReplaceAll(late, oldURL, newURL), c.read("site/late"))
}

func TestASecondRunCleansUpWhatTheFirstLeft(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	for _, args := range [][]string{{"site"}, {"site/page.html"}} {
		c.write("site/page.html", oldURL)
		c.write("site/page.html.bak", "of another day")
		c.write("site/page.html.bak.2", oldURL) // by the run that was killed
		c.write("site/.headsctl-12345.tmp", oldURL)
		c.write("site/.headsctl-678", oldURL[:20])
		c.write("site/.headsctl-notes.tmp", "a file of yours")
		assert.Contains(t, c.ok("addresses", "scan", "--moves", "report.json", "site"), "page.html:1: ", "alone")
		assert.FileExists(t, filepath.Join(c.dir, "site/.headsctl-678"), "scan changes nothing")
		out := c.ok(append([]string{"addresses", "rewrite", "--moves", "report.json"}, args...)...)
		assert.Equal(t, "site/page.html:1: "+oldURL+" → "+newURL+"\n1 file, 1 address\n", out)
		assert.Equal(t, []string{".headsctl-notes.tmp", "page.html", "page.html.bak", "page.html.bak.2"}, names(t, filepath.Join(c.dir, "site")))
		assert.Equal(t, "of another day", c.read("site/page.html.bak"))
	}
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func digest(t testing.TB, path string) [sha256.Size]byte {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	require.NoError(t, err)
	return [sha256.Size]byte(sum.Sum(nil))
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

// A process is killed while it writes the backup, while it writes the file, and
// between the two.
func TestARewriteThatIsKilledLeavesWholeFiles(t *testing.T) {
	t.Parallel()
	kills, size := 4, 32<<20
	if full {
		kills, size = 20, 400<<20
	}
	c := newTerminal(t)
	c.write("report.json", moves(t, oldURL, newURL))
	line := []byte(strings.Repeat("x", 4<<10) + " " + oldURL + "\n")
	page := c.write("site/page.html", "")
	original := bytes.Repeat(line, size/len(line))
	require.NoError(t, os.WriteFile(page, original, 0o600))
	old := sha256.Sum256(original)
	rewritten := sha256.Sum256(bytes.ReplaceAll(original, []byte(oldURL), []byte(newURL)))
	rewrite := []string{"addresses", "rewrite", "--moves", "report.json", "site"}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	killed, states := 0, map[string]int{}
	for killed < kills {
		require.NoError(t, os.WriteFile(page, original, 0o600))
		inBackup, moment := killed%2 == 0, random.Int64N(int64(size))
		cmd := c.command(t.Context(), rewrite...)
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var err error
	watch:
		for {
			select {
			case err = <-ended:
				break watch
			default:
			}
			_, absent := os.Stat(page + ".bak")
			if n := written(filepath.Dir(page)); n > moment && (absent != nil) == inBackup {
				require.NoError(t, cmd.Process.Kill())
				err = <-ended
				break
			}
			runtime.Gosched()
		}
		if err == nil {
			require.NoError(t, os.Remove(page+".bak"))
			continue // it was done before it was struck
		}
		killed++
		state := "no backup"
		if now := digest(t, page); now != old {
			require.Equal(t, rewritten, now, "the file is the old or the new one, seed %d", seed)
			state = "rewritten"
		}
		if _, err := os.Stat(page + ".bak"); err == nil {
			require.Equal(t, old, digest(t, page+".bak"), "a backup is whole or absent, seed %d", seed)
			state += ", backup"
		} else {
			require.Equal(t, old, digest(t, page))
		}
		states[strings.TrimPrefix(state, "no backup, ")]++
		c.ok(rewrite...)
		require.Equal(t, rewritten, digest(t, page))
		require.Equal(t, old, digest(t, page+".bak"))
		require.Equal(t, []string{"page.html", "page.html.bak"}, names(t, filepath.Dir(page)), "the second run cleans up")
		require.NoError(t, os.Remove(page+".bak"))
	}
	t.Logf("%d kills of a rewrite of %d MB, %v, seed %d", killed, size>>20, states, seed)
}
