package main

import (
	"io"
	"sync"
	"time"
)

// flushAfter is how late a log line may be.
const flushAfter = 20 * time.Millisecond

// lineBuffer collects log lines, so a busy emulator makes one system call for many
// lines.
type lineBuffer struct {
	mu      sync.Mutex
	w       io.Writer
	text    []byte
	pending bool
}

func newLineBuffer(w io.Writer) *lineBuffer { return &lineBuffer{w: w} }

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if !b.pending {
		b.pending = true
		time.AfterFunc(flushAfter, b.flush)
	}
	return len(p), nil
}

func (b *lineBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.w.Write(b.text) // a log that can't be written must not stop the emulator
	b.text, b.pending = b.text[:0], false
}
