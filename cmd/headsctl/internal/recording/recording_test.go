package recording_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

func TestTokenFillsWhatIsMasked(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "/a%20%2Fb/e?k=a+%2Fb", recording.Fill("/[redacted]/e?k=[redacted]", "a /b"))
}

func TestRecordedPathHoldsNoToken(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/h/correcthorsebatterystaple/get_weather_for_a_city": "/h/[redacted]/get_weather_for_a_city",
		"/h/0123456789abcdef": "/h/[redacted]",
	} {
		e, ok := recording.Classify(path, nil, []byte(`{"session_metadata":{}}`))
		require.True(t, ok)
		assert.Equal(t, want, e.Path)
	}
	e, ok := recording.Classify("/h/correcthorsebatterystaple", nil, []byte(`{"event_type":"a","head_id":"b"}`))
	require.True(t, ok)
	assert.Equal(t, "/h/[redacted]", e.Path)
}

func entry(n int) *recording.Entry {
	return &recording.Entry{
		Type: recording.KindEvent, ID: fmt.Sprint(n), At: time.Now().UTC(), Path: "/e", Headers: map[string]string{}, Body: recording.Text("{}"),
		Event: "end_conversation", Answer: recording.Answer{Status: 200, Body: recording.Text(strings.Repeat("x", 10_000)), By: recording.ByBackEnd},
	}
}

func read(t *testing.T, path string) (*recording.Recording, error) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	return recording.Read(file)
}

func TestLinesOfSeveralGoroutinesAreWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := recording.Open(path, time.Now())
	require.NoError(t, err)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for j := range 20 {
				assert.NoError(t, w.Append(entry(i*20+j), false))
			}
		})
	}
	writers.Wait()
	require.NoError(t, w.Close())
	r, err := read(t, path)
	require.NoError(t, err)
	assert.Len(t, r.Entries, 160)
}

// A program may be killed at any byte of what it writes.
func TestARecordingThatWasCutIsAppendedTo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := recording.Open(path, time.Now())
	require.NoError(t, err)
	require.NoError(t, w.Append(entry(1), true))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	large := entry(2)
	large.Body = recording.Text(strings.Repeat("é", 100_000)) // more than is read at once to find the last line
	require.NoError(t, w.Append(large, true))
	require.NoError(t, w.Close())
	both, err := os.ReadFile(path)
	require.NoError(t, err)
	for size, entries := range map[int]int{len(whole): 1, len(whole) + 1: 1, len(whole) + 70_000: 1, len(both) - 2: 1, len(both) - 1: 2, len(both): 2, len(whole) - 1: 1} {
		require.NoError(t, os.WriteFile(path, both[:size], 0o600))
		r, err := read(t, path)
		require.NoError(t, err)
		assert.Len(t, r.Entries, entries, "%d bytes", size)
		w, err := recording.Open(path, time.Now())
		require.NoError(t, err)
		require.NoError(t, w.Append(entry(3), true))
		require.NoError(t, w.Close())
		r, err = read(t, path)
		require.NoError(t, err, "%d bytes", size)
		assert.Len(t, r.Entries, entries+1, "%d bytes", size)
		assert.Zero(t, r.CutLine)
	}
}

func TestARecordingIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := recording.Open(filepath.Join(dir, "r"), time.Now())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644))
	require.NoError(t, os.Chmod(filepath.Join(dir, "r"), 0o644))
	for _, name := range []string{"r", "empty"} {
		w, err := recording.Open(filepath.Join(dir, name), time.Now())
		require.NoError(t, err)
		require.NoError(t, w.Close())
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("buy milk\n"), 0o644))
	_, err = recording.Open(filepath.Join(dir, "notes"), time.Now())
	require.Error(t, err)
	info, err := os.Stat(filepath.Join(dir, "notes"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "what is no recording stays as it is")
}

