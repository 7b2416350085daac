package fleet_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded is a journal with switches, and what it is worth.
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
	for range 2 {
		r.specs = append(r.specs, fleet.Spec{ID: r.e.AddHead(headstest.Head{}), Label: "Lobby", Streaming: on()})
	}
	j := openJournal(t, r.path)
	r.moves = apply(t, r.e, fleet.Options{Concurrency: 1, Journal: j}, r.specs...).Moves()
	require.NoError(t, j.Close())
	require.Len(t, r.moves, len(r.specs))
	r.content = []byte(readFile(t, r.path))
	return r
}

// plan is a run with a journal of the given content. It changes nothing.
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
	refused := 0
	for i := range r.content {
		for bit := range 8 {
			content := bytes.Clone(r.content)
			content[i] ^= 1 << bit
			report, dropped, err := r.plan(t, content)
			if err != nil {
				refused++
				continue
			}
			require.Equal(t, r.moves, report.Moves(), "bit %d of byte %d", bit, i)
			require.Zero(t, dropped)
		}
	}
	t.Logf("%d flips, %d refused", 8*len(r.content), refused)
	assert.Positive(t, refused)
}

func TestNoTruncationOfAJournalGoesUnnoticed(t *testing.T) {
	r := newRecorded(t)
	_, _, err := r.plan(t, r.content)
	require.NoError(t, err)
	unrecorded := map[int]int{}
	for length := range r.content {
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
	header := bytes.IndexByte(r.content, '\n')
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

// The files of testdata were written by the version that introduced their format.
func TestAJournalOfFormat1IsReadAndRewritten(t *testing.T) {
	e, path := newEmulator(t), journalPath(t)
	require.NoError(t, os.WriteFile(path, []byte(readFile(t, "testdata/format1.jsonl")), 0o600))
	require.NoError(t, os.WriteFile(path+".new", []byte("left by a process that was killed"), 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	specs := []fleet.Spec{{ID: "11111111-0000-4000-8000-000000000000", Streaming: on()}, {ID: "22222222-0000-4000-8000-000000000000", Streaming: on()}}
	for _, spec := range specs {
		e.AddHead(headstest.Head{ID: spec.ID, VideoStreaming: true})
	}
	j := openJournal(t, link)
	planned, err := fleet.Plan(t.Context(), e.Client(), specs, fleet.Options{Journal: j})
	require.NoError(t, err)
	assert.Len(t, planned.Moves(), 2)
	assert.Equal(t, readFile(t, "testdata/format1.jsonl"), readFile(t, path), "a plan writes nothing")

	report := apply(t, e, fleet.Options{Journal: j}, specs...)
	assert.Equal(t, planned.Moves(), report.Moves())
	assert.Equal(t, "li-11111", report.Moves()[0].Old.PublicHeadID)
	assert.Equal(t, readFile(t, "testdata/format2.jsonl"), readFile(t, path))
	assert.NoFileExists(t, path+".new")
	_, err = fleet.OpenJournal(path)
	require.ErrorIs(t, err, fleet.ErrJournalInUse, "the new file is locked as the old one was")

	third := fleet.Spec{ID: e.AddHead(headstest.Head{}), Streaming: on()}
	assert.Len(t, apply(t, e, fleet.Options{Journal: j}, third).Moves(), 1)
	require.NoError(t, j.Close())
	report = apply(t, e, fleet.Options{Journal: openJournal(t, path)}, append(specs, third)...)
	assert.Len(t, report.Moves(), 3)
}

func TestARewrittenJournalStillAwaitsAnAcceptedSwitch(t *testing.T) {
	e, path := newEmulator(t), journalPath(t)
	id := e.AddHead(headstest.Head{})
	first := `{"head_id":"` + id + `","streaming":true,"old":{"base":"https://a","org_public_id":"o","head_public_id":"h"},"at":"2026-02-03T10:31:04Z"}` + "\n"
	back := strings.NewReplacer("true", "false", "10:31:04", "10:31:05").Replace(first)
	accepted := strings.Replace(first, `}`+"\n", `,"accepted":true}`+"\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(fleet.JournalHeaderFormat1+first+back+accepted), 0o600))
	j := openJournal(t, path)
	apply(t, e, fleet.Options{Journal: j}, fleet.Spec{ID: id, Delivery: on()}) // rewrites it
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
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.WriteFile(path, []byte(fleet.JournalHeader), 0o600))
	assert.ErrorIs(t, fleet.OpenFile(path, file), fleet.ErrJournalInUse)
}
