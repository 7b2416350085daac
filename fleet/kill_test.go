package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
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
	var specs []fleet.Spec
	must(json.Unmarshal([]byte(os.Getenv("FLEET_TEST_SPECS")), &specs))
	client, err := heads.NewFromEnv()
	must(err)
	journal, err := fleet.OpenJournal(os.Getenv("FLEET_TEST_JOURNAL"))
	must(err)
	report, err := fleet.Apply(context.Background(), client, specs, fleet.Options{Journal: journal})
	must(err)
	file, err := os.Create(os.Getenv("FLEET_TEST_REPORT"))
	must(err)
	must(report.WriteJSON(file))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
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
	k := &killer{Emulator: newEmulator(t)}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.url = server.URL
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	total, killed := 0, 0
	for round := range exhaustive.Count(3, 9) { // the first is not killed
		k.Reset()
		old := map[string]string{}
		var specs []fleet.Spec
		for range fleetSize {
			id := k.AddHead(headstest.Head{TTSProvider: "polly"})
			address := need(heads.ParseAccessURL(get(t, k.Emulator, id).PublicURL.Reveal()))(t)
			old[id] = address.Base + "/" + address.PublicOrgID + "/" + address.PublicHeadID
			specs = append(specs, killedSpec(id))
		}
		document := need(json.Marshal(specs))(t)
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
			Counts map[fleet.Outcome]int
			Moves  []map[string]string
		}
		require.NoError(t, json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "report.json"))), &report))
		assert.Equal(t, fleetSize, report.Counts[fleet.OutcomeChanged]+report.Counts[fleet.OutcomeUnchanged])
		assert.Len(t, report.Moves, fleetSize, "killed at request %d", moment)
		for _, move := range report.Moves {
			assert.Equal(t, old[move["head_id"]], move["old"])
			assert.NotEqual(t, move["old"], move["new"])
		}
		changes := map[string]int{}
		for _, r := range k.Requests()[before:] {
			if change := r.Method + " " + r.Path + " " + string(r.Body); r.Method != http.MethodGet && r.Status == http.StatusOK {
				changes[change]++
				assert.Equal(t, 1, changes[change], "%s, killed at request %d", change, moment)
			}
		}
		for id := range old {
			head := get(t, k.Emulator, id)
			assert.True(t, head.VideoStreaming && head.EnableEvents && head.TTSVoice == streamingVoice && head.Greetings == "Hello from "+id, id)
		}
	}
	t.Logf("%d requests a run, %d processes killed", total, killed)
	assert.Positive(t, killed)
}
