package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The programs under test, as files.
var headsctl, emulatorProgram string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headsctl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	headsctl, emulatorProgram = filepath.Join(dir, "headsctl"), filepath.Join(dir, "heads-emulator")
	for program, pkg := range map[string]string{headsctl: ".", emulatorProgram: "github.com/headsapi/heads-go/cmd/heads-emulator"} {
		if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

// terminal is somebody who calls the program.
type terminal struct {
	t               testing.TB
	env, ids        []string
	dir, url, token string
	state           string // XDG_STATE_HOME
}

// parallel holds the tests that run beside the others.
var parallel sync.Map

// newTerminal has no settings of a service. It lets its test run beside the others.
func newTerminal(t testing.TB) *terminal {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		if _, again := parallel.LoadOrStore(test, true); !again {
			test.Parallel()
		}
	}
	state := t.TempDir()
	return &terminal{t: t, dir: t.TempDir(), state: state, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + state, "XDG_STATE_HOME=" + state, "NO_PROXY=*", "TERM=xterm",
	}}
}

// at returns a terminal with the settings of a service.
func (c *terminal) at(url, token string) *terminal {
	d := c.with("HEADS_BASE_URL="+url, "HEADS_TOKEN="+token)
	d.url, d.token = url, token
	return d
}

// behind returns a terminal whose requests reach its service through a proxy.
func (c *terminal) behind(proxy func(w http.ResponseWriter, r *http.Request, service http.Handler)) *terminal {
	c.t.Helper()
	service := httputil.NewSingleHostReverseProxy(need(url.Parse(c.url))(c.t))
	return c.at(serving(c.t, func(w http.ResponseWriter, r *http.Request) { proxy(w, r, service) }).URL, c.token)
}

// serving starts a server that ends with the test.
func serving(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

func (c *terminal) with(env ...string) *terminal {
	d := *c
	d.env = slices.Concat(c.env, env)
	return &d
}

type result struct {
	code           int
	stdout, stderr string
}

func (c *terminal) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, headsctl, args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	return cmd
}

func (c *terminal) run(args ...string) result { return c.runWith("", args...) }

func (c *terminal) runWith(stdin string, args ...string) result {
	c.t.Helper()
	cmd := c.command(c.t.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	return result{exitCode(c.t, cmd.Run()), stdout.String(), stderr.String()}
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// ok requires exit code 0 and returns stdout.
func (c *terminal) ok(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	require.Equal(c.t, 0, r.code, "%v\n%s%s", args, r.stdout, r.stderr)
	return r.stdout
}

func (c *terminal) ends(code int, args ...string) result {
	c.t.Helper()
	r := c.run(args...)
	assert.Equal(c.t, code, r.code, "%v\n%s%s", args, r.stdout, r.stderr)
	return r
}

// fails asserts an exit code, and one line on stderr that holds a text.
func (c *terminal) fails(code int, text string, args ...string) result {
	c.t.Helper()
	r := c.ends(code, args...)
	assert.Contains(c.t, r.stderr, text, "%v", args)
	assert.Equal(c.t, 1, strings.Count(r.stderr, "\n"), "%v: one line\n%s", args, r.stderr)
	return r
}

// write writes files, each a name and its text, and returns the path of the last one.
func (c *terminal) write(files ...string) (path string) {
	c.t.Helper()
	for i := 0; i < len(files); i += 2 {
		path = filepath.Join(c.dir, files[i])
		require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(c.t, os.WriteFile(path, []byte(files[i+1]), 0o600))
	}
	return path
}

func (c *terminal) read(name string) string {
	c.t.Helper()
	return contents(c.t, filepath.Join(c.dir, name))
}

func contents(t testing.TB, path string) string {
	t.Helper()
	return string(need(os.ReadFile(path))(t))
}

// need returns what a function has returned, if it was no error.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// serve starts a program that prints its settings as the first line of stdout, which it
// returns, and ends it with the test.
func serve(t testing.TB, program string, args ...string) (settings string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout := need(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	ended := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = ended()
	})
	settings, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = ended()
		require.NoError(t, err, log.String())
	}
	return settings
}

// demo starts headsctl demo, whose files are in the terminal's folder.
func demo(t testing.TB) *terminal { return demoIn(t, ".") }

func demoIn(t testing.TB, folder string) *terminal {
	t.Helper()
	c := newTerminal(t)
	return c.served(headsctl, "demo", "--dir", filepath.Join(c.dir, folder), "-o", "json")
}

func emulator(t testing.TB, seed any, args ...string) *terminal {
	t.Helper()
	c := newTerminal(t)
	file := c.write("seed.json", string(need(json.Marshal(seed))(t)))
	return c.served(emulatorProgram, append([]string{"-addr", "127.0.0.1:0", "-json", "-seed-file", file}, args...)...)
}

// served starts a program that is a service, and returns a terminal with its settings.
func (c *terminal) served(program string, args ...string) *terminal {
	c.t.Helper()
	s := parse[struct {
		Demo     string `json:"base_url"`
		Emulator string `json:"baseURL"`
		Token    string
		Heads    []string
	}](c.t, serve(c.t, program, args...))
	c = c.at(s.Demo+s.Emulator, s.Token) // one of the URLs
	c.ids = s.Heads
	return c
}

type object = map[string]any

