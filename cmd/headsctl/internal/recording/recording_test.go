package recording_test

import (
	"fmt"
	"os"
	"path/filepath"
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
