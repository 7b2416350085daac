package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// writes is a writer that counts its calls.
type writes struct {
	mu    sync.Mutex
	text  strings.Builder
	count int
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return w.text.Write(p)
}

// seen returns what was written, and in how many calls.
func (w *writes) seen() (string, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String(), w.count
}

func TestLogLinesAreWrittenTogetherAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		b := newLineBuffer(&w)
		for n := range 3 {
			_, _ = fmt.Fprintln(b, n)
		}
		_, count := w.seen()
		assert.Zero(t, count)
		<-time.After(flushAfter)
		synctest.Wait()
		text, count := w.seen()
		assert.Equal(t, "0\n1\n2\n", text)
		assert.Equal(t, 1, count)
		_, _ = fmt.Fprintln(b, 3)
		b.flush()
		text, _ = w.seen()
		assert.Equal(t, "0\n1\n2\n3\n", text, "the end of the program waits for no clock")
	})
}
