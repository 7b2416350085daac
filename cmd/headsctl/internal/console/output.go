// Package console writes to stdout and stderr: lines, tables and a bar, cut to the width of
// a terminal and masked.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// Output is stdout or stderr. It remembers the first failure, so that the
// program can end with it.
type Output struct {
	Terminal bool // whether it is one

	file   *os.File
	colour bool
	mu     sync.Mutex
	w      io.Writer
	mask   func([]byte) []byte
	err    error
}

// NewOutput returns an output to a file. Without colour, no word is painted.
func NewOutput(file *os.File, colour bool) *Output {
	return &Output{file: file, w: file, Terminal: IsTerminal(file), colour: colour}
}

// SetMask masks whatever is written from now on.
func (o *Output) SetMask(mask func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mask = mask
}

// redirect lets another writer have what is written, until restore.
func (o *Output) redirect(w io.Writer) (restore func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.w
	o.w = w
	return func() { o.redirect(before) }
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	shown := p
	if o.mask != nil {
		shown = o.mask(p)
	}
	n, err := o.w.Write(shown)
	if o.err == nil {
		o.err = err
	}
	if len(shown) != len(p) {
		n = len(p)
		if err != nil {
			n = 0
		}
	}
	return n, err
}

// Failure returns the first error of writing.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return cwriter.IsTerminal(int(f.Fd())) }

// Width is the number of columns of the terminal, or 0 if there is none.
func (o *Output) Width() int {
	if !o.Terminal {
		return 0
	}
	columns, _, err := cwriter.GetSize(int(o.file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// The colours of a terminal.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint colours a word on a terminal.
func (o *Output) Paint(colour, word string) string {
	if !o.Terminal || !o.colour || colour == "" {
		return word
	}
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}

// Say writes a line.
func (o *Output) Say(format string, args ...any) {
	_, _ = io.WriteString(o, fmt.Sprintf(format, args...)+"\n")
}

// Document writes a document of the service and a line break. A pipe or file gets
// the bytes as they are. A terminal gets no character that it would obey: JSON stays
// the same document, and in anything else such characters are replaced.
func (o *Output) Document(doc []byte) {
	doc = bytes.TrimSuffix(doc, []byte{'\n'})
	if o.Terminal {
		if json.Valid(doc) {
			doc = show.JSON(doc)
		}
		doc = bytes.ToValidUTF8(bytes.Map(func(r rune) rune {
			switch {
			case r == '\n':
			case r == '\t' || r == '\r':
				return ' '
			case show.Steers(r):
				return unicode.ReplacementChar
			}
			return r
		}, doc), []byte("�"))
	}
	o.Say("%s", doc)
}

// Table writes rows whose columns are aligned. On a terminal, no line is longer
// than the terminal is wide.
func (o *Output) Table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = show.Line(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)+2))
			}
		}
		b.WriteString(o.Cut(strings.TrimRight(line.String(), " ")) + "\n")
	}
	_, _ = io.WriteString(o, b.String())
}

// Cut shortens a line to the width of the terminal. It masks the line first, since a part
// of a secret is not found any more.
func (o *Output) Cut(line string) string {
	width := o.Width()
	if width == 0 {
		return line
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mask != nil {
		line = string(o.mask([]byte(line)))
	}
	return runewidth.Truncate(line, width, show.CutMark)
}
