package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/panics"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/toolargs"
)

const (
	maxToolBody         = 64 << 10
	toolBodyTimeout     = 5 * time.Second
	toolFailedReply     = "The tool failed; tell the user that this does not work right now and go on without it"
	toolUnreadableReply = "The call could not be read; call the tool again"
	toolBusyReply       = "The tool is busy; call it again in a moment"
)

// ToolError is an error whose text is meant for the model: "no order with that
// number; ask the user to read it out again". The function of a tool returns it,
// as a value or a pointer, wrapped or not. One without a text is treated as any
// other error.
type ToolError struct{ Message string }

// Error returns the message.
func (e ToolError) Error() string { return e.Message }

// ToolOutcome is how a tool call ended. The values are few and fixed, so they
// are safe as metric labels.
type ToolOutcome string

// The outcomes, and what the model is told. After the last one, and after a body
// above 64 KiB, the status is not 200, so the model is told nothing.
const (
	ToolAnswered     ToolOutcome = "answered"     // the text that the function returned
	ToolTold         ToolOutcome = "told"         // the text of the ToolError that it returned
	ToolArguments    ToolOutcome = "arguments"    // which argument is missing or can't be used
	ToolFailed       ToolOutcome = "failed"       // that the tool failed: the function returned another error
	ToolPanicked     ToolOutcome = "panicked"     // that the tool failed: the function panicked
	ToolTimedOut     ToolOutcome = "timed_out"    // that the tool failed: its time was over, or the caller left
	ToolBusy         ToolOutcome = "busy"         // to call again: too many functions run, or Shutdown was called
	ToolUnreadable   ToolOutcome = "unreadable"   // to call again: the body is not a JSON object or did not arrive
	ToolUnauthorized ToolOutcome = "unauthorized" // the check of WithToolAuth refused: 401
)

// ToolCallInfo describes a call to an Observer. It holds
// nothing of the arguments and the reply. The error of ToolTold is the reply, so
// its Err is nil.
type ToolCallInfo struct {
	Tool      string
	Outcome   ToolOutcome
	Duration  time.Duration // from the arrival of the headers to the answer
	SessionID string        // as the caller sent it; empty if it sent none
	Err       error         // what was wrong; nil for ToolAnswered and ToolTold
}

// LogValue returns the fields, error if there is one.
func (i ToolCallInfo) LogValue() slog.Value {
	return slog.GroupValue(append([]slog.Attr{
		slog.String("tool", i.Tool),
		slog.String("outcome", string(i.Outcome)),
		slog.String("session_id", mask.Clip(i.SessionID, 64)),
		slog.Duration("duration", i.Duration),
	}, errorAttrs(i.Err)...)...)
}

// toolResult is how a call ended. Unless status says otherwise, message is what
// the model is told.
type toolResult struct {
	outcome ToolOutcome
	message string
	err     error
	status  int // 0 for 200
}

var (
	errToolsShutDown = errors.New("heads: the tool handler was shut down")
	errToolsBusy     = errors.New("heads: too many functions are running; see WithToolConcurrency")
	errNotAnObject   = errors.New("the body is not a JSON object")
)

// serve answers a call that found its tool.
func (s *toolServer) serve(w http.ResponseWriter, r *http.Request, t *servedTool, body httpbody.Reader) {
	started := time.Now()
	var few [2]context.Context
	observed := few[:0]
	if len(s.observers) > 0 {
		ctx, contexts := s.observers.start(r.Context(), slogPanics{t.logger}, observed, ToolCallInfo{Tool: t.tool.Name})
		r, observed = r.WithContext(ctx), contexts
	}
	ctx, result := r.Context(), toolResult{ToolBusy, toolBusyReply, errToolsShutDown, 0}
	if s.gate.Enter() {
		defer s.gate.Leave()
		ctx, result = s.receive(w, r, t, body)
	} else {
		t.logger.InfoContext(ctx, "tool call refused", slog.String("error", shownError(result.err)))
	}
	if result.status == 0 {
		s.reply(w, result.message)
	} else {
		http.Error(w, result.message, result.status)
	}
	if len(s.observers) > 0 {
		s.observers.end(observed, slogPanics{t.logger}, ToolCallInfo{
			Tool: t.tool.Name, Outcome: result.outcome, Duration: time.Since(started), SessionID: sessionIDFrom(ctx), Err: result.err,
		})
	}
}

