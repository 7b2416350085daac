package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func journalPath(t testing.TB) string { return filepath.Join(t.TempDir(), "heads.journal") }

func openJournal(t testing.TB, path string) *fleet.Journal {
	t.Helper()
	j, err := fleet.OpenJournal(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, j.Close()) })
	return j
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

func TestTheOldAccessURLIsOnDiskBeforeTheSwitchIsSent(t *testing.T) {
	for name, streaming := range map[string]*bool{"to streaming": on(), "to legacy": off()} {
		t.Run(name, func(t *testing.T) {
			path := journalPath(t)
			e := newEmulator(t)
			id := e.AddHead(headstest.Head{VideoStreaming: !*streaming})
			before := get(t, e, id)
			address, err := heads.ParseAccessURL(before.PublicURL.Reveal())
			require.NoError(t, err)
			seen := ""
			client := e.Client(heads.WithObserver(heads.Observer[heads.Attempt]{End: func(_ context.Context, a heads.Attempt) {
				if a.Operation == "Heads.SetVideoStreaming" {
					seen = readFile(t, path)
				}
			}}))
			j := openJournal(t, path)
			e.Inject(headstest.Fault{Method: "PUT", Route: "/head/{id}/video-streaming", Status: 400})
			report, err := fleet.Apply(context.Background(), client, []fleet.Spec{{ID: id, Streaming: streaming}}, fleet.Options{Journal: j})
			require.NoError(t, err)
			assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
			assert.Contains(t, seen, id)
			assert.Contains(t, seen, address.PublicHeadID)
			assert.Contains(t, seen, address.Base)
			assert.NotContains(t, seen, address.APIKey.Reveal(), "a journal holds no key")
		})
	}
}

func TestWithoutItsRecordASwitchIsNotSentAndNoHeadBegins(t *testing.T) {
	path := journalPath(t)
	e := newEmulator(t)
	var specs []fleet.Spec
	for range 5 {
		specs = append(specs, fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on(), Voice: &heads.Voice{Provider: "elevenlabs", ID: streamingVoice}})
	}
	j := openJournal(t, path)
	done := 0
	o := fleet.Options{Concurrency: 1, Journal: j, OnResult: func(fleet.Result) {
		if done++; done == 2 {
			j.FailWrites(syscall.ENOSPC)
		}
	}}
	report, err := fleet.Apply(context.Background(), e.Client(), specs, o)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NotNil(t, report)
	assert.Equal(t, []fleet.Outcome{"changed", "changed", "failed", "skipped", "skipped"}, outcomesOf(report))
	assert.Equal(t, heads.ReasonTemporary, report.Results[2].Reason)
	third := get(t, e, specs[2].ID)
	assert.False(t, third.VideoStreaming)
	assert.Equal(t, "azure", third.TTSProvider, "nothing is half done")

	require.NoError(t, j.Close())
	again := openJournal(t, path)
	assert.Zero(t, again.Dropped(), "the part that was written is gone")
	o.Journal, o.OnResult = again, nil
	report, err = fleet.Apply(context.Background(), e.Client(), specs, o)
	require.NoError(t, err)
	assert.Equal(t, 3, report.Count(fleet.OutcomeChanged))
	assert.Len(t, report.Moves(), 5, "nothing is forgotten")
}

// checksum is what a record of format 1 does not have.
var checksum = regexp.MustCompile(`,"crc32c":"[0-9a-f]{8}"`)

func TestMovesHoldTheSwitchesOfEarlierRuns(t *testing.T) {
	path := journalPath(t)
	e := newEmulator(t)
	spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Label: "Lobby", Streaming: on()}
	j := openJournal(t, path)
	first := apply(t, e, fleet.Options{Journal: j}, spec).Moves()
	require.NoError(t, j.Close())
	require.Len(t, first, 1)

	_, records, _ := strings.Cut(checksum.ReplaceAllString(readFile(t, path), ""), "\n")
	content := fleet.JournalHeaderFormat1 + strings.ReplaceAll(records, spec.ID, strings.ToUpper(spec.ID)) // the case of an id is ignored
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	j = openJournal(t, path)
	report := apply(t, e, fleet.Options{Journal: j}, spec)
	assert.Equal(t, fleet.OutcomeUnchanged, report.Results[0].Outcome)
	assert.Equal(t, first, report.Moves(), "the key is that of the new access URL")
	planned, err := fleet.Plan(context.Background(), e.Client(), []fleet.Spec{spec}, fleet.Options{Journal: j})
	require.NoError(t, err)
	assert.Equal(t, first, planned.Moves())

	spec.Streaming = nil
	assert.Empty(t, apply(t, e, fleet.Options{Journal: j}, spec).Moves(), "no direction is wanted")
	spec.Streaming = off()
	back := apply(t, e, fleet.Options{Journal: j}, spec).Moves()
	require.Len(t, back, 1)
	assert.Equal(t, first[0].New, back[0].Old)
	assert.Equal(t, first[0].Old, back[0].New)
}