func TestABodyThatMayBeAnEventIsNoToolCall(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"order":"7","session_metadata":{}}`:                          true,
		`{"a":1,"A":2,"session_metadata":{"event_type":"x"}}`:          true,
		`{"EVENT_TYPE":"x","session_metadata":{}}`:                     false,
		`{"eventType":"x","session_metadata":{}}`:                      false,
		`{"Event-Type":"x","session_metadata":{}}`:                     false,
		`{"event type":"x","session_metadata":{}}`:                     false,
		`{"event\u005ftype":"","session_metadata":{}}`:                 false,
		`{"event_type":"x","session_metadata":{}}`:                     false,
		`{"order":"7","order":"8","session_metadata":{}}`:              false,
		`{"session_metadata":{},"session_metadata":{"head_id":"h"}}`:   false,
		`{"session_metadata":{},"event_type":"x","event_type":""}`:     false,
		`{"session_metadata":{},"\u006frder":"7","order":{"a":[1,2]}}`: false,
	} {
		_, ok := recording.Classify("/tools/x", nil, []byte(body))
		assert.Equal(t, want, ok, body)
	}
}

// FuzzWhatIsWrittenIsRead records what the listener takes from anyone.
func FuzzWhatIsWrittenIsRead(f *testing.F) {
	f.Add("/events?a=b", "text/x", []byte(`{"event_type":"A","head_id":1}`), 200, "text/plain", []byte("\xff\x00"))
	f.Add("/tools/%00%ff", "\xff", []byte("{\"session_metadata\":{\"head_id\":\"\\ud800\"},\"a\":\"\xff\u2028\"}"), 999, "\x7f", []byte("\u2028\r\n"))
	f.Fuzz(func(t *testing.T, path, header string, body []byte, status int, contentType string, answer []byte) {
		e, ok := recording.Classify("/"+path, http.Header{"User-Agent": {strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(header)}}, body)
		if !ok || status < 100 || status > 999 {
			return
		}
		e.ID, e.At = "1", time.Now().UTC()
		e.Answer = recording.Answer{Status: status, ContentType: contentType, Body: answer, By: recording.ByBackEnd}
		name := filepath.Join(t.TempDir(), "r")
		w, err := recording.Open(name, time.Now())
		require.NoError(t, err)
		require.NoError(t, w.Append(e, false))
		require.NoError(t, w.Close())
		file, err := os.Open(name)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		r, err := recording.Read(file)
		require.NoError(t, err)
		require.Empty(t, r.Faults)
		require.Len(t, r.Entries, 1)
		got, err := r.Load(r.Entries[0])
		require.NoError(t, err)
		assert.Equal(t, string(body), string(got.Body))
		assert.Equal(t, string(answer), string(got.Answer.Body))
	})
}

func TestNoLineIsWrittenThatIsTooLongToRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := recording.Open(path, time.Now())
	require.NoError(t, err)
	large := entry(1)
	large.Answer.ContentType = strings.Repeat("x", 17<<20)
	assert.EqualError(t, w.Append(large, true), "it takes more than 16 MiB")
	require.NoError(t, w.Append(entry(2), true))
	require.NoError(t, w.Close())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(strings.Repeat("x", 17<<20) + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	w, err = recording.Open(path, time.Now())
	require.NoError(t, err)
	require.NoError(t, w.Append(entry(3), true))
	require.NoError(t, w.Close())
	r, err := read(t, path)
	require.NoError(t, err)
	assert.Len(t, r.Entries, 2)
	require.Len(t, r.Faults, 1)
	assert.Equal(t, recording.LineError{Line: 3, Problem: "has more than 16 MiB"}, *r.Faults[0])
}

// What is read stays in the file until it is needed.
func TestReadKeepsNoBodies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := recording.Open(path, time.Now())
	require.NoError(t, err)
	for i := range 64 {
		e := entry(i)
		e.Body = recording.Text(strings.Repeat("b", 512<<10))
		require.NoError(t, w.Append(e, false))
	}
	require.NoError(t, w.Close())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := read(t, path)
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
	assert.Len(t, r.Entries, 64)
}

func TestRecordingsCanBePutTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []byte
	for i := range 2 {
		path := filepath.Join(dir, fmt.Sprint(i))
		w, err := recording.Open(path, time.Now())
		require.NoError(t, err)
		require.NoError(t, w.Append(entry(i), false))
		require.NoError(t, w.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, text...)
	}
	r, err := recording.Read(strings.NewReader(string(all)))
	require.NoError(t, err)
	assert.Len(t, r.Entries, 2)
	_, err = recording.Read(strings.NewReader(strings.Replace(string(all), `"version":1`, `"version":2`, 1)))
	var fault *recording.LineError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, 1, fault.Line)
}