// receive returns the context of the call, with its session if that was read.
func (s *toolServer) receive(w http.ResponseWriter, r *http.Request, t *servedTool, body httpbody.Reader) (context.Context, toolResult) {
	ctx := r.Context()
	if s.check != nil {
		if err := s.authorize(w, r); err != nil {
			t.logger.WarnContext(ctx, "tool call refused", slog.String("error", shownError(err)))
			return ctx, toolResult{ToolUnauthorized, "unauthorized", err, http.StatusUnauthorized}
		}
		body = httpbody.Start(w, toolBodyTimeout) // again, since the check may have taken long
	}
	doc, err := readObject(r, body)
	switch {
	case errors.Is(err, httpbody.ErrTooLarge):
		t.logger.WarnContext(ctx, "body of a tool call is too large")
		return ctx, toolResult{ToolUnreadable, "the body is above 64 KiB", err, http.StatusRequestEntityTooLarge}
	case err != nil:
		t.logger.WarnContext(ctx, "tool call could not be read", slog.String("error", shownError(err)))
		return ctx, toolResult{ToolUnreadable, toolUnreadableReply, err, 0}
	}
	values, session := t.fields.Split(doc)
	ctx = withSession(ctx, session)
	return ctx, s.answer(ctx, t, values)
}

// authorize calls the check, which can read no more than the limit of the body.
// A panic of it is a refusal.
func (s *toolServer) authorize(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxToolBody)
	return panics.Try(func() error { return s.check(r) })
}

// readObject returns a body that is a JSON object.
func readObject(r *http.Request, body httpbody.Reader) ([]byte, error) {
	buf, err := body.Read(r, maxToolBody)
	if err != nil {
		return nil, err
	}
	defer httpbody.Free(buf)
	doc := bytes.TrimSpace(buf.Bytes())
	if rawjson.Kind(doc) != "object" || !json.Valid(doc) {
		return nil, errNotAnObject
	}
	return bytes.Clone(doc), nil
}

// answer returns what the model is told. It waits for the function no longer
// than its deadline, even if the function does not look at its context.
func (s *toolServer) answer(ctx context.Context, t *servedTool, values []json.RawMessage) toolResult {
	select {
	case s.running <- struct{}{}:
	default:
		t.logger.WarnContext(ctx, "tool call refused", slog.String("error", errToolsBusy.Error()))
		return toolResult{ToolBusy, toolBusyReply, errToolsBusy, 0}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.gate.Stay() // for the function, which may outlive the call
	started := time.Now()
	answered := make(chan toolResult)
	go func() {
		defer s.gate.Leave()
		result := toolResult{ToolPanicked, toolFailedReply, errGoexit, 0} // stays if the function calls runtime.Goexit
		defer func() {
			if result.outcome == ToolPanicked {
				t.logger.LogAttrs(ctx, slog.LevelError, "tool panicked", errorAttrs(result.err)...)
			}
			<-s.running
			select {
			case answered <- result:
			case <-ctx.Done():
				t.logger.WarnContext(ctx, "tool returned after its call had ended", slog.Duration("took", time.Since(started)))
			}
		}()
		result = callTool(ctx, t, values)
	}()
	select {
	case result := <-answered:
		return result
	case <-ctx.Done():
		t.logger.ErrorContext(ctx, "tool call ended before its tool", slog.Duration("took", time.Since(started)), slog.String("error", ctx.Err().Error()))
		return toolResult{ToolTimedOut, toolFailedReply, ctx.Err(), 0}
	}
}

// callTool calls the function, and reads its error, whose methods may panic too.
func callTool(ctx context.Context, t *servedTool, values []json.RawMessage) (result toolResult) {
	err := panics.Try(func() error {
		text, err := t.call(ctx, values)
		if err == nil {
			result = toolResult{outcome: ToolAnswered, message: text}
		} else {
			result = resultOf(ctx, t, err)
		}
		return nil
	})
	if err != nil {
		return toolResult{ToolPanicked, toolFailedReply, err, 0}
	}
	return result
}

// resultOf chooses what the model may know of err.
func resultOf(ctx context.Context, t *servedTool, err error) toolResult {
	var faults toolargs.ArgumentErrors
	if errors.As(err, &faults) {
		names := faults.Parameters()
		t.logger.WarnContext(ctx, "tool call has unusable arguments", slog.Any("parameters", names))
		return toolResult{ToolArguments, faults.Error(), fmt.Errorf("heads: unusable arguments: %s", strings.Join(names, ", ")), 0}
	}
	if message := toolErrorMessage(err); message != "" {
		return toolResult{outcome: ToolTold, message: message}
	}
	t.logger.ErrorContext(ctx, "tool failed", slog.String("error", shownError(err)))
	if ctx.Err() != nil {
		return toolResult{ToolTimedOut, toolFailedReply, err, 0}
	}
	return toolResult{ToolFailed, toolFailedReply, err, 0}
}

// toolErrorMessage returns the text of the ToolError in err, or "".
func toolErrorMessage(err error) string {
	var value ToolError
	var pointer *ToolError
	if !errors.As(err, &value) && errors.As(err, &pointer) && pointer != nil {
		value = *pointer
	}
	return strings.TrimSpace(value.Message)
}

// jsonHeader is shared by all replies and never changed.
var jsonHeader = []string{"application/json"}

// reply writes the only kind of answer that the service understands.
func (s *toolServer) reply(w http.ResponseWriter, message string) {
	body, _ := json.Marshal(struct { // a string always marshals
		Message string `json:"message"`
	}{replyText(message, s.replyLimit)})
	w.Header()["Content-Type"] = jsonHeader
	_, _ = w.Write(body) // no one is left to learn of an error
}

// replyText returns text as one line of valid UTF-8: line breaks and other
// control characters, with the space around them, become one space.
func replyText(text string, limit int) string {
	if strings.IndexFunc(text, breaksLine) < 0 {
		return mask.Clip(strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"), limit)
	}
	parts := strings.FieldsFunc(text, breaksLine)
	kept := parts[:0]
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			kept = append(kept, part)
		}
	}
	return mask.Clip(strings.ToValidUTF8(strings.Join(kept, " "), "\uFFFD"), limit)
}

