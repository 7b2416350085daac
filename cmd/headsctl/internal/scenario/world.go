package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// world is everything that one run of a scenario has for itself.
type world struct {
	s         *Scenario
	vars      variables
	chance    *rand.Rand
	processes *Processes
	client    *http.Client // to the back end

	emulator *headstest.Emulator
	gate     *gate
	backend  *backend
	base     string   // of the back end
	env      []string // of the back end
	port     *port
	temp     string       // a folder
	server   *http.Server // nil behind a listener that stays

	heads        []head
	sessions     []*session
	last         *session // of say, user or call
	saved        []string // the names of variables from answers
	requestsSeen int      // the id of the last one that a step has looked at
	calls        []happened
	secrets      []string
}

// happened is a tool call for the list below a failure.
type happened struct {
	at   time.Time
	text string
}

// session is a session that a step has opened.
type session struct {
	*headstest.Session

	name  string
	head  head
	taken map[string]int // deliveries that a step has looked at, by webhook
}

// newChance returns the chances of one run: the same for the same seed, file, name and
// repeat.
func newChance(seed uint64, s *Scenario, repeat int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %d", seed, s.File, s.Name, repeat))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// newWorld makes the emulator with its heads, and the back end, which does not run
// yet. The caller closes it, also after an error.
func newWorld(ctx context.Context, s *Scenario, chance *rand.Rand, processes *Processes, stays *listener) (w *world, err error) {
	w = &world{
		s: s, vars: variables{}, chance: chance, processes: processes, gate: newGate(), base: s.backend.url,
		client:  &http.Client{Transport: newTransport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		secrets: s.backend.secrets,
	}
	token := s.backend.token
	if token == "" {
		token = newKey(chance)
	}
	if err := w.listen(token, stays); err != nil {
		return w, err
	}
	if err := w.locate(); err != nil {
		return w, err
	}
	if w.temp, err = os.MkdirTemp("", "headsctl-test-"); err != nil {
		return w, err
	}
	w.vars.set(varTemp, w.temp)
	sharedKey := newKey(chance)
	if s.backend.sharedKey != nil {
		v, err := w.vars.expand(s.backend.sharedKey)
		if err != nil {
			return w, err
		}
		sharedKey = v.Text
	}
	records, faults := s.setUp(ctx, w.vars, chance, sharedKey)
	if len(faults) > 0 {
		return w, faults[0]
	}
	if _, err := w.emulator.Restart(records.seed); err != nil {
		return w, err
	}
	w.heads = records.heads
	return w, w.prepare(token, sharedKey)
}

// newKey returns a random key.
func newKey(chance *rand.Rand) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, chance.Uint64()), chance.Uint64()))
}

// endless is longer than any scenario: the time to answer is that of outbound.
const endless = 24 * time.Hour

// listen makes the emulator and serves it.
func (w *world) listen(token string, stays *listener) error {
	sends := &http.Client{Transport: &outbound{
		transport: newTransport(), gate: w.gate, strays: w.s.strays,
		eventTimeout: w.s.service.eventTimeout, toolTimeout: w.s.service.toolTimeout,
	}}
	w.emulator = headstest.NewEmulator(append(w.s.service.options(), headstest.WithSeed(w.chance.Uint64()), headstest.WithLoopbackHTTP(),
		headstest.WithToken(token), headstest.WithDeliveryClient(sends), headstest.WithCallbackHosts(w.s.callbackHosts()), headstest.WithDeliveryTimeout(endless), headstest.WithToolTimeout(endless),
		headstest.WithJournalSize(1<<16))...)
	if stays != nil {
		stays.serve(w.emulator)
		w.vars.set(varBaseURL, "http://"+stays.address)
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.server = newServer(w.emulator)
	go func() { _ = w.server.Serve(l) }()
	w.vars.set(varBaseURL, "http://"+l.Addr().String())
	return nil
}

// newServer returns a server that writes nothing to stderr.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
}

// locate gives the back end its port and its URL.
func (w *world) locate() error {
	if w.base != "" {
		w.vars.set(varBackend, w.base)
		w.vars.set(varPort, portOf(w.base))
		return nil
	}
	var err error
	if w.port, err = reservePort(); err != nil {
		return err
	}
	w.base = "http://" + loopbackAddress(w.port.number)
	w.vars.set(varBackend, w.base)
	w.vars.set(varPort, strconv.Itoa(w.port.number))
	return nil
}

// prepare makes the environment and the back end.
func (w *world) prepare(token, sharedKey string) error {
	b := &backend{processes: w.processes, within: w.s.backend.readyWithin, output: &tail{}, gate: w.gate, address: strings.TrimPrefix(w.base, "http://")}
	if w.s.backend.ready != nil {
		path, err := w.vars.expand(w.s.backend.ready)
		if err != nil {
			return err
		}
		b.readyURL = w.base + path.Text
	}
	var err error
	if w.env, err = w.environment(token, sharedKey); err != nil {
		return err
	}
	w.backend = b
	if w.s.backend.start == nil {
		return nil
	}
	words, err := w.words(w.s.backend.start)
	if err != nil {
		return err
	}
	b.command = command{words, w.s.backend.dir, w.env}
	return nil
}

// tokenSetting begins a setting that differs in all scenarios that run at a time.
const tokenSetting = "HEADS_TOKEN="

