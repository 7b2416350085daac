package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	stopWithin   = 5 * time.Second        // between SIGTERM and SIGKILL
	endWithin    = 5 * time.Second        // for a killed group to be gone
	outputWithin = 2 * time.Second        // for a program that has left its group with the output
	probeWithin  = time.Second            // of one look whether a back end is ready
	firstPause   = 2 * time.Millisecond   // between looks
	longestPause = 250 * time.Millisecond // likewise
)

// command is a program with its folder and environment.
type command struct {
	words []string
	dir   string
	env   []string
}

// shell returns the words that run a text.
func shell(text string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/c", text}
	}
	return []string{"sh", "-c", text}
}

// Processes are the programs that run. Killing them all is for a program that ends at
// once.
type Processes struct {
	adopt   sync.Once
	mu      sync.Mutex
	leaders []int
	closed  bool
}

// KillAll kills all programs with what they have started, and lets no other begin. It
// returns when none of them runs.
func (p *Processes) KillAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, leader := range p.leaders {
		killGroup(leader)
	}
	for _, leader := range p.leaders {
		waitForGroup(leader)
	}
	killAll(descendants(os.Getpid()))
}

// killOrphans kills what has left its group and its parents, and has a setting in its
// environment that only programs of one scenario have.
func (p *Processes) killOrphans(setting string) {
	p.mu.Lock()
	leaders := slices.Clone(p.leaders)
	p.mu.Unlock()
	for _, child := range children(os.Getpid()) {
		if !slices.Contains(leaders, child) && hasSetting(child, setting) {
			killAll(append(descendants(child), child))
		}
	}
}

// waitForGroup returns when no process of a killed group runs.
func waitForGroup(leader int) {
	for deadline, pause := time.Now().Add(endWithin), firstPause; groupIsAlive(leader) && time.Now().Before(deadline); pause = longer(pause) {
		killGroup(leader) // also what it had begun to start
		time.Sleep(pause)
	}
}

// start starts a program as the leader of its own group.
func (p *Processes) start(c command, stdout, stderr io.Writer) (*process, error) {
	path, err := findProgram(c.words[0], c.dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, c.words[1:]...)
	cmd.Args[0] = c.words[0]
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.dir, c.env, stdout, stderr, outputWithin
	ownGroup(cmd)
	p.adopt.Do(adoptOrphans)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("interrupted")
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the program %s can't be started: %w; check the path and its permissions", shown(c.words[0]), programCause(err))
	}
	p.leaders = append(p.leaders, cmd.Process.Pid)
	run := &process{of: p, cmd: cmd, leader: cmd.Process.Pid, ended: make(chan struct{})}
	go run.wait()
	return run, nil
}

func (p *Processes) forget(leader int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaders = slices.DeleteFunc(p.leaders, func(l int) bool { return l == leader })
}

// process is a program that was started.
type process struct {
	of     *Processes
	cmd    *exec.Cmd
	leader int
	ended  chan struct{} // closed when the program itself has ended
	err    error         // of its end
	others []int         // that may have left the group
}

func (p *process) wait() {
	if err := p.cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		p.err = err
	}
	close(p.ended)
}

// status says how the program has ended.
func (p *process) status() string { return p.cmd.ProcessState.String() }

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends the group at once and returns when none of it runs.
func (p *process) kill() {
	defer p.of.forget(p.leader)
	if p.hasEnded() && !groupIsAlive(p.leader) {
		killAll(p.others)
		return // another process could have the number by now
	}
	p.others = append(p.others, descendants(p.leader)...)
	killGroup(p.leader)
	<-p.ended
	waitForGroup(p.leader)
	killAll(p.others)
}

// stop asks the group to end, and kills it after a while.
func (p *process) stop() {
	if p.hasEnded() {
		p.kill()
		return
	}
	p.others = descendants(p.leader)
	terminateGroup(p.leader)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
	p.kill()
}

