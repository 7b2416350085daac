// Package addresses finds old access URLs in text files, and puts new ones in their place.
package addresses

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// address is an access URL without its query.
type address struct {
	scheme, host string
	segments     []string // of the path, decoded
	text         string
}

func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return address{}, errors.New("an access URL is missing, or not an http or https URL with a path; use a report as headsctl wrote it")
	}
	withoutQuery, _, _ := strings.Cut(text, "?")
	return address{u.Scheme, strings.ToLower(u.Host), strings.Split(strings.Trim(u.Path, "/"), "/"), withoutQuery}, nil
}

func (a address) path() string { return strings.Join(a.segments, "/") }

// move is an old access URL and the new one.
type move struct{ old, new address }

// Occurrence is an old access URL in a file.
type Occurrence struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Rewriter finds old access URLs in files.
type Rewriter struct {
	Writes bool // Walk removes what runs that were killed have left

	hosts  map[string]*oldHost // by host name, without a port
	buffer []byte              // of replace
}

// New returns a Rewriter that knows no access URLs.
func New() *Rewriter { return &Rewriter{hosts: map[string]*oldHost{}} }

// oldHost holds the moves from one host name.
type oldHost struct {
	moves  map[string]move // by host and path
	depths []int           // how many segments the paths have, longest first
}

// Add adds the old and the new access URL of a head.
func (r *Rewriter) Add(from, to string) error {
	before, err := parseAddress(from)
	if err != nil {
		return err
	}
	after, err := parseAddress(to)
	if err != nil || before.text == after.text {
		return err
	}
	name, _, _ := strings.Cut(before.host, ":")
	h := r.hosts[name]
	if h == nil {
		h = &oldHost{moves: map[string]move{}}
		r.hosts[name] = h
	}
	h.moves[before.host+"/"+before.path()] = move{before, after}
	if n := len(before.segments); !slices.Contains(h.depths, n) {
		h.depths = append(h.depths, n)
		slices.SortFunc(h.depths, func(a, b int) int { return b - a })
	}
	return nil
}

// found is an old access URL in a text.
type found struct {
	start, end int
	move       move
	text       string // what to put in its place
}

// find returns the old access URLs in a text, in order.
func (r *Rewriter) find(text []byte) []found {
	var all []found
	lower := lowerASCII(text)
	for name, host := range r.hosts {
		for at := 0; ; {
			i := bytes.Index(lower[at:], []byte(name))
			if i < 0 {
				break
			}
			at += i
			if f, ok := host.match(text, at, at+len(name), name); ok {
				all = append(all, f)
			}
			at += len(name)
		}
	}
	slices.SortFunc(all, func(a, b found) int { return a.start - b.start })
	return all
}

// lowerASCII keeps the length, unlike bytes.ToLower.
func lowerASCII(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}

// The forms of a slash and of a colon: plain, in JSON, in HTML, and in a URL
// that is part of another one.
const (
	slash = `(?:\\*/|\\+u002[fF]|&#[xX]0*2[fF];|&#0*47;|&sol;|%(?:25)*2[fF])`
	colon = `(?::|\\+u003[aA]|&#[xX]0*3[aA];|&#0*58;|&colon;|%(?:25)*3[aA])`
)

var (
	twoSlashes = regexp.MustCompile(`(` + slash + `)(` + slash + `)$`)
	schemeEnd  = regexp.MustCompile(`(?i:(https?))(` + colon + `)$`)
	colonEnd   = regexp.MustCompile(colon + `$`)
	portStart  = regexp.MustCompile(`^(` + colon + `)([0-9]{1,5})`)
)

// nearby is how much text before a host is examined, in bytes.
const nearby = 64

// match reports whether the host name at text[start:end] belongs to an old
// access URL.
func (h *oldHost) match(text []byte, start, end int, name string) (found, bool) {
	before := text[max(0, start-nearby):start]
	slashes := twoSlashes.FindSubmatchIndex(before)
	if slashes == nil {
		return found{}, false
	}
	first, second := string(before[slashes[2]:slashes[3]]), string(before[slashes[4]:slashes[5]])
	before = before[:slashes[0]]
	f := formOf(second)
	host := name
	if port := portStart.FindSubmatch(text[end:min(len(text), end+nearby)]); port != nil {
		host += ":" + string(port[2])
		end += len(port[0])
	}
	m, end, ok := h.lookUp(host, f, text, end)
	if !ok {
		return found{}, false
	}
	lead, separator := "", ""
	if scheme := schemeEnd.FindSubmatchIndex(before); scheme != nil {
		separator = string(before[scheme[4]:scheme[5]])
		lead = string(before[scheme[0]:])
		before = before[:scheme[0]]
	} else if colonEnd.Match(before) {
		return found{}, false // of another scheme
	}
	if !isBoundary(before) {
		return found{}, false
	}
	replacement := first + second + f.encode(m.new.host)
	if lead != "" {
		replacement = m.new.scheme + separator + replacement
	}
	for _, segment := range m.new.segments {
		replacement += second + f.encode(url.PathEscape(segment))
	}
	return found{start - len(lead) - len(first) - len(second), end, m, replacement}, true
}

