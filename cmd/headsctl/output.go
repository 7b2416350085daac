package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
)

// output is stdout or stderr. It remembers the first failure, so that the
// program can end with it.
type output struct {
	file     *os.File
	terminal bool
	mu       sync.Mutex
	w        io.Writer
	mask     *tokenMask
	err      error
}

func newOutput(file *os.File) *output {
	return &output{file: file, w: file, terminal: isTerminal(file)}
}

// redirect lets another writer have what is written, until restore.
func (o *output) redirect(w io.Writer) (restore func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.w
	o.w = w
	return func() { o.redirect(before) }
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	shown := p
	if o.mask != nil {
		shown = o.mask.hide(p)
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

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func isTerminal(f *os.File) bool { return cwriter.IsTerminal(int(f.Fd())) }

// width is the number of columns of the terminal behind stdout, or 0 if there
// is none.
func (a *app) width() int {
	if !a.stdout.terminal {
		return 0
	}
	columns, _, err := cwriter.GetSize(int(a.stdout.file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// The colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours a word on a terminal, unless NO_COLOR is set.
func (a *app) paint(colour string, on *output, word string) string {
	if !on.terminal || !a.colour || colour == "" {
		return word
	}
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}

// oneLine makes one line of a text from outside, without anything that a
// terminal would obey.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case steers(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimSpace(text))
	return strings.ToValidUTF8(text, "�")
}

// steers reports whether a terminal may obey a character: a control character, C1
// included, or a mark of direction.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// steering matches the control characters and the marks of direction that JSON
// and YAML allow in a text as they are.
var steering = regexp.MustCompile(`[\x{7f}-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// escapeSteering escapes them in a JSON document, which stays the same document.
func escapeSteering(doc []byte) []byte {
	return steering.ReplaceAllFunc(doc, func(found []byte) []byte {
		r, _ := utf8.DecodeRune(found)
		return fmt.Appendf(nil, `\u%04x`, r)
	})
}

// printDocument writes a document of the service and a line break. A pipe or file gets
// the bytes as they are. A terminal gets no character that it would obey: JSON stays
// the same document, and in anything else such characters are replaced.
func (a *app) printDocument(doc []byte) {
	doc = bytes.TrimSuffix(doc, []byte{'\n'})
	if a.stdout.terminal {
		if json.Valid(doc) {
			doc = escapeSteering(doc)
		}
		doc = bytes.ToValidUTF8(bytes.Map(func(r rune) rune {
			switch {
			case r == '\n':
			case r == '\t' || r == '\r':
				return ' '
			case steers(r):
				return unicode.ReplacementChar
			}
			return r
		}, doc), []byte("�"))
	}
	a.say("%s", doc)
}

var formats = []string{"table", "json", "yaml"}

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "table", "output `FORMAT`: table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	checkBefore(cmd, func() error { return oneOf("the output format", *format, formats) })
}

// checkBefore adds a check of flags that runs before the command.
func checkBefore(cmd *cobra.Command, check func() error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// print writes a value as JSON or YAML, or calls table for the format of that
// name.
func (a *app) print(format string, v any, table func()) error {
	if format == "table" {
		table()
		return nil
	}
	doc, err := rawjson.Encode(v)
	if err != nil {
		return err
	}
	if format == "json" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, doc, "", "  "); err != nil {
			return err
		}
		doc = append(escapeSteering(indented.Bytes()), '\n')
	} else {
		doc = toYAML(doc)
	}
	_, err = a.stdout.Write(doc)
	return err
}

// table writes rows whose columns are aligned. On a terminal, no line is longer
// than the terminal is wide.
func (a *app) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
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
		b.WriteString(a.cut(strings.TrimRight(line.String(), " ")) + "\n")
	}
	_, _ = io.WriteString(a.stdout, b.String())
}

// cut shortens a line to the width of the terminal.
func (a *app) cut(line string) string {
	if width := a.width(); width > 0 {
		return runewidth.Truncate(string(a.tokenMask.hide([]byte(line))), width, cutMark)
	}
	return line
}