// legacyHeads is a seed of heads that can be converted.
func legacyHeads(n int) object {
	var all []object
	for i := range n {
		all = append(all, object{"id": fmt.Sprintf("%08x-0000-4000-8000-000000000000", i+1), "name": fmt.Sprintf("Head %d", i+1)})
	}
	return object{"heads": all}
}

type screen struct {
	t          testing.TB
	cmd        *exec.Cmd
	tty        *os.File
	mu         sync.Mutex
	text       []byte
	news, done chan struct{}
}

// show runs the program with stdin, stdout and stderr on a terminal.
func (c *terminal) show(columns uint16, args ...string) *screen {
	c.t.Helper()
	return c.showCommand(columns, c.command(c.t.Context(), args...))
}

func (c *terminal) showCommand(columns uint16, cmd *exec.Cmd) *screen {
	c.t.Helper()
	cmd.Env, cmd.Dir = c.env, c.dir
	s := &screen{t: c.t, cmd: cmd, news: make(chan struct{}, 1), done: make(chan struct{})}
	s.tty = need(pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: 40}))(c.t)
	c.t.Cleanup(func() { _ = s.tty.Close() })
	go s.watch()
	return s
}

func (s *screen) watch() {
	defer close(s.done)
	chunk := make([]byte, 4096)
	for {
		n, err := s.tty.Read(chunk)
		s.mu.Lock()
		s.text = append(s.text, chunk[:n]...)
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// wait returns when the screen has shown a text.
func (s *screen) wait(text string) *screen {
	s.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.news:
		case <-s.done:
			require.Contains(s.t, s.String(), text)
			return s
		case <-deadline.C:
			require.Fail(s.t, "the screen never showed "+text, s.String())
		}
	}
	return s
}

func (s *screen) press(keys string) *screen {
	s.t.Helper()
	need(s.tty.WriteString(keys))(s.t)
	return s
}

// end waits for the program and returns its exit code.
func (s *screen) end() int {
	s.t.Helper()
	<-s.done
	return exitCode(s.t, s.cmd.Wait())
}

// parse reads JSON that a command has printed.
func parse[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func plain(s *screen) string {
	return strings.ReplaceAll(ansi.ReplaceAllString(s.String(), ""), "\r", "")
}

const someID = "0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01"

// nobodyReads returns the end of a pipe that is written to.
func nobodyReads(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

// world is a staging and a production with the same heads, and somebody at a terminal
// with the tokens of both.
type world struct {
	*terminal

	staging, production *terminal
	requests            atomic.Int64 // of both
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	w := &world{terminal: newTerminal(t)}
	seed := func(digit string) object {
		s := legacyHeads(n)
		for _, h := range s["heads"].([]object) {
			h["id"] = digit + h["id"].(string)[1:]
		}
		return s
	}
	counted := func(rw http.ResponseWriter, r *http.Request, service http.Handler) {
		w.requests.Add(1)
		service.ServeHTTP(rw, r)
	}
	w.staging, w.production = emulator(t, seed("a")).behind(counted), emulator(t, seed("b")).behind(counted)
	w.env = append(w.env, "HEADS_STAGING_TOKEN="+w.staging.token, "HEADS_PROD_TOKEN="+w.production.token, "PROD_URL="+w.production.url,
		"HEADS_BASE_URL=http://127.0.0.1:1", "HEADS_TOKEN=of-nobody-here") // no environment names them
	return w
}

// environments is the part of a file that describes both.
func (w *world) environments() string {
	return `environments:
  staging: {base_url: "` + w.staging.url + `", token: {env: HEADS_STAGING_TOKEN}, chat_url: "https://chat.example.test", stream_url: "https://stream.staging.example.com", values: {app: "https://staging.example.com", greeting: Hi}}
  production:
    base_url: {env: PROD_URL}
    token: {env: HEADS_PROD_TOKEN}
    chat_url: https://chat.example.test
    stream_url: https://stream.example.com
    values: {app: "https://app.example.com", greeting: Welcome}
    protect: true
`
}

// file writes a heads.yaml for both.
func (w *world) file() string {
	text := w.environments() + "defaults:\n  set: {greetings: \"${greeting} from ${env}, it costs $${5}\"}\nheads:\n"
	for i := range w.staging.ids {
		text += fmt.Sprintf(`  - id: {staging: %s, production: %s}
    label: Head %d
    set: {promptConfig: {system_prompt: {file: "prompts/${env}.txt"}}}
    webhooks: [{url: "${app}/heads/events", events: [start_conversation]}]
`, w.staging.ids[i], w.production.ids[i], i+1)
	}
	w.write("prompts/staging.txt", "You are a test of ${app}.\n", "prompts/production.txt", "You are real.\n", "heads.yaml", text)
	return text
}

// silent requires that nothing is sent meanwhile.
func (w *world) silent(f func()) {
	w.t.Helper()
	before := w.requests.Load()
	f()
	assert.Equal(w.t, before, w.requests.Load(), "nothing is sent")
}

func (c *terminal) head(id string) object {
	c.t.Helper()
	return parse[object](c.t, c.ok("get", id, "-o", "json"))
}

// hooks returns the webhooks of a head, with their keys.
func (c *terminal) hooks(id string) []object {
	c.t.Helper()
	return parse[[]object](c.t, c.ok("webhooks", "list", id, "-o", "json", "--show-secrets"))
}
