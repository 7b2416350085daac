// Package listen receives events and tool calls in the place of a back end: it verifies
// them, passes them on and records them.
package listen

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/forward"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/internal/mask"
)

// How long a back end has for its answer: less than the 5 s that the service waits for
// that of an event.
const (
	eventTimeout = 4500 * time.Millisecond
	toolTimeout  = 30 * time.Second
)

// KindOther is the type of the Line of a request that is neither an event nor a tool call.
const KindOther recording.Kind = "other"

// Settings are what a Listener does with what it receives.
type Settings struct {
	Target *forward.Target   // nil to answer 200 without passing anything on
	Record *recording.Writer // nil to record nothing
	Ack    bool              // answer an event when it is on disk, and pass it on after that; wants Target and Record
	Retry  []time.Duration   // the waits between the attempts of Ack; the last one is repeated
	Keys   heads.KeySource   // nil to pass events on unverified
	Report func(Line)        // may be called by several goroutines at once; it does not wait, since the answer would
}

// Line is the outcome of a request, or of an attempt to pass on an event that was answered
// before.
type Line struct {
	Type       recording.Kind `json:"type"`
	ID         string         `json:"id,omitempty"`
	At         time.Time      `json:"at"`
	Event      string         `json:"event,omitempty"`
	Tool       string         `json:"tool,omitempty"`
	HeadID     string         `json:"head_id,omitempty"`
	SessionID  string         `json:"session_id,omitempty"`
	Signature  string         `json:"signature,omitempty"`
	Path       string         `json:"path"`
	Status     int            `json:"status"`
	DurationMS int64          `json:"duration_ms"`
	Note       string         `json:"note,omitempty"`

	Method string `json:"-"`
}

// SignatureWrong is the Signature of a Line that no entry of a recording has.
const SignatureWrong = "wrong"

// Listener is an http.Handler that receives events and tool calls.
type Listener struct {
	Settings
	lanes      lanes
	unrecorded atomic.Int64
}

// New returns a Listener.
func New(settings Settings) *Listener {
	l := &Listener{Settings: settings}
	l.lanes.init(l.pass)
	return l
}

// Unrecorded returns how many entries and outcomes could not be written.
func (l *Listener) Unrecorded() int { return int(l.unrecorded.Load()) }

// Close ends the attempts to pass on what was acknowledged, after the one under way, and
// returns how many events are undelivered. It is called when no request is under way.
func (l *Listener) Close() (undelivered int) { return l.lanes.close() }

// request is one that is being answered.
type request struct {
	r       *http.Request // not used after it was answered
	path    string        // with the query, and with its secrets
	header  http.Header
	body    []byte
	entry   *recording.Entry
	started time.Time
}

// ServeHTTP receives one request.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{r: r, path: pathOf(r.URL), header: r.Header.Clone(), started: time.Now()}
	switch {
	case len(r.Header["Origin"]) > 0 || len(r.Header["Sec-Fetch-Site"]) > 0:
		l.refuse(w, q, http.StatusForbidden, "from a browser, which the service is not")
		return
	case !strings.HasPrefix(q.path, "/"):
		l.refuse(w, q, http.StatusBadRequest, "a path without /")
		return
	case r.Method != http.MethodPost:
		l.refuse(w, q, http.StatusNotFound, "not a POST")
		return
	}
	var tooLarge *http.MaxBytesError
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, recording.MaxBody))
	switch {
	case errors.As(err, &tooLarge):
		l.refuse(w, q, http.StatusRequestEntityTooLarge, "over 1 MiB")
		return
	case err != nil:
		l.refuse(w, q, http.StatusBadRequest, "the body did not arrive")
		return
	}
	entry, ok := recording.Classify(q.path, r.Header, body)
	if !ok {
		l.refuse(w, q, http.StatusNotFound, "neither an event nor a tool call")
		return
	}
	q.body, q.entry = body, entry
	entry.ID, entry.At = strings.ToLower(rand.Text()), q.started.UTC()
	l.receive(w, q)
}

// pathOf returns the path with the query as they arrived.
func pathOf(u *url.URL) string {
	path := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return path
}