func breaksLine(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

// SessionMetadata is the conversation in which a tool was called. The function of
// a tool reads it with SessionFromContext.
//
// The service promises none of the fields. A field that it did not send, or sent
// twice, is empty, and one that has no place here is in Raw. None of it proves who
// the user is.
type SessionMetadata struct {
	SessionID, UserID, Username string
	HeadID, OrgID               string
	PublicHeadID, PublicOrgID   string
	Timestamp                   Time
	Raw                         Raw // the whole session_metadata as it was sent
}

// String returns the session id alone, since the rest may name a person.
func (m SessionMetadata) String() string {
	return "heads.SessionMetadata(session " + strconv.Quote(m.SessionID) + ")"
}

type sessionKey struct{}

// SessionFromContext returns the session in which a tool was called. It reports
// false if the call had no session_metadata, and outside a tool call.
func SessionFromContext(ctx context.Context) (SessionMetadata, bool) {
	raw, ok := ctx.Value(sessionKey{}).(json.RawMessage)
	if !ok {
		return SessionMetadata{}, false
	}
	return parseSession(raw), true
}

// sessionIDFrom returns the session's id without reading the rest.
func sessionIDFrom(ctx context.Context) (id string) {
	raw, _ := ctx.Value(sessionKey{}).(json.RawMessage)
	if member, _ := rawjson.Value(raw, "session_id"); !toolargs.IsNull(member) && exactjson.Once(raw, "session_id") == nil {
		id, _ = toolargs.ScalarText(member)
	}
	return id
}

// withSession returns ctx with the session in raw, or ctx itself when raw holds
// none. SessionFromContext parses it, since most functions don't ask.
func withSession(ctx context.Context, raw json.RawMessage) context.Context {
	if toolargs.IsNull(raw) {
		return ctx
	}
	return context.WithValue(ctx, sessionKey{}, raw)
}

// parseSession never fails, so that the user gets an answer even if the session
// can't be read.
func parseSession(raw json.RawMessage) SessionMetadata {
	m := SessionMetadata{Raw: NewRaw(raw)}
	members := map[string]json.RawMessage{}
	for member := range rawjson.Members(raw) {
		if _, twice := members[string(member.Key)]; twice {
			member.Value = nil
		}
		members[string(member.Key)] = member.Value
	}
	for name, field := range map[string]*string{
		"session_id":     &m.SessionID,
		"user_id":        &m.UserID,
		"username":       &m.Username,
		"head_id":        &m.HeadID,
		"org_id":         &m.OrgID,
		"public_head_id": &m.PublicHeadID,
		"public_org_id":  &m.PublicOrgID,
	} {
		if member := members[name]; !toolargs.IsNull(member) {
			*field, _ = toolargs.ScalarText(member)
		}
	}
	if stamp := members["timestamp"]; stamp != nil {
		_ = m.Timestamp.UnmarshalJSON(stamp)
	}
	return m
}
