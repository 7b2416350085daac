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
	assert.Equal(t, "/a%20%2Fb/e?k=a+%2Fb", recording.Fill("/[redacted]/e?k=[redacted]", "a /b"))
}

func TestRecordedPathHoldsNoToken(t *testing.T) {
	const call, event = `{"session_metadata":{}}`, `{"event_type":"a","head_id":"b"}`
	for _, row := range [][3]string{
		{"/h/correcthorsebatterystaple/get_weather_for_a_city", call, "/h/[redacted]/get_weather_for_a_city"},
		{"/h/0123456789abcdef", call, "/h/[redacted]"}, {"/h/correcthorsebatterystaple", event, "/h/[redacted]"},
	} {
		e, ok := recording.Classify(row[0], nil, []byte(row[1]))
		require.True(t, ok)
		assert.Equal(t, row[2], e.Path)
	}
}

func entry(n int) *recording.Entry {
	return &recording.Entry{
		Type: recording.KindEvent, ID: fmt.Sprint(n), At: time.Now().UTC(), Path: "/e", Headers: map[string]string{}, Body: recording.Text("{}"),
		Event: "end_conversation", Answer: recording.Answer{Status: 200, Body: recording.Text(strings.Repeat("x", 10_000)), By: recording.ByBackEnd},
	}
}

func read(t *testing.T, path string) *recording.Recording {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	r, err := recording.Read(file)
	require.NoError(t, err)
	return r
}

func open(t *testing.T, path string) *recording.Writer {
	t.Helper()
	w, err := recording.Open(path, time.Now())
	require.NoError(t, err)
	return w
}

// write appends entries to a recording.
func write(t *testing.T, path string, entries ...*recording.Entry) {
	t.Helper()
	w := open(t, path)
	for _, e := range entries {
		require.NoError(t, w.Append(e, true))
	}
	require.NoError(t, w.Close())
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}

func TestLinesOfSeveralGoroutinesAreWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w := open(t, path)
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
	assert.Len(t, read(t, path).Entries, 160)
}

// A program may be killed at any byte of what it writes.
func TestARecordingThatWasCutIsAppendedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	write(t, path, entry(1))
	whole := contents(t, path)
	large := entry(2)
	large.Body = recording.Text(strings.Repeat("é", 100_000)) // more than is read at once to find the last line
	write(t, path, large)
	both := contents(t, path)
	for size, entries := range map[int]int{len(whole): 1, len(whole) + 1: 1, len(whole) + 70_000: 1, len(both) - 2: 1, len(both) - 1: 2, len(both): 2, len(whole) - 1: 1} {
		require.NoError(t, os.WriteFile(path, both[:size], 0o600))
		assert.Len(t, read(t, path).Entries, entries, "%d bytes", size)
		write(t, path, entry(3))
		r := read(t, path)
		assert.Len(t, r.Entries, entries+1, "%d bytes", size)
		assert.Zero(t, r.CutLine)
	}
}

func TestARecordingIsForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	r, empty, notes := filepath.Join(dir, "r"), filepath.Join(dir, "empty"), filepath.Join(dir, "notes")
	write(t, r)
	require.NoError(t, os.Chmod(r, 0o644))
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	require.NoError(t, os.WriteFile(notes, []byte("buy milk\n"), 0o644))
	write(t, empty)
	write(t, r)
	_, err := recording.Open(notes, time.Now())
	require.Error(t, err)
	for path, mode := range map[string]os.FileMode{r: 0o600, empty: 0o600, notes: 0o644} { // what is no recording stays as it is
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), path)
	}
}

func TestABodyThatMayBeAnEventIsNoToolCall(t *testing.T) {
	for body, want := range map[string]bool{
		`{"order":"7","session_metadata":{}}`: true, `{"a":1,"A":2,"session_metadata":{"event_type":"x"}}`: true,
		`{"EVENT_TYPE":"x","session_metadata":{}}`: false, `{"eventType":"x","session_metadata":{}}`: false, `{"Event-Type":"x","session_metadata":{}}`: false,
		`{"event type":"x","session_metadata":{}}`: false, `{"event\u005ftype":"","session_metadata":{}}`: false,
		`{"event_type":"x","session_metadata":{}}`: false, `{"order":"7","order":"8","session_metadata":{}}`: false,
		`{"session_metadata":{},"session_metadata":{"head_id":"h"}}`: false, `{"session_metadata":{},"event_type":"x","event_type":""}`: false,
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
		write(t, name, e)
		r := read(t, name)
		require.Empty(t, r.Faults)
		require.Len(t, r.Entries, 1)
		got, err := r.Load(r.Entries[0])
		require.NoError(t, err)
		assert.Equal(t, string(body), string(got.Body))
		assert.Equal(t, string(answer), string(got.Answer.Body))
	})
}

func TestNoLineIsWrittenThatIsTooLongToRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w := open(t, path)
	large := entry(1)
	large.Answer.ContentType = strings.Repeat("x", 17<<20)
	assert.EqualError(t, w.Append(large, true), "it takes more than 16 MiB")
	require.NoError(t, w.Append(entry(2), true))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, append(contents(t, path), strings.Repeat("x", 17<<20)+"\n"...), 0o600))
	write(t, path, entry(3))
	r := read(t, path)
	assert.Len(t, r.Entries, 2)
	require.Len(t, r.Faults, 1)
	assert.Equal(t, recording.LineError{Line: 3, Problem: "has more than 16 MiB"}, *r.Faults[0])
}

// What is read stays in the file until it is needed.
func TestReadKeepsNoBodies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	for i := range 64 {
		e := entry(i)
		e.Body = recording.Text(strings.Repeat("b", 512<<10))
		write(t, path, e)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := read(t, path)
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
	assert.Len(t, r.Entries, 64)
}

func TestRecordingsCanBePutTogether(t *testing.T) {
	path, all := filepath.Join(t.TempDir(), "r.jsonl"), ""
	for i := range 2 {
		require.NoError(t, os.RemoveAll(path))
		write(t, path, entry(i))
		all += string(contents(t, path))
	}
	r, err := recording.Read(strings.NewReader(all))
	require.NoError(t, err)
	assert.Len(t, r.Entries, 2)
	_, err = recording.Read(strings.NewReader(strings.Replace(all, `"version":1`, `"version":2`, 1)))
	var fault *recording.LineError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, 1, fault.Line)
}
