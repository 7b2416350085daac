package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxLine is the length of the longest line: a body and an answer, each escaped.
const maxLine = 16 * MaxBody

// Source is a recording that is read more than once: a file, or a text in memory.
type Source interface {
	io.Reader
	io.ReaderAt
}

// Recording is what Read has read.
type Recording struct {
	Entries []*Entry     // without headers and bodies, which Load reads
	Faults  []*LineError // of lines that were left out
	CutLine int          // the number of a last line that was not written to its end; 0 without one

	source Source
}

// LineError is what is wrong with a line.
type LineError struct {
	Line    int
	Problem string
}

func (f *LineError) Error() string { return f.Problem }

// Read reads a recording from its beginning. Lines that are wrong are left out. Members that
// it does not know are ignored. The error is of a source that can't be read, or a *LineError
// if it is no recording.
func Read(source Source) (*Recording, error) {
	reader := reader{recording: &Recording{source: source}, byID: map[string]*Entry{}}
	lines := bufio.NewReader(source)
	for number := 1; ; number++ {
		line, length, end, err := readLine(lines)
		if err != nil {
			return nil, err
		}
		if length == 0 && end {
			break
		}
		if end && number > 1 && !json.Valid(line) {
			reader.recording.CutLine = number
			break
		}
		if length > maxLine {
			err = fmt.Errorf("has more than %d MiB", maxLine>>20)
		} else {
			err = reader.read(line, number)
		}
		if err != nil && number == 1 {
			return nil, &LineError{1, err.Error()}
		}
		if err != nil {
			for problem := range strings.SplitSeq(err.Error(), "\n") {
				reader.recording.Faults = append(reader.recording.Faults, &LineError{number, problem})
			}
		}
		reader.offset += int64(length) + 1
		if end {
			break
		}
	}
	if reader.header == 0 {
		return nil, &LineError{1, ErrNoRecording.Error()}
	}
	return reader.recording, nil
}

// Load returns an entry of the recording with its headers and bodies.
func (r *Recording) Load(e *Entry) (*Entry, error) {
	line := make([]byte, e.length)
	if _, err := r.source.ReadAt(line, e.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	loaded, err := decode(line)
	if err != nil || loaded.ID != e.ID {
		return nil, fmt.Errorf("line %d of the recording has changed", e.Line)
	}
	loaded.Line, loaded.Outcome = e.Line, e.Outcome
	return loaded, nil
}

// readLine returns a line without its line break, and its length. Of a line that is too long
// it returns a part. It reports whether the line is the last one and without a line break.
func readLine(r *bufio.Reader) (line []byte, length int, end bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		length += len(part)
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line[:max(len(line)-1, 0)], length - 1, false, nil
		case errors.Is(err, io.EOF):
			return line, length, true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, false, err
		}
	}
}

// reader collects what the lines say.
type reader struct {
	recording *Recording
	byID      map[string]*Entry
	header    int
	offset    int64 // of the line
}

func (r *reader) read(line []byte, number int) error {
	if len(bytes.TrimSpace(line)) == 0 && number > 1 {
		return nil
	}
	if r.header == 0 {
		r.header = number
		return checkHeader(line)
	}
	var kind struct {
		Type Kind `json:"type"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return errors.New("is not a JSON object; remove the line")
	}
	switch kind.Type {
	case KindRecording: // recordings may be put together
		return checkHeader(line)
	case KindEvent, KindToolCall:
		return r.entry(line, number)
	case KindOutcome:
		return r.outcome(line)
	}
	return fmt.Errorf("has the type %q; expected are event, tool_call and outcome", kind.Type)
}

func (r *reader) entry(line []byte, number int) error {
	e, err := decode(line)
	if err != nil {
		return err
	}
	if first := r.byID[e.ID]; first != nil {
		return fmt.Errorf("has the id of line %d; each line wants its own", first.Line)
	}
	e.Line, e.offset, e.length = number, r.offset, len(line)
	e.Delivery = sha256.Sum256([]byte(e.Path + "\n" + string(e.Body)))
	e.Headers, e.Body, e.Answer.Body = nil, nil, nil
	r.byID[e.ID] = e
	r.recording.Entries = append(r.recording.Entries, e)
	return nil
}

// decode returns the entry of a line, or what is wrong with it.
func decode(line []byte) (*Entry, error) {
	var wire wireEntry
	if err := json.Unmarshal(line, &wire); err != nil {
		return nil, fmt.Errorf("has a member of another type: %s", typeFault(err))
	}
	e := Entry(wire.plainEntry)
	e.Body = body(wire.Body, wire.BodyBase64)
	e.Answer = Answer(wire.Answer.plainAnswer)
	e.Answer.Body = body(wire.Answer.Body, wire.Answer.BodyBase64)
	return &e, errors.Join(e.faults(wire.Body != nil, wire.BodyBase64 != nil)...)
}

func body(plain *string, encoded []byte) Text {
	if plain != nil {
		return Text(*plain)
	}
	return encoded
}

// typeFault names the member of an error of package json.
func typeFault(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := strings.NewReplacer("plainEntry.", "", "plainAnswer.", "").Replace(wrong.Field) // embedded, so not in the file
		return fmt.Sprintf("%s is a JSON %s", field, wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// faults returns what keeps an entry from being sent again.
func (e *Entry) faults(plain, encoded bool) (faults []error) {
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(e.ID == "", "has no id")
	refuse(e.At.IsZero(), "has no at")
	refuse(!strings.HasPrefix(e.Path, "/"), "has the path %q; a path begins with /", e.Path)
	refuse(plain == encoded, "wants one of body and body_base64")
	refuse(e.Type == KindEvent && e.Event == "", "has no event, the type of the event")
	for _, name := range sortedNames(e.Headers) {
		refuse(!slices.Contains(Headers, name), "has the header %q; expected are %s", name, strings.Join(Headers, ", "))
		refuse(strings.ContainsAny(e.Headers[name], "\r\n\x00"), "has a line break in the header %s", name)
	}
	refuse(e.Answer.Status < 100 || e.Answer.Status > 999, "has the answer's status %d; expected is one from 100 to 999", e.Answer.Status)
	return faults
}

func sortedNames(headers map[string]string) []string {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *reader) outcome(line []byte) error {
	var o Outcome
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("has a member of another type: %s", typeFault(err))
	}
	e := r.byID[o.Entry]
	if e == nil || !e.Acked {
		return fmt.Errorf("has the entry %q, which is no acknowledged event before it", o.Entry)
	}
	e.Outcome = &o
	return nil
}
