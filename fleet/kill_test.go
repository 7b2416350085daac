package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// children are the main functions of this program when a test starts it.
var children = map[string]func(){"apply": applyInChild, "open": openInChild}

func TestMain(m *testing.M) {
	if f, ok := children[os.Getenv("FLEET_TEST_CHILD")]; ok {
		f()
		return
	}
	os.Exit(m.Run())
}

// child returns a command that runs a main function of children.
func child(name string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "FLEET_TEST_CHILD="+name, "NO_PROXY=*"), env...)
	return cmd
}

// killedSpec is the spec of every head in the killed process.
func killedSpec(id string) fleet.Spec {
	return fleet.Spec{
		ID: id, Streaming: on(), Delivery: on(), Voice: &heads.Voice{Provider: "elevenlabs", ID: streamingVoice}, Set: map[string]any{"greetings": "Hello from " + id},
		Webhooks: []fleet.WebhookSpec{{URL: "https://hooks.example.com/heads", Events: []heads.EventType{heads.EventEndConversation}}},
	}
}

// applyInChild is the main function of the process that is killed.
func applyInChild() {
	err := func() error {
		client, err := heads.NewFromEnv()
		if err != nil {
			return err
		}
		var specs []fleet.Spec
		if err := json.Unmarshal([]byte(os.Getenv("FLEET_TEST_SPECS")), &specs); err != nil {
			return err
		}
		journal, err := fleet.OpenJournal(os.Getenv("FLEET_TEST_JOURNAL"))
		if err != nil {
			return err
		}
		report, err := fleet.Apply(context.Background(), client, specs, fleet.Options{Journal: journal})
		if err != nil {
			return err
		}
		file, err := os.Create(os.Getenv("FLEET_TEST_REPORT"))
		if err != nil {
			return err
		}
		return report.WriteJSON(file)
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// killer is an emulator that kills a process when it receives its n-th request.
type killer struct {
	*headstest.Emulator
	url string

	mu      sync.Mutex
	child   *exec.Cmd
	started chan struct{} // closed when the child is running
	left    int
	after   bool // kill it after the request took effect
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithoutCancel(r.Context())) // a request that was received takes effect
	k.mu.Lock()
	k.left--
	strikes, after, started := k.left == 0, k.after, k.started
	k.mu.Unlock()
	if !strikes || after {
		k.Emulator.ServeHTTP(w, r)
	}
	if strikes {
		<-started
		_ = k.child.Process.Kill()
	}
}

func newKiller(t *testing.T) *killer {
	k := &killer{Emulator: newEmulator(t)}
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	k.url = srv.URL
	return k
}

// run starts the process and kills it at its n-th request, unless n is 0.
func (k *killer) run(t *testing.T, dir string, specs []byte, n int, after bool) error {
	t.Helper()
	k.mu.Lock()
	k.left, k.after, k.started = n, after, make(chan struct{})
	k.child = child("apply", "HEADS_BASE_URL="+k.url, "HEADS_TOKEN="+k.BearerToken(), "FLEET_TEST_SPECS="+string(specs),
		"FLEET_TEST_JOURNAL="+filepath.Join(dir, "journal"), "FLEET_TEST_REPORT="+filepath.Join(dir, "report.json"))
	k.mu.Unlock()
	var out bytes.Buffer
	k.child.Stdout, k.child.Stderr = &out, &out
	require.NoError(t, k.child.Start())
	close(k.started)
	err := k.child.Wait()
	if n == 0 {
		require.NoError(t, err, out.String())
	}
	return err
}

func TestAProcessThatIsKilledAtAnyMomentResumes(t *testing.T) {
	const fleetSize = 60
	k := newKiller(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	total, killed, duplicates := 0, 0, 0
	for round := range exhaustive.Count(3, 21) { // the first is not killed
		k.Reset()
		old := map[string]string{}
		var specs []fleet.Spec
		for range fleetSize {
			id := k.AddHead(headstest.Head{TTSProvider: "polly"})
			address, err := heads.ParseAccessURL(get(t, k.Emulator, id).PublicURL.Reveal())
			require.NoError(t, err)
			old[id] = address.Base + "/" + address.PublicOrgID + "/" + address.PublicHeadID
			specs = append(specs, killedSpec(id))
		}
		document, err := json.Marshal(specs)
		require.NoError(t, err)
		before, dir := len(k.Requests()), t.TempDir()
		moment := 0
		if total > 0 { // the first round counts the requests
			moment = 1 + random.IntN(total)
		}
		if err := k.run(t, dir, document, moment, random.IntN(2) == 0); moment > 0 && err != nil {
			killed++
			k.run(t, dir, document, 0, false)
		}
		if round == 0 {
			total = len(k.Requests()) - before
		}
		var report struct {
			Counts map[fleet.Outcome]int `json:"counts"`
			Moves  []struct {
				HeadID string `json:"head_id"`
				Old    string `json:"old"`
				New    string `json:"new"`
			} `json:"moves"`
		}
		require.NoError(t, json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "report.json"))), &report))
		assert.Equal(t, fleetSize, report.Counts[fleet.OutcomeChanged]+report.Counts[fleet.OutcomeUnchanged])
		assert.Len(t, report.Moves, fleetSize, "killed at request %d", moment)
		for _, move := range report.Moves {
			assert.Equal(t, old[move.HeadID], move.Old)
			assert.NotEqual(t, move.Old, move.New)
		}
		changes := map[string]int{}
		for _, r := range k.Requests()[before:] {
			if r.Method != http.MethodGet && r.Status == http.StatusOK {
				changes[r.Method+" "+r.Path+" "+string(r.Body)]++
			}
		}
		for change, n := range changes {
			if n > 1 {
				duplicates++
				assert.Fail(t, "sent twice", "%s: %d times, killed at request %d", change, n, moment)
			}
		}
		for id := range old {
			head := get(t, k.Emulator, id)
			assert.True(t, head.VideoStreaming && head.EnableEvents && head.TTSVoice == streamingVoice && head.Greetings == "Hello from "+id, id)
		}
	}
	t.Logf("%d requests a run, %d processes killed, %d changes sent twice", total, killed, duplicates)
	assert.Positive(t, killed)
}
