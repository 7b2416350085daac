package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
)

func journalPath(t testing.TB) string { return filepath.Join(t.TempDir(), "heads.journal") }

func openJournal(t testing.TB, path string) *fleet.Journal {
	t.Helper()
	j := need(fleet.OpenJournal(path))(t)
	t.Cleanup(func() { assert.NoError(t, j.Close()) })
	return j
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content := need(os.ReadFile(path))(t)
	return string(content)
}

func TestTheOldAccessURLIsOnDiskBeforeTheSwitchIsSent(t *testing.T) {
	for name, streaming := range map[string]*bool{"to streaming": on(), "to legacy": off()} {
		t.Run(name, func(t *testing.T) {
			e, id := withHead(t, headstest.Head{VideoStreaming: !*streaming})
			path, seen := journalPath(t), ""
			address := need(heads.ParseAccessURL(get(t, e, id).PublicURL.Reveal()))(t)
			client := e.Client(heads.WithObserver(heads.Observer[heads.Attempt]{End: func(_ context.Context, a heads.Attempt) {
				if a.Operation == "Heads.SetVideoStreaming" {
					seen = readFile(t, path)
				}
			}}))
			e.Inject(headstest.Fault{Method: "PUT", Route: "/head/{id}/video-streaming", Status: 400})
			report := need(fleet.Apply(context.Background(), client, []fleet.Spec{{ID: id, Streaming: streaming}}, fleet.Options{Journal: openJournal(t, path)}))(t)
			assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
			for _, part := range []string{id, address.PublicHeadID, address.Base} {
				assert.Contains(t, seen, part)
			}
			assert.NotContains(t, seen, address.APIKey.Reveal(), "a journal holds no key")
		})
	}
}

// As on a full disk.
func TestWithoutItsRecordASwitchIsNotSentAndNoHeadBegins(t *testing.T) {
	e, path := newEmulator(t), journalPath(t)
	specs := converting(e, 5)
	for i := range specs {
		specs[i].Voice = &heads.Voice{Provider: "elevenlabs", ID: streamingVoice}
	}
	j, done := openJournal(t, path), 0
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
	o.Journal, o.OnResult = openJournal(t, path), nil
	assert.Zero(t, o.Journal.Dropped(), "the part that was written is gone")
	report = apply(t, e, o, specs...)
	assert.Equal(t, 3, report.Count(fleet.OutcomeChanged))
	assert.Len(t, report.Moves(), 5, "nothing is forgotten")
}

// checksum matches the checksum of a record, which format 1 does not have.
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
	planned := need(fleet.Plan(context.Background(), e.Client(), []fleet.Spec{spec}, fleet.Options{Journal: j}))(t)
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

	report = apply(t, e, fleet.Options{Journal: j}, spec) // as a new process does
	assert.Equal(t, heads.ReasonAddress, report.Results[0].Reason)
	assert.Empty(t, report.Moves())

	client := e.Client(heads.WithAccessBases("https://chat.example.test", "https://stream.example.test"))
	report = need(fleet.Apply(context.Background(), client, []fleet.Spec{spec}, fleet.Options{Journal: j}))(t)
	assert.Equal(t, fleet.OutcomeUnchanged, report.Results[0].Outcome)
	assert.Len(t, report.Moves(), 1)
}

func TestOpenJournalRemovesACutLastLine(t *testing.T) {
	record := readFile(t, "testdata/formats/2.jsonl")
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
			j := need(fleet.OpenJournal(path))(t)
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

func TestAJournalIsARegularFileOfItsOwner(t *testing.T) {
	_, err := fleet.OpenJournal(os.DevNull)
	require.ErrorIs(t, err, heads.ErrInvalid)
	assert.ErrorContains(t, err, "not a regular file")

	path := journalPath(t)
	openJournal(t, path)
	info := need(os.Stat(path))(t)
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
	e, id := withHead(t, headstest.Head{})
	j := openJournal(t, journalPath(t))
	require.NoError(t, j.Close())
	report, err := fleet.Apply(context.Background(), e.Client(), []fleet.Spec{{ID: id, Streaming: on()}}, fleet.Options{Journal: j})
	assert.ErrorContains(t, err, "closed")
	assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
	assert.Empty(t, writes(since(e, 0)))
}

// openInChild is the child process of TestAJournalInUseIsRefusedHereAndInAnotherProcess.
func openInChild() {
	_, err := fleet.OpenJournal(os.Getenv("FLEET_TEST_JOURNAL"))
	fmt.Println("in use:", strings.Contains(fmt.Sprint(err), fleet.ErrJournalInUse.Error()))
}

// recorded is a journal with switches, and the moves that it must give.
type recorded struct {
	e       *headstest.Emulator
	path    string
	content []byte
	specs   []fleet.Spec
	moves   []fleet.Move
}

func newRecorded(t *testing.T) recorded {
	t.Helper()
	r := recorded{e: newEmulator(t), path: journalPath(t)}
	r.specs = converting(r.e, 2)
	j := openJournal(t, r.path)
	r.moves = apply(t, r.e, fleet.Options{Concurrency: 1, Journal: j}, r.specs...).Moves()
	require.NoError(t, j.Close())
	require.Len(t, r.moves, len(r.specs))
	r.content = []byte(readFile(t, r.path))
	return r
}

// plan runs Plan with a journal of the given content.
func (r recorded) plan(t *testing.T, content []byte) (report *fleet.Report, dropped int, err error) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.path, content, 0o600))
	j, err := fleet.OpenJournal(r.path)
	if err == nil {
		dropped = j.Dropped()
		report, err = fleet.Plan(t.Context(), r.e.Client(), r.specs, fleet.Options{Journal: j})
		require.NoError(t, j.Close())
	}
	if err != nil {
		require.ErrorIs(t, err, heads.ErrInvalid)
		require.Equal(t, string(content), readFile(t, r.path), "a journal that is refused stays as it is")
	}
	return report, dropped, err
}

