package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is also the program, which starts itself.
func TestMain(m *testing.M) {
	if os.Getenv("FLEET_AS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTheDemoResumesAfterItsKill(t *testing.T) {
	demo := exec.Command(os.Args[0])
	temp := t.TempDir()
	demo.Env = append(os.Environ(), "FLEET_AS_PROGRAM=1", "TMPDIR="+temp, "TMP="+temp)
	out, err := demo.CombinedOutput()
	require.NoError(t, err, string(out))
	text := string(out)
	assert.Contains(t, text, "Killed in the middle")
	assert.Equal(t, 1, strings.Count(text, "a new access URL"), "the first run never got there")
	assert.Regexp(t, `5 blocked, \d failed, 0 skipped; 5\d have a new access URL`, text)
	reports, err := filepath.Glob(filepath.Join(temp, "fleet*", "heads.html"))
	require.NoError(t, err)
	assert.Len(t, reports, 1)
}

func TestAPlanChangesNothing(t *testing.T) {
	service := headstest.NewServer()
	defer service.Close()
	on := true
	document, err := json.Marshal([]fleet.Spec{{ID: service.AddHead(headstest.Head{}), Streaming: &on}})
	require.NoError(t, err)
	dir := t.TempDir()
	specs := filepath.Join(dir, "heads.json")
	require.NoError(t, os.WriteFile(specs, document, 0o600))
	t.Setenv("HEADS_BASE_URL", service.URL)
	t.Setenv("HEADS_TOKEN", service.Token)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, []string{"-plan", "-specs", specs, "-journal", filepath.Join(dir, "j"), "-report", filepath.Join(dir, "r.html")}))
	assert.Contains(t, out.String(), "1 pending")
	for _, r := range service.Requests() {
		assert.Equal(t, "GET", r.Method)
	}
}
