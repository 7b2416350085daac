package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// writes counts how often it is written to.
type writes struct {
	text  strings.Builder
	count int
}

func (w *writes) Write(p []byte) (int, error) { w.count++; return w.text.Write(p) }

func TestLogLinesAreWrittenTogetherAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		b := newLineBuffer(&w)
		for n := range 3 {
			_, _ = fmt.Fprintln(b, n)
		}
		assert.Zero(t, w.count)
		time.Sleep(flushAfter)
		synctest.Wait()
		assert.Equal(t, "0\n1\n2\n", w.text.String())
		assert.Equal(t, 1, w.count)
		_, _ = fmt.Fprintln(b, 3)
		b.flush()
		assert.Equal(t, "0\n1\n2\n3\n", w.text.String(), "the end of the program waits for no clock")
	})
}