// lookUp reads the path behind a host and returns the move of the longest one
// that is known, and where it ends.
func (h *oldHost) lookUp(host string, f form, text []byte, at int) (move, int, bool) {
	var ends []int
	key := host
	keys := []string{}
	for len(ends) < h.depths[0] {
		unit, n := f.unit(text[at:])
		if unit != "/" {
			break
		}
		segment, length := f.segment(text[at+n:])
		if length == 0 {
			break
		}
		if plain, err := url.PathUnescape(segment); err == nil {
			segment = plain
		}
		key += "/" + segment
		at += n + length
		keys, ends = append(keys, key), append(ends, at)
	}
	for _, depth := range h.depths {
		if depth > len(ends) {
			continue
		}
		if m, ok := h.moves[keys[depth-1]]; ok {
			return m, ends[depth-1], true
		}
	}
	return move{}, 0, false
}

// How much of a file is searched at once: the old access URLs that begin in a window. Behind
// it are overlap bytes, and no access URL in any form is longer; before it are lookBack bytes.
const (
	window   = 1 << 20
	overlap  = 1 << 16
	lookBack = 4 * nearby
)

// Search copies a file to w, with the new access URLs in the place of the old ones,
// and returns what was found. It skips binaries.
func (r *Rewriter) Search(ctx context.Context, file string, w io.Writer) (all []Occurrence, err error) {
	text, err := openText(ctx, file)
	if text == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, text.Close()) }()
	out := bufio.NewWriterSize(w, overlap)
	line, encoded := 1, text.encode(out)
	err = r.replace(text, encoded, func(passed []byte) { line += bytes.Count(passed, []byte{'\n'}) }, func(f found) {
		all = append(all, Occurrence{file, line, f.move.old.text, f.move.new.text})
	})
	return all, errors.Join(err, out.Flush())
}

// Rewrite puts the new access URLs into a file and returns what it has replaced.
func (r *Rewriter) Rewrite(ctx context.Context, file string, backup bool) (all []Occurrence, err error) {
	if all, err = r.Search(ctx, file, io.Discard); err != nil || len(all) == 0 {
		return nil, err
	}
	err = replaceFile(ctx, file, func(w io.Writer) error {
		all, err = r.Search(ctx, file, w)
		return err
	}, backup)
	return all, err
}

// replace copies a text with the new access URLs in the place of the old ones. It calls passed
// for all text in order, and each for an old access URL before its text is passed.
func (r *Rewriter) replace(in io.Reader, out io.Writer, passed func([]byte), each func(found)) error {
	if r.buffer == nil {
		r.buffer = make([]byte, lookBack+window+overlap)
	}
	buffer := r.buffer[:0]
	for done := 0; ; { // of the buffer, done bytes are written
		n, err := io.ReadFull(in, buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		limit := len(buffer)
		if !ended {
			limit -= overlap
			for i := 1; i < utf8.UTFMax && !utf8.RuneStart(buffer[limit]); i++ {
				limit-- // between two characters
			}
		}
		for _, f := range r.find(buffer) {
			if f.start < done || f.start >= limit {
				continue // written already, or for the next window
			}
			passed(buffer[done:f.start])
			each(f)
			passed(buffer[f.start:f.end])
			if _, err := fmt.Fprintf(out, "%s%s", buffer[done:f.start], f.text); err != nil {
				return err
			}
			done = f.end
		}
		if done < limit {
			passed(buffer[done:limit])
			if _, err := out.Write(buffer[done:limit]); err != nil {
				return err
			}
			done = limit
		}
		if ended {
			return nil
		}
		kept := copy(buffer, buffer[max(0, done-lookBack):])
		done = min(done, lookBack)
		buffer = buffer[:kept]
	}
}

// skippedFolders hold nothing that a person wrote.
var skippedFolders = []string{".git", "node_modules"}

var backupName = regexp.MustCompile(`\.bak(\.[0-9]+)?$`)

// Walk calls visit for every file below the paths, each once, and fail for each that can't
// be read or visited. It returns an error only if ctx has ended.
func (r *Rewriter) Walk(ctx context.Context, paths []string, visit func(file string) error, fail func(error)) error {
	seen := map[string]bool{}
	for _, root := range paths {
		info, err := os.Stat(root)
		switch {
		case err == nil && info.IsDir() && !strings.HasSuffix(root, string(filepath.Separator)):
			root += string(filepath.Separator) // follows a symbolic link that was named
		case err == nil && info.Mode().IsRegular() && r.Writes:
			if err := removeLeftovers(filepath.Dir(real(root))); err != nil {
				fail(err)
			}
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				fail(err)
			case entry.IsDir() && path != root && slices.Contains(skippedFolders, entry.Name()):
				return fs.SkipDir
			case entry.IsDir() && r.Writes:
				if err := removeLeftovers(path); err != nil {
					fail(err)
				}
			case isCandidate(entry, path == root) && !seen[real(path)]:
				seen[real(path)] = true
				if err := visit(path); ctx.Err() != nil {
					return ctx.Err()
				} else if err != nil {
					fail(err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func isCandidate(entry fs.DirEntry, named bool) bool {
	regular := entry.Type().IsRegular() || named && entry.Type()&fs.ModeSymlink != 0
	return regular && !backupName.MatchString(entry.Name()) && !leftover.MatchString(entry.Name())
}

func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}
