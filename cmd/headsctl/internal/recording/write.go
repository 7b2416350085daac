package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// ErrNoRecording reports a file that is not a recording.
var ErrNoRecording = errors.New("is not a recording")

// Writer appends lines to a recording. Its methods may be called by several goroutines
// at once.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens a recording to append to, or creates it. Then only its owner can read it. What a write
// that was cut left at the end is removed. A file that is no recording of this version is not
// changed, and the error says so.
func Open(path string, now time.Time) (*Writer, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, ErrNoRecording // and opening a pipe would wait
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, ownerOnly)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file}
	if err := w.begin(now); err != nil {
		_ = file.Close()
		return nil, err
	}
	return w, nil
}

// ownerOnly is the mode of a recording, also of a file that was there.
const ownerOnly = 0o600

// begin checks the first line, or writes it.
func (w *Writer) begin(now time.Time) error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		if err := w.file.Chmod(ownerOnly); err != nil {
			return err
		}
		return w.Append(header{Type: KindRecording, Version: Version, At: now.UTC()}, true)
	}
	first := make([]byte, 256)
	n, err := w.file.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	line, _, _ := bytes.Cut(first[:n], []byte{'\n'})
	if err := checkHeader(line); err != nil {
		return err
	}
	if err := w.file.Chmod(ownerOnly); err != nil {
		return err
	}
	return w.mend(info.Size())
}

// header is the first line.
type header struct {
	Type    Kind      `json:"type"`
	Version int       `json:"version"`
	At      time.Time `json:"at"`
}

func checkHeader(line []byte) error {
	var h header
	if json.Unmarshal(line, &h) != nil || h.Type != KindRecording {
		return ErrNoRecording
	}
	if h.Version != Version {
		return fmt.Errorf("has version %d of the format; this program knows version %d", h.Version, Version)
	}
	return nil
}

// mend ends the last line: one that is whole gets its line break, one that is not is
// removed. It was never acknowledged.
func (w *Writer) mend(size int64) error {
	end := size
	chunk := make([]byte, 64<<10)
	var last []byte // what is known of the last line
	for end > 0 {
		start := max(0, end-int64(len(chunk)))
		part := chunk[:end-start]
		if _, err := w.file.ReadAt(part, start); err != nil {
			return err
		}
		at := bytes.LastIndexByte(part, '\n')
		last = append(bytes.Clone(part[at+1:]), last...)
		end = start + int64(at+1)
		if at >= 0 {
			break
		}
	}
	switch {
	case len(last) == 0:
		return nil
	case json.Valid(last):
		_, err := w.file.Write([]byte{'\n'})
		return err
	}
	return w.file.Truncate(end)
}

// Append writes a line, which is whole or not there. With durable it is on disk before
// Append returns.
func (w *Writer) Append(line any, durable bool) error {
	text, err := encode(line)
	if err != nil {
		return err
	}
	if len(text) > maxLine {
		return fmt.Errorf("it takes more than %d MiB", maxLine>>20)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if _, err := w.file.Write(text); err != nil {
		return errors.Join(err, w.file.Truncate(info.Size()))
	}
	if durable {
		return w.file.Sync()
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