func TestAnAccessURLThatStaysIsNoMove(t *testing.T) {
	e := newEmulator(t, headstest.WithStaleAddresses())
	spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on(), Delivery: on()}
	j := openJournal(t, journalPath(t))
	report := apply(t, e, fleet.Options{Journal: j}, spec)
	assert.Equal(t, heads.ReasonAddress, report.Results[0].Reason)
	assert.NotZero(t, report.Results[0].Before)
	assert.Zero(t, report.Results[0].After)
	assert.True(t, get(t, e, spec.ID).EnableEvents, "the steps after it are done")

	report = apply(t, e, fleet.Options{Journal: j}, spec) // as a new process would
	assert.Equal(t, heads.ReasonAddress, report.Results[0].Reason)
	assert.Empty(t, report.Moves())

	client := e.Client(heads.WithAccessBases("https://chat.example.test", "https://stream.example.test"))
	report, err := fleet.Apply(context.Background(), client, []fleet.Spec{spec}, fleet.Options{Journal: j})
	require.NoError(t, err)
	assert.Equal(t, fleet.OutcomeUnchanged, report.Results[0].Outcome)
	assert.Len(t, report.Moves(), 1)
}

func TestOpenJournalRemovesACutLastLine(t *testing.T) {
	record := readFile(t, "testdata/format2.jsonl")
	record = record[strings.Index(record, "\n")+1:]
	record = record[:strings.Index(record, "\n")+1]
	for name, tt := range map[string]struct {
		content, left string
		dropped       int
	}{
		"new":                {"", "", 0},
		"a part of header":   {fleet.JournalHeader[:20], "", 20},
		"a part of base URL": {fleet.JournalHeader[:70], "", 70},
		"no header end":      {strings.TrimSuffix(fleet.JournalHeader, "\n"), "", len(fleet.JournalHeader) - 1},
		"part of format 1":   {fleet.JournalHeaderFormat1[:44], "", 44},
		"no record":          {fleet.JournalHeader, fleet.JournalHeader, 0},
		"whole":              {fleet.JournalHeader + record, fleet.JournalHeader + record, 0},
		"cut record":         {fleet.JournalHeader + record + record[:50], fleet.JournalHeader + record, 50},
		"no line end":        {fleet.JournalHeader + record[:len(record)-1], fleet.JournalHeader + record, 0},
		"zero bytes":         {fleet.JournalHeader + record + "\x00\x00\x00", fleet.JournalHeader + record, 3},
		"long":               {fleet.JournalHeader + strings.Repeat(record, 200) + "{", fleet.JournalHeader + strings.Repeat(record, 200), 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := journalPath(t)
			require.NoError(t, os.WriteFile(path, []byte(tt.content), 0o600))
			j, err := fleet.OpenJournal(path)
			require.NoError(t, err)
			assert.Equal(t, tt.dropped, j.Dropped())
			require.NoError(t, j.Close())
			assert.Equal(t, tt.left, readFile(t, path))
		})
	}
}

func TestAFileOfAnotherFormatIsRefusedUntouched(t *testing.T) {
	for name, content := range map[string]string{
		"text":        "3fa85f64-5717-4562-b3fc-2c963f66afa6,Lobby\n",
		"no line end": "3fa85f64",
		"version":     strings.Replace(fleet.JournalHeader, `:2,`, `:3,`, 1),
		"no base URL": strings.Replace(fleet.JournalHeader, `https://api.example.com`, ``, 1),
		"no checksum": fleet.JournalHeader + `{"head_id":"3fa85f64-5717-4562-b3fc-2c963f66afa6","streaming":true,"old":{"base":"https://a"}}` + "\n",
		"report":      "{\n  \"started\": 1\n}\n",
		"a bad line":  fleet.JournalHeader + "{}\n",
		"long line":   strings.Repeat("x", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			path := journalPath(t)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err := fleet.OpenJournal(path)
			require.ErrorIs(t, err, heads.ErrInvalid)
			assert.ErrorContains(t, err, path)
			assert.Equal(t, content, readFile(t, path))
		})
	}
}

func TestAJournalIsARegularFile(t *testing.T) {
	_, err := fleet.OpenJournal(os.DevNull)
	require.ErrorIs(t, err, heads.ErrInvalid)
	assert.ErrorContains(t, err, "not a regular file")
}

func TestAJournalIsReadableByItsOwnerOnly(t *testing.T) {
	path := journalPath(t)
	openJournal(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestAJournalInUseIsRefusedHereAndInAnotherProcess(t *testing.T) {
	path := journalPath(t)
	j := openJournal(t, path)
	_, err := fleet.OpenJournal(path)
	require.ErrorIs(t, err, fleet.ErrJournalInUse)
	assert.ErrorContains(t, err, path)

	out, err := child("open", "FLEET_TEST_JOURNAL="+path).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "in use: true")

	require.NoError(t, j.Close())
	openJournal(t, path)
}

func TestNoSwitchIsSentAfterTheJournalIsClosed(t *testing.T) {
	e := newEmulator(t)
	j := openJournal(t, journalPath(t))
	require.NoError(t, j.Close())
	id := e.AddHead(headstest.Head{})
	report, err := fleet.Apply(context.Background(), e.Client(), []fleet.Spec{{ID: id, Streaming: on()}}, fleet.Options{Journal: j})
	assert.ErrorContains(t, err, "closed")
	assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
	assert.Empty(t, writes(since(e, 0)))
}

// openInChild is the child of TestAJournalInUseIsRefusedHereAndInAnotherProcess.
func openInChild() {
	_, err := fleet.OpenJournal(os.Getenv("FLEET_TEST_JOURNAL"))
	fmt.Println("in use:", strings.Contains(fmt.Sprint(err), fleet.ErrJournalInUse.Error()))
}