// refuse answers what is neither an event nor a tool call.
func (l *Listener) refuse(w http.ResponseWriter, q *request, status int, note string) {
	http.Error(w, http.StatusText(status), status)
	l.Report(Line{
		Type: KindOther, At: q.started.UTC(), Path: mask.Path(q.path, ""), Status: status, Note: note,
		DurationMS: time.Since(q.started).Milliseconds(), Method: q.r.Method,
	})
}

// receive answers an event or a tool call.
func (l *Listener) receive(w http.ResponseWriter, q *request) {
	if q.entry.Type == recording.KindEvent {
		signature, status, why := l.verify(q)
		q.entry.Signature = signature
		if status != 0 {
			q.entry.Answer = refusal(status)
			l.answer(w, q, why)
			return
		}
	}
	var note string
	switch {
	case l.Ack && q.entry.Type == recording.KindEvent:
		note = l.acknowledge(q)
	case l.Target == nil:
		q.entry.Answer = received()
		note = l.record(q)
	default:
		var failed string
		q.entry.Answer, failed = l.forward(q)
		note = joinNotes(failed, l.record(q))
	}
	l.answer(w, q, note)
}

// forward passes a request on and returns the answer to it. It does not try again,
// since the service does.
func (l *Listener) forward(q *request) (answer recording.Answer, note string) {
	timeout := eventTimeout
	if q.entry.Type == recording.KindToolCall {
		timeout = toolTimeout
	}
	// Even if the sender disconnects, the answer of the back end is awaited and recorded.
	answer, err := l.Target.Send(context.Background(), q.path, q.header, q.body, timeout)
	if err == nil {
		return answer, ""
	}
	status := http.StatusBadGateway
	if errors.Is(err, forward.ErrTimeout) {
		status = http.StatusGatewayTimeout
	}
	refused := refusal(status)
	refused.DurationMS = answer.DurationMS
	return refused, err.Error()
}

// record writes the entry before the request is answered, so that a recording has
// whatever was answered.
func (l *Listener) record(q *request) (note string) {
	if l.Record == nil {
		return ""
	}
	return l.noteOf(l.Record.Append(q.entry, false))
}

func (l *Listener) noteOf(err error) string {
	if err == nil {
		return ""
	}
	l.unrecorded.Add(1)
	return "not recorded: " + err.Error()
}

// acknowledge puts an event on disk and into the lane of its head.
func (l *Listener) acknowledge(q *request) (note string) {
	q.entry.Acked, q.entry.Answer = true, received()
	err := l.lanes.add(q, func() error { return l.Record.Append(q.entry, true) })
	if err != nil {
		q.entry.Answer = refusal(http.StatusServiceUnavailable)
		return l.noteOf(err)
	}
	return "on disk"
}

// answer answers the sender and reports it.
func (l *Listener) answer(w http.ResponseWriter, q *request, note string) {
	answer := q.entry.Answer
	w.Header()["Content-Type"] = nil // keeps package http from guessing
	if answer.ContentType != "" {
		w.Header().Set("Content-Type", answer.ContentType)
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // no one is left to learn of an error
	line := lineOf(q.entry)
	line.Status, line.Note, line.DurationMS = answer.Status, note, time.Since(q.started).Milliseconds()
	l.Report(line)
}

func lineOf(e *recording.Entry) Line {
	return Line{
		Type: e.Type, ID: e.ID, At: e.At, Event: e.Event, Tool: e.Tool, HeadID: e.HeadID, SessionID: e.SessionID,
		Signature: e.Signature, Path: e.Path,
	}
}

// received is the answer without a back end.
func received() recording.Answer {
	return recording.Answer{
		Status: http.StatusOK, ContentType: "application/json", Body: recording.Text(`{"message":"received"}`), By: recording.ByListener,
	}
}

// refusal is the answer without the back end's.
func refusal(status int) recording.Answer {
	return recording.Answer{
		Status: status, ContentType: "text/plain; charset=utf-8", Body: recording.Text(http.StatusText(status) + "\n"), By: recording.ByListener,
	}
}

func joinNotes(notes ...string) string {
	joined := ""
	for _, note := range notes {
		if joined != "" && note != "" {
			joined += "; "
		}
		joined += note
	}
	return joined
}
