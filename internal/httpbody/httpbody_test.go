package httpbody_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/headsapi/heads-go/internal/panics"
)

const (
	limit   = 1000
	timeout = 3 * time.Second
)

// deadlineWriter is a ResponseWriter that keeps the read deadlines that are set.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, t)
	return nil
}

// eachWriter runs test with a writer that has deadlines and with one that does not.
func eachWriter(t *testing.T, test func(*testing.T, http.ResponseWriter)) {
	t.Helper()
	for name, newWriter := range map[string]func() http.ResponseWriter{
		"with deadlines":    func() http.ResponseWriter { return &deadlineWriter{ResponseRecorder: httptest.NewRecorder()} },
		"without deadlines": func() http.ResponseWriter { return httptest.NewRecorder() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newWriter()) })
		})
	}
}

func read(w http.ResponseWriter, body io.Reader) (string, error) {
	r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(body))
	buf, err := httpbody.Start(w, timeout).Read(r, limit)
	if err != nil {
		return "", err
	}
	defer httpbody.Free(buf)
	return buf.String(), nil
}

func TestBodyUpToTheLimitIsRead(t *testing.T) {
	eachWriter(t, func(t *testing.T, w http.ResponseWriter) {
		for _, want := range []string{"x", strings.Repeat("x", limit)} {
			text, err := read(w, strings.NewReader(want))
			require.NoError(t, err)
			assert.Equal(t, want, text)
			assert.Empty(t, w.Header())
		}
	})
}

func TestBodyThatCannotBeReadIsAnError(t *testing.T) {
	down := errors.New("reset")
	for name, row := range map[string]struct {
		body   func() io.Reader
		want   error
		closes bool
	}{
		"empty":            {func() io.Reader { return strings.NewReader("") }, httpbody.ErrEmpty, false},
		"a byte too large": {func() io.Reader { return strings.NewReader(strings.Repeat("x", limit+1)) }, httpbody.ErrTooLarge, true},
		"limited in front": {func() io.Reader { return http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("xx")), 1) }, httpbody.ErrTooLarge, true},
		"broken off":       {func() io.Reader { return io.MultiReader(strings.NewReader("x"), iotest.ErrReader(down)) }, down, true},
		"closed before":    {func() io.Reader { return iotest.ErrReader(http.ErrBodyReadAfterClose) }, httpbody.ErrEmpty, false},
		"deadline":         {func() io.Reader { return iotest.ErrReader(os.ErrDeadlineExceeded) }, httpbody.ErrTooSlow, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachWriter(t, func(t *testing.T, w http.ResponseWriter) {
				_, err := read(w, row.body())
				require.ErrorIs(t, err, row.want)
				assert.Equal(t, row.closes, w.Header().Get("Connection") == "close", "no more of the body is wanted")
			})
		})
	}
}

func TestAnnouncedBodyOfWhichNothingIsLeftWasConsumed(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"nil": nil, "taken away": http.NoBody, "read": io.NopCloser(strings.NewReader(""))} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Body = body
		_, err := httpbody.Start(httptest.NewRecorder(), timeout).Read(r, limit)
		assert.ErrorIs(t, err, httpbody.ErrConsumed, name)
	}
}

func TestBodyAnnouncedTooLargeIsNotRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(errors.New("was read")))
	r.ContentLength = limit + 1
	_, err := httpbody.Start(httptest.NewRecorder(), timeout).Read(r, limit)
	assert.ErrorIs(t, err, httpbody.ErrTooLarge)
}

func TestDeadlineIsSetFirstAndRemovedAfterTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(timeout)
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		body := httpbody.Start(w, timeout)
		assert.Equal(t, []time.Time{end}, w.deadlines, "even if nothing is read")
		_, err := body.Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")), limit)
		require.NoError(t, err)
		assert.Equal(t, []time.Time{end, {}}, w.deadlines)
		w.deadlines = nil
		_, err = read(w, iotest.ErrReader(errors.New("reset")))
		require.Error(t, err)
		assert.Equal(t, []time.Time{end}, w.deadlines, "it stays after an error")
	})
}

func TestWithoutDeadlinesASlowBodyIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalled, end := io.Pipe()
		begun := time.Now()
		_, err := read(httptest.NewRecorder(), stalled)
		require.ErrorIs(t, err, httpbody.ErrTooSlow)
		assert.Equal(t, timeout, time.Since(begun))

		// Bytes that arrive later must not be written into a buffer in use.
		next, err := httpbody.Start(httptest.NewRecorder(), timeout).Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("next")), limit)
		require.NoError(t, err)
		_, err = end.Write([]byte("late"))
		require.NoError(t, err)
		assert.Equal(t, "next", next.String())
		require.NoError(t, end.Close())
	})
}

func TestWithoutDeadlinesAPanicOfTheBodyIsAnError(t *testing.T) {
	_, err := read(httptest.NewRecorder(), iotest.OneByteReader(nil)) // whose reads panic
	assert.ErrorAs(t, err, new(*panics.Error))
}