// environment returns that of the caller without the settings of the service, then
// those of this scenario.
func (w *world) environment(token, sharedKey string) ([]string, error) {
	env := slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return isServiceSetting(name)
	})
	env = append(env,
		"PORT="+w.vars[varPort].Text, "HEADS_BASE_URL="+w.vars[varBaseURL].Text, tokenSetting+token, "HEADS_SHARED_KEY="+sharedKey,
		"HEADS_HEAD_ID="+w.heads[0].id, "HEADS_CHAT_URL="+chatURL, "HEADS_STREAM_URL="+streamURL)
	for _, more := range []*yamltext.Value{w.s.backend.env, w.s.env} {
		if more == nil {
			continue
		}
		for _, m := range more.Members {
			text, err := w.vars.text(m.Value)
			if err != nil {
				return nil, err
			}
			env = append(env, m.Key+"="+text)
		}
	}
	return env, nil
}

// shellEnvironment returns the environment with what was saved from answers. It replaces
// no variable that is there.
func (w *world) shellEnvironment() []string {
	env := slices.Clone(w.env)
	for _, name := range w.saved {
		if !slices.ContainsFunc(env, func(setting string) bool { return strings.HasPrefix(setting, name+"=") }) {
			env = append(env, name+"="+w.vars[name].AsText())
		}
	}
	return env
}

// words returns the words of a program, or of a text for the shell.
func (w *world) words(v *yamltext.Value) (words []string, err error) {
	expanded, err := w.vars.expand(v)
	if err != nil {
		return nil, err
	}
	if expanded.Kind == yamltext.Text {
		return shell(expanded.Text), nil
	}
	for _, word := range expanded.Items {
		words = append(words, word.Text)
	}
	return words, nil
}

// close ends everything that the run has begun.
func (w *world) close() {
	if w.backend != nil {
		w.backend.end()
	}
	if i := slices.IndexFunc(w.env, func(setting string) bool { return strings.HasPrefix(setting, tokenSetting) }); i >= 0 {
		w.processes.killOrphans(w.env[i])
	}
	w.emulator.Close()
	if w.server != nil {
		_ = w.server.Close()
	}
	if w.port != nil {
		w.port.release()
	}
	if w.temp != "" {
		_ = os.RemoveAll(w.temp)
	}
}

// open returns the session of a step, which it opens if need be.
func (w *world) open(st *step) (*session, error) {
	h, name, err := w.whose(st)
	if err != nil {
		return nil, err
	}
	found := w.find(func(s *session) bool { return s.name == name && s.head.id == h.id })
	if found == nil {
		found = &session{Session: w.emulator.StartSession(h.id), name: name, head: h, taken: map[string]int{}}
		w.sessions = append(w.sessions, found)
	}
	w.last = found
	w.vars.set(varSession, found.ID())
	if name != "" {
		w.vars.set(varSession+":"+name, found.ID())
	}
	return found, nil
}

// find returns the session that was opened last of those that match, or nil.
func (w *world) find(match func(*session) bool) *session {
	for _, s := range slices.Backward(w.sessions) {
		if match(s) {
			return s
		}
	}
	return nil
}

// whose returns the head and the name of the session that a step is about: those of
// the last say, user or call unless it says others.
func (w *world) whose(st *step) (h head, name string, err error) {
	h = w.heads[0]
	if w.last != nil {
		h, name = w.last.head, w.last.name
	}
	if v := st.Get("session"); v != nil {
		if name, err = w.vars.text(v); err != nil {
			return h, "", withoutPlace(err)
		}
		if known := w.find(func(s *session) bool { return s.name == name }); known != nil {
			h = known.head
		}
	}
	if v := st.Get("head"); v != nil {
		text, err := w.vars.text(v)
		if err != nil {
			return h, "", withoutPlace(err)
		}
		found, ok := findHead(w.heads, text)
		if !ok {
			return h, "", fmt.Errorf("there is no head %q%s", shown(text), similar.Hint(text, labelsOf(w.heads)))
		}
		h = found
	}
	return h, name, nil
}

// document returns a head as GET /head/{id} shows it.
func (w *world) document(id string) json.RawMessage {
	for _, document := range w.emulator.Snapshot().Heads {
		var h struct{ ID string }
		if json.Unmarshal(document, &h) == nil && h.ID == id {
			return document
		}
	}
	return json.RawMessage("null")
}

// listener is the address at which running back ends expect the service. It stays for
// all scenarios.
type listener struct {
	address string
	server  *http.Server
	now     atomic.Pointer[headstest.Emulator]
	turn    chan struct{} // holds a token while no scenario has the address
}

func newListener(address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the service can't listen on %s, where the back end expects it: %w; end the program that does", address, err)
	}
	stays := &listener{address: address, turn: make(chan struct{}, 1)}
	stays.turn <- struct{}{}
	stays.server = newServer(stays)
	go func() { _ = stays.server.Serve(l) }()
	return stays, nil
}

func (l *listener) serve(e *headstest.Emulator) { l.now.Store(e) }

// ServeHTTP passes a request to the emulator of the scenario that runs.
func (l *listener) ServeHTTP(reply http.ResponseWriter, r *http.Request) {
	if e := l.now.Load(); e != nil {
		e.ServeHTTP(reply, r)
		return
	}
	http.Error(reply, "no scenario runs", http.StatusServiceUnavailable)
}

func (l *listener) close() { _ = l.server.Close() }