func TestNoFlippedBitOfAJournalChangesWhatItSays(t *testing.T) {
	r := newRecorded(t)
	tried, refused := 0, 0
	for i := range 8 * len(r.content) {
		if !exhaustive.Takes(i, 11) {
			continue
		}
		tried++
		content := bytes.Clone(r.content)
		content[i/8] ^= 1 << (i % 8)
		report, dropped, err := r.plan(t, content)
		if err != nil {
			refused++
			continue
		}
		require.Equal(t, r.moves, report.Moves(), "bit %d of byte %d", i%8, i/8)
		require.Zero(t, dropped)
	}
	t.Logf("%d flips, %d refused", tried, refused)
	assert.Positive(t, refused)
}

func TestNoTruncationOfAJournalGoesUnnoticed(t *testing.T) {
	r := newRecorded(t)
	_, _, err := r.plan(t, r.content)
	require.NoError(t, err)
	unrecorded := map[int]int{}
	header := bytes.IndexByte(r.content, '\n')
	for length := range r.content {
		if length > header+1 && !exhaustive.Takes(length, 11) {
			continue
		}
		report, _, err := r.plan(t, r.content[:length])
		require.NoError(t, err, "%d of %d bytes", length, len(r.content))
		moves, unknown := report.Moves(), report.Unrecorded()
		require.Equal(t, r.moves[:len(moves)], append([]fleet.Move{}, moves...))
		require.Len(t, unknown, len(r.specs)-len(moves), "%d bytes", length)
		for i, id := range unknown {
			require.Equal(t, r.specs[len(moves)+i].ID, id)
		}
		unrecorded[len(unknown)]++
	}
	t.Logf("%d truncations, by how many heads they tell of: %v", len(r.content), unrecorded)
	assert.Greater(t, unrecorded[2], header, "the header alone, and less")
}

func TestNoHeadIsUnrecordedWithoutAJournalOrAWish(t *testing.T) {
	r := newRecorded(t)
	report := apply(t, r.e, fleet.Options{}, r.specs...)
	assert.Empty(t, report.Unrecorded())
	report = apply(t, r.e, fleet.Options{Journal: openJournal(t, journalPath(t))}, fleet.Spec{ID: r.specs[0].ID, Delivery: on()})
	assert.Empty(t, report.Unrecorded())
	report = apply(t, r.e, fleet.Options{Journal: openJournal(t, journalPath(t))}, fleet.Spec{ID: r.e.AddHead(headstest.Head{}), Streaming: off()})
	assert.Empty(t, report.Unrecorded(), "a legacy head has no other access URL")
}

func TestAJournalOfAnotherServiceIsRefusedWithBothAddresses(t *testing.T) {
	e, path := newEmulator(t), journalPath(t)
	j := openJournal(t, path)
	spec := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
	at := func(baseURL string) error {
		client, err := heads.New(baseURL, e.BearerToken(), heads.WithHTTPClient(&http.Client{Transport: e.Transport()}))
		require.NoError(t, err)
		_, planned := fleet.Plan(t.Context(), client, []fleet.Spec{spec}, fleet.Options{Journal: j})
		_, err = fleet.Apply(t.Context(), client, []fleet.Spec{spec}, fleet.Options{Journal: j})
		if err != nil {
			assert.EqualError(t, err, strings.Replace(planned.Error(), "Plan", "Apply", 1))
		}
		return err
	}
	require.NoError(t, at("https://api.example.com/v1"))
	assert.True(t, strings.HasPrefix(readFile(t, path), `{"format":"heads-fleet-journal","version":2,"base_url":"https://api.example.com/v1"}`+"\n"))
	for _, same := range []string{"https://API.example.com/v1/", "https://api.example.com:443/v1"} {
		assert.NoError(t, at(same), same)
	}
	before := readFile(t, path)
	sent := len(e.Requests())
	for _, other := range []string{"https://staging.example.com/v1", "https://api.example.com", "https://api.example.com:8443/v1"} {
		err := at(other)
		require.ErrorIs(t, err, heads.ErrInvalid, other)
		assert.ErrorContains(t, err, "https://api.example.com/v1, not to "+other+";")
		assert.ErrorContains(t, err, path)
	}
	assert.Len(t, e.Requests(), sent, "nothing is sent")
	assert.Equal(t, before, readFile(t, path))

	require.NoError(t, j.Close())
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(before, "https://api.example.com/v1", "https://new.example.com/", 1)), 0o600))
	j = openJournal(t, path)
	assert.NoError(t, at("https://new.example.com"), "the service has moved, and its first line was changed")
}

