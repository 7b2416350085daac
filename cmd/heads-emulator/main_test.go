package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnnouncementSaysHowToReachTheEmulator(t *testing.T) {
	p := start(t, "-token", "given")
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+$`, p.BaseURL)
	assert.Equal(t, announcement{p.BaseURL, p.BaseURL + "/_emulator/", p.BaseURL + "/_emulator/", "given", true, false, p.Added}, p.announcement)
	p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
	p.Token = "other"
	p.api("GET", "/head/"+p.Heads[0], "").refused(t, 401, "Bearer")
	one, other := start(t).Token, start(t).Token
	assert.NotEmpty(t, one, "generated")
	assert.NotEqual(t, one, other)
	first := start(t, "-seed", "7").Token
	assert.Equal(t, first, start(t, "-seed", "7").Token)
}

func TestLinesAreForAShell(t *testing.T) {
	a := announcement{BaseURL: "http://127.0.0.1:1", ControlURL: "http://127.0.0.1:1/_emulator/", Token: "it's"}
	a.Heads = []string{"one", "two"}
	text := a.lines()
	for _, says := range []string{"export HEADS_BASE_URL='http://127.0.0.1:1'\nexport HEADS_TOKEN='it'\\''s'\nexport HEADS_HEAD_ID='one'\n",
		"two", a.ControlURL, "plain http"} {
		assert.Contains(t, text, says)
	}
	assert.NotContains(t, text, "Other machines")
	for line := range strings.Lines(text) {
		assert.Regexp(t, "^(#|export )", line, "a shell takes every line")
	}
	a.Exposed = true
	assert.Contains(t, a.lines(), "Other machines")
}

func TestFiveHeadsAreAnnouncedAndThenANumber(t *testing.T) {
	a := announcement{}
	for n := range 20 {
		a.Heads = append(a.Heads, fmt.Sprintf("head-%02d", n))
		text := a.lines()
		assert.Equal(t, min(n+1, 5), strings.Count(text, "head-"), "%d heads", n+1)
		assert.Equal(t, n >= 5, strings.Contains(text, "more"), "%d heads", n+1)
	}
	assert.Contains(t, a.lines(), "export HEADS_HEAD_ID='head-00'\n# another head: head-01\n")
	assert.Contains(t, a.lines(), "# another head: head-04\n# and 15 more, of 20 heads in all\n")
	assert.Len(t, start(t, "-seed-file", writeFile(t, `{"heads":[{},{},{},{},{},{},{}]}`)).Heads, 7, "programs read all of them")
}

func TestListeningBeyondLoopbackNeedsItsFlag(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "192.0.2.1:0", "[::]:0"} {
		var out bytes.Buffer
		require.ErrorContains(t, startAndStop(t, &out, io.Discard, "-addr", addr), "-expose-to-network", addr)
		assert.Empty(t, out.String())
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		assert.NoError(t, startAndStop(t, io.Discard, io.Discard, "-addr", addr), addr)
	}
	p := start(t, "-addr", "0.0.0.0:0", "-expose-to-network")
	assert.True(t, p.Exposed)
	assert.Contains(t, p.BaseURL, "http://127.0.0.1:", "an address that works here")
	p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
}

func TestOutputThatFailsEndsTheProgram(t *testing.T) {
	out, in := io.Pipe()
	require.NoError(t, out.Close())
	assert.ErrorIs(t, startAndStop(t, in, io.Discard, "-addr", "127.0.0.1:0"), io.ErrClosedPipe)
}

func TestVersionIsPrinted(t *testing.T) {
	var out bytes.Buffer
	assert.ErrorIs(t, startAndStop(t, &out, io.Discard, "-version"), flag.ErrHelp, "which ends the program with 0")
	assert.Equal(t, fmt.Sprintf("heads-emulator %s (%s, %s/%s)\n", heads.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH), out.String())
}

// A stop must not wait for the next attempt of a delivery, for a delayed answer, or
// for a caller that waits for a delivery.
func TestStopEndsWhatIsUnderWay(t *testing.T) {
	before := runtime.NumGoroutine()
	p := start(t, "-retry", "1h")
	p.hook(receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	p.session("message")
	require.Len(t, p.deliveries(""), 1)
	p.control("POST", "faults/requests", `{"route":"/head/{id}","latency":"1h","times":1}`).ok(t, nil)
	var held sync.WaitGroup
	for _, path := range []string{"/head/" + p.Heads[0], controlPrefix + "deliveries?wait=1m&event=end_conversation"} {
		held.Go(func() {
			if resp, err := p.hc.Do(p.request("GET", path, "")); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return !strings.Contains(p.control("GET", "faults", "").body, "latency") },
		30*time.Second, time.Millisecond, "the request is held back")
	began := time.Now()
	require.NoError(t, p.stop())
	held.Wait()
	assert.Less(t, time.Since(began), patience)
	assert.Contains(t, p.logged(), "msg=stopping")
	p.hc.CloseIdleConnections()
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+4 }, 5*time.Second, 5*time.Millisecond)
}

func TestEveryRequestAndDeliveryIsLoggedWithoutSecrets(t *testing.T) {
	p := start(t)
	key := p.hook(receiver(t, accept) + "/canary?x=canary")
	p.control("POST", "sessions/"+p.session("")+"/message", `{"text":"canary"}`).ok(t, nil)
	require.Len(t, p.deliveries(""), 1)
	p.api("PUT", "/head/update", `{"id":"`+p.Heads[0]+`","greetings":"canary"}`).ok(t, nil)
	p.control("GET", "state?x=canary", "").ok(t, nil)
	require.NoError(t, p.stop())
	log := p.logged()
	assert.Regexp(t, `msg=request method=PUT path=/head/update status=200 `, log)
	assert.Regexp(t, `msg=delivery webhook=1 event=start_conversation session=\S+ attempt=1 status=200 `, log)
	assert.Regexp(t, `msg=control method=GET path=/_emulator/state status=200 `, log)
	for _, secret := range []string{p.Token, key, "canary"} {
		assert.NotContains(t, log, secret)
	}
}

// TestMain is also the program, for tests that need a process.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

const asProgram = "HEADS_EMULATOR_AS_PROGRAM"

// process returns the command that starts the program.
func process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// startProcess starts the program with more variables.
func startProcess(t testing.TB, env []string, args ...string) (p *program, cmd *exec.Cmd, stdout io.Reader) {
	t.Helper()
	p = newProgram(t)
	cmd = process(append([]string{"-addr", "127.0.0.1:0", "-json"}, args...)...)
	cmd.Env, cmd.Stderr = append(cmd.Env, env...), p.log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { p.hc.CloseIdleConnections(); _ = cmd.Process.Kill() })
	require.NoError(t, json.NewDecoder(stdout).Decode(&p.announcement))
	return p, cmd, stdout
}

func TestProcessServesUntilASignal(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p, process, stdout := startProcess(t, nil)

			got := make(chan string, 1)
			key := p.hook(receiver(t, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				assert.NoError(t, heads.VerifySignature(body, r.Header.Get(heads.SignatureHeader), <-got))
			}))
			got <- key
			p.session("message")
			assert.Equal(t, 200, p.deliveries("final=true")[0].Status)

			p.hc.CloseIdleConnections()
			require.NoError(t, process.Process.Signal(signal))
			rest, err := io.ReadAll(stdout)
			require.NoError(t, err)
			assert.NoError(t, process.Wait(), "it ends with status 0: %s", p.logged())
			assert.Empty(t, strings.TrimSpace(string(rest)))
			assert.Contains(t, p.logged(), "msg=stopping")
		})
	}
}

func TestProcessThatCantStartEndsWithStatus1(t *testing.T) {
	out, err := process("-addr", "0.0.0.0:0").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Regexp(t, `^heads-emulator: .*-expose-to-network`, string(out))
}
