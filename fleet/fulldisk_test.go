//go:build linux || darwin

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func init() { children["full"] = applyUntilFull }

// ending is what applyUntilFull prints.
type ending struct {
	TooLarge bool // the error is the system's EFBIG
	Outcomes []fleet.Outcome
	Reason   heads.Reason
}

// applyUntilFull is a process whose journal has room for only a part of the third record.
func applyUntilFull() {
	path := os.Getenv("FLEET_TEST_JOURNAL")
	var specs []fleet.Spec
	err := json.Unmarshal([]byte(os.Getenv("FLEET_TEST_SPECS")), &specs)
	must(err)
	client, err := heads.NewFromEnv()
	must(err)
	journal, err := fleet.OpenJournal(path)
	must(err)
	ended := 0
	report, err := fleet.Apply(context.Background(), client, specs, fleet.Options{Concurrency: 1, Journal: journal, OnResult: func(fleet.Result) {
		if ended++; ended == 2 {
			limitFiles(path)
		}
	}})
	must(json.NewEncoder(os.Stdout).Encode(ending{errors.Is(err, syscall.EFBIG), outcomesOf(report), report.Results[2].Reason}))
}

// limitFiles limits the size of every file of this process to a few bytes more than the given file
// has.
func limitFiles(path string) {
	info, err := os.Stat(path)
	must(err)
	var limit syscall.Rlimit
	must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = uint64(info.Size()) + 20
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestAFullDiskCutsTheRunShortBeforeTheNextSwitch(t *testing.T) {
	path := journalPath(t)
	e := newEmulator(t)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	specs := converting(e, 5)
	document, err := json.Marshal(specs)
	require.NoError(t, err)
	process := child("full", "HEADS_BASE_URL="+server.URL, "HEADS_TOKEN="+e.BearerToken(), "FLEET_TEST_SPECS="+string(document), "FLEET_TEST_JOURNAL="+path)
	process.Stderr = os.Stderr
	out, err := process.Output()
	require.NoError(t, err)
	var got ending
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	assert.Equal(t, ending{true, []fleet.Outcome{"changed", "changed", "failed", "skipped", "skipped"}, heads.ReasonTemporary}, got)
	for i, spec := range specs {
		assert.Equal(t, i < 2, get(t, e, spec.ID).VideoStreaming, i)
	}

	j := openJournal(t, path)
	assert.Zero(t, j.Dropped(), "the part that was written is gone")
	client, err := heads.New(server.URL, e.BearerToken())
	require.NoError(t, err)
	report, err := fleet.Apply(t.Context(), client, specs, fleet.Options{Journal: j})
	require.NoError(t, err)
	assert.Equal(t, 3, report.Count(fleet.OutcomeChanged))
	assert.Len(t, report.Moves(), 5, "nothing is forgotten")
}