func TestAJournalOfFormat1IsReadAndRewritten(t *testing.T) {
	e, folder, old := newEmulator(t), t.TempDir(), readFile(t, "testdata/formats/1.jsonl")
	path, target, mine := filepath.Join(folder, "journal"), filepath.Join(folder, "target"), filepath.Join(folder, "mine")
	require.NoError(t, os.WriteFile(target, []byte(old), 0o600))
	require.NoError(t, os.Symlink("target", path), "the journal itself may be one")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink("mine", target+".new"), "no other symlink is followed")
	specs := []fleet.Spec{{ID: "11111111-0000-4000-8000-000000000000", Streaming: on()}, {ID: "22222222-0000-4000-8000-000000000000", Streaming: on()}}
	for _, spec := range specs {
		e.AddHead(headstest.Head{ID: spec.ID, VideoStreaming: true})
	}
	o := fleet.Options{Journal: openJournal(t, path)}
	planned, err := fleet.Plan(t.Context(), e.Client(), specs, o)
	require.NoError(t, err)
	assert.Len(t, planned.Moves(), 2)
	assert.Equal(t, old, readFile(t, path), "a plan writes nothing")

	report := apply(t, e, o, specs...)
	assert.Equal(t, planned.Moves(), report.Moves())
	assert.Equal(t, "li-11111", report.Moves()[0].Old.PublicHeadID)
	assert.Equal(t, readFile(t, "testdata/formats/2.jsonl"), readFile(t, target))
	assert.Equal(t, "mine", readFile(t, mine))
	assert.NoFileExists(t, target+".new")
	_, err = fleet.OpenJournal(path)
	require.ErrorIs(t, err, fleet.ErrJournalInUse, "the new file is locked as the old one was")
}

func TestARewrittenJournalStillAwaitsAnAcceptedSwitch(t *testing.T) {
	e, path := newEmulator(t), journalPath(t)
	id := e.AddHead(headstest.Head{})
	first := `{"head_id":"` + id + `","streaming":true,"old":{"base":"https://a","org_public_id":"o","head_public_id":"h"},"at":"2026-02-03T10:31:04Z"}` + "\n"
	back := strings.NewReplacer("true", "false", "10:31:04", "10:31:05").Replace(first)
	accepted := strings.Replace(first, `}`+"\n", `,"accepted":true}`+"\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(fleet.JournalHeaderFormat1+first+back+accepted), 0o600))
	j := openJournal(t, path)
	apply(t, e, fleet.Options{Journal: j}, fleet.Spec{ID: id, Delivery: on()}) // rewrites the journal
	require.NoError(t, j.Close())
	require.Contains(t, readFile(t, path), `"version":2`)

	sent := len(e.Requests())
	o := fleet.Options{Journal: openJournal(t, path), Convert: heads.ConvertOptions{ConfirmTimeout: time.Millisecond}}
	assert.Equal(t, heads.ReasonUnknownOutcome, apply(t, e, o, fleet.Spec{ID: id, Streaming: on()}).Results[0].Reason)
	assert.Empty(t, writes(since(e, sent)), "an accepted switch is not sent again")
}

func TestAFileThatAnotherProcessHasReplacedIsNotTheJournal(t *testing.T) {
	path := journalPath(t)
	require.NoError(t, openJournal(t, path).Close())
	file := need(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer file.Close()
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.WriteFile(path, []byte(fleet.JournalHeader), 0o600))
	assert.ErrorIs(t, fleet.OpenFile(path, file), fleet.ErrJournalInUse)
}

// The files of testdata were written by the version that introduced their format.
func TestJournalsOfEveryFormatAreContinued(t *testing.T) {
	files := need(os.ReadDir("testdata/formats"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		e, path := newEmulator(t), journalPath(t)
		require.NoError(t, os.WriteFile(path, []byte(readFile(t, "testdata/formats/"+file.Name())), 0o600))
		first := fleet.Spec{ID: e.AddHead(headstest.Head{ID: "11111111-0000-4000-8000-000000000000", VideoStreaming: true}), Streaming: on()}
		j := openJournal(t, path)
		assert.Len(t, apply(t, e, fleet.Options{Journal: j}, first).Moves(), 1, file.Name())
		second := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
		apply(t, e, fleet.Options{Journal: j}, second)
		require.NoError(t, j.Close())
		assert.Len(t, apply(t, e, fleet.Options{Journal: openJournal(t, path)}, first, second).Moves(), 2, file.Name())
	}
}
