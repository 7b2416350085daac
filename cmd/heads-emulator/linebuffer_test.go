package main

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// writes are the texts of the calls of Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestLogLinesAreWrittenTogetherAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		b := newLineBuffer(&w)
		written := func() []string {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.Clone(w)
		}
		for n := range 3 {
			_, _ = fmt.Fprintln(b, n)
		}
		synctest.Wait()
		assert.Empty(t, written())
		<-time.After(flushAfter)
		synctest.Wait()
		assert.Equal(t, []string{"0\n1\n2\n"}, written())
		_, _ = fmt.Fprintln(b, 3)
		b.flush()
		assert.Equal(t, []string{"0\n1\n2\n", "3\n"}, written(), "the end of the program waits for no clock")
	})
}