func longer(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// sleep waits, and returns the cause if the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// backend is the back end of one run of a scenario.
type backend struct {
	processes *Processes
	command   command
	address   string // host:port
	readyURL  string // "": the port takes a connection
	within    time.Duration
	output    *tail
	gate      *gate

	running *process // nil while it is stopped or killed
}

var (
	errRuns     = errors.New("the back end runs already; kill or stop it before, or use restart")
	errRunsNot  = errors.New("the back end does not run; start it before")
	errNotReady = errors.New("the back end does not get ready")
)

// do carries out an action of a step.
func (b *backend) do(ctx context.Context, action string) error {
	if action == "start" {
		if b.running != nil {
			return errRuns
		}
		return b.start(ctx)
	}
	if b.running == nil {
		return errRunsNot
	}
	if action == "restart" {
		b.gate.close()
		defer b.gate.open()
	}
	if action == "kill" {
		b.running.kill()
	} else {
		b.running.stop()
	}
	b.running = nil
	if action == "restart" {
		return b.start(ctx)
	}
	return nil
}

// start starts the program and waits until it is ready. Meanwhile nothing is
// delivered.
func (b *backend) start(ctx context.Context) error {
	b.gate.close()
	defer b.gate.open()
	var err error
	if b.running, err = b.processes.start(b.command, b.output, b.output); err != nil {
		return err
	}
	return b.waitReady(ctx)
}

// waitReady returns when the back end is ready.
func (b *backend) waitReady(ctx context.Context) error {
	late := fmt.Errorf("%w within %v; see its last lines, or set ready and ready_within", errNotReady, b.within)
	ctx, cancel := context.WithTimeoutCause(ctx, b.within, late)
	defer cancel()
	var ended <-chan struct{}
	if b.running != nil {
		ended = b.running.ended
	}
	for pause := firstPause; ; pause = longer(pause) {
		ready, last := b.isReady(ctx)
		if ready {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return fmt.Errorf("%w: it has ended with %s; see its last lines", errNotReady, b.running.status())
		case <-ctx.Done():
			timer.Stop()
			if last != "" && errors.Is(context.Cause(ctx), late) {
				return fmt.Errorf("%w: %s", late, last)
			}
			return context.Cause(ctx)
		}
	}
}

// isReady checks once. If the back end is not ready, it may say why.
func (b *backend) isReady(ctx context.Context) (ready bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	if b.readyURL == "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address)
		if err != nil {
			return false, "nothing listens on the port in PORT"
		}
		_ = conn.Close()
		return true, ""
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.readyURL, http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	response, err := newTransport().RoundTrip(request)
	if err != nil {
		return false, "GET " + request.URL.Path + " was not answered: " + shown(err.Error())
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	_ = response.Body.Close()
	return response.StatusCode/100 == 2, fmt.Sprintf("GET %s is answered %d", request.URL.Path, response.StatusCode)
}

// end stops the back end if it runs.
func (b *backend) end() {
	if b.running != nil {
		b.running.stop()
		b.running = nil
	}
}

// crashed says that the back end has ended by itself, or "".
func (b *backend) crashed() string {
	if b.running == nil || !b.running.hasEnded() {
		return ""
	}
	return "the back end has ended by itself: " + b.running.status()
}

// tail keeps the last lines of an output.
type tail struct {
	mu    sync.Mutex
	lines []string
	rest  []byte // without its newline so far
}

const (
	maxLines = 10
	maxLine  = 1000 // bytes
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, part := range bytes.SplitAfter(p, []byte{'\n'}) {
		if room := maxLine - len(t.rest); len(part) > 0 && room > 0 {
			t.rest = append(t.rest, part[:min(room, len(part))]...)
		}
		if bytes.HasSuffix(part, []byte{'\n'}) {
			t.lines = append(t.lines, shown(string(t.rest)))
			t.rest = nil
			t.lines = t.lines[max(len(t.lines)-maxLines, 0):]
		}
	}
	return len(p), nil
}

// last returns the last lines.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := slices.Clone(t.lines)
	if len(t.rest) > 0 {
		lines = append(lines, shown(string(t.rest)))
	}
	return lines[max(len(lines)-maxLines, 0):]
}

// findProgram returns the path of a program: of a name in PATH, or of a path from a
// folder.
func findProgram(name, folder string) (string, error) {
	if !strings.ContainsAny(name, `/\`) {
		found, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("there is no program %q in PATH; install it, or write ./%s for one in the folder", shown(name), shown(name))
		}
		return found, nil
	}
	found, err := filepath.Abs(relativeTo(folder, name))
	if err == nil {
		_, err = exec.LookPath(found)
	}
	if err != nil {
		return "", fmt.Errorf("the program %s can't be run: %w; build it, or check the path and its permissions", shown(name), programCause(err))
	}
	return found, nil
}

// programCause returns the error of a program without its name.
func programCause(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return pathCause(err)
}
