package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/rawjson"
)

const (
	maxToolBody         = 64 << 10
	toolBodyTimeout     = 5 * time.Second
	toolFailedReply     = "The tool failed; tell the user that this does not work right now and go on without it"
	toolUnreadableReply = "The call could not be read; call the tool again"
	toolBusyReply       = "The tool is busy; call it again in a moment"
)

// ToolError is an error whose text is meant for the model: "no order with that
// number; ask the user to read it out again". A function given to AddTool
// returns it, as a value or a pointer, wrapped or not. One without a text counts
// as any other error.
type ToolError struct{ Message string }

// Error returns the message.
func (e ToolError) Error() string { return e.Message }

// ToolOutcome tells how a tool call ended. The values are few and fixed, so they
// are safe as metric labels.
type ToolOutcome string

// The outcomes, and what the model is told. The last one and a body above 64 KiB
// are answered with another status than 200, so the model is told nothing.
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

// ToolCallInfo is what WithToolObserver is told of a call: nothing of the
// arguments and the reply. So Err is nil for ToolTold, whose error is the reply.
type ToolCallInfo struct {
	Tool      string
	Outcome   ToolOutcome
	Duration  time.Duration // from the arrival of the headers to the answer
	SessionID string        // as the caller sent it; empty if it sent none
	Err       error         // what was wrong; nil for ToolAnswered and ToolTold
}

// Format shows tool, outcome, session and the text of the error.
func (i ToolCallInfo) Format(f fmt.State, _ rune) { writeText(f, i.describe()) }

// LogValue shows tool, outcome, session and the text of the error.
func (i ToolCallInfo) LogValue() slog.Value { return slog.StringValue(i.describe()) }

func (i ToolCallInfo) describe() string {
	text := fmt.Sprintf("heads.ToolCallInfo{%s: %s, session: %s", i.Tool, i.Outcome, i.SessionID)
	if i.Err != nil {
		text += fmt.Sprintf(", error: %v", i.Err)
	}
	return text + "}"
}

// toolBodies holds buffers of at most about twice maxToolBody.
var toolBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

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
	errToolEnded     = errors.New("heads: the function ended its goroutine")
	errNotAnObject   = errors.New("the body is not a JSON object")
)

// serve answers a call that found its tool.
func (s *toolServer) serve(w http.ResponseWriter, r *http.Request, t *servedTool) {
	started := time.Now()
	ctx, result := r.Context(), toolResult{ToolBusy, toolBusyReply, errToolsShutDown, 0}
	if s.gate.enter() {
		defer s.gate.leave()
		ctx, result = s.receive(w, r, t)
	} else {
		t.logger.InfoContext(ctx, "tool call refused", slog.String("error", result.err.Error()))
	}
	if result.status == 0 {
		s.reply(w, result.message)
	} else {
		http.Error(w, result.message, result.status)
	}
	if s.observe != nil {
		s.report(ctx, t, ToolCallInfo{Tool: t.tool.Name, Outcome: result.outcome, Duration: time.Since(started), Err: result.err})
	}
}

// report survives a panic of the observer.
func (s *toolServer) report(ctx context.Context, t *servedTool, info ToolCallInfo) {
	defer func() {
		if p := recover(); p != nil {
			t.logger.LogAttrs(ctx, slog.LevelError, "tool observer panicked", errorAttrs(newPanicError(p))...)
		}
	}()
	session, _ := SessionFromContext(ctx)
	info.SessionID = session.SessionID
	s.observe(ctx, info)
}

// receive returns the context of the call, with its session if that was read.
func (s *toolServer) receive(w http.ResponseWriter, r *http.Request, t *servedTool) (context.Context, toolResult) {
	ctx := r.Context()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxToolBody)
	if s.check != nil {
		if err := s.authorize(r); err != nil {
			t.logger.WarnContext(ctx, "tool call refused", slog.String("error", fmt.Sprint(err)))
			return ctx, toolResult{ToolUnauthorized, "unauthorized", err, http.StatusUnauthorized}
		}
		limitBodyTime(w) // anew, since the check may have taken long
	}
	body, err := readToolBody(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		t.logger.WarnContext(ctx, "body of a tool call is too large")
		return ctx, toolResult{ToolUnreadable, "the body is above 64 KiB", err, http.StatusRequestEntityTooLarge}
	case err != nil:
		t.logger.WarnContext(ctx, "tool call could not be read", slog.String("error", err.Error()))
		return ctx, toolResult{ToolUnreadable, toolUnreadableReply, err, 0}
	}
	values, session := argumentsOf(body, t.fields)
	ctx = withSession(ctx, session)
	return ctx, s.answer(ctx, t, values)
}

// authorize turns a panic of the check into a refusal.
func (s *toolServer) authorize(r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return s.check(r)
}

// limitBodyTime starts the time in which the body must arrive. Not every
// writer has deadlines; the server's ReadTimeout is all there is then.
func limitBodyTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(toolBodyTimeout))
}

// readToolBody returns a body that is a JSON object. It ends a connection on
// which the body does not come.
func readToolBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	buffer := toolBodies.Get().(*bytes.Buffer)
	defer toolBodies.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(r.Body); err != nil {
		w.Header().Set("Connection", "close")
		return nil, err
	}
	// A deadline that stays would end the request's context while f runs.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})

	body := bytes.TrimSpace(buffer.Bytes())
	if rawjson.Kind(body) != "object" || !json.Valid(body) {
		return nil, errNotAnObject
	}
	return bytes.Clone(body), nil
}

// argumentsOf returns the values of the fields, and the session beside them.
// The arguments are flat in the body, or, when none of the tool's parameters is
// there, in an object of their own.
func argumentsOf(body []byte, fields argumentFields) (values []json.RawMessage, session json.RawMessage) {
	session, _ = rawjson.Value(body, sessionMetadataName)
	values, found := fields.find(body)
	for _, name := range []string{"parameters", "arguments"} {
		if found {
			break
		}
		nested, _ := rawjson.Value(body, name)
		values, found = fields.find(nested)
	}
	return values, slices.Clip(session)
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
	s.gate.stay() // for the function, which may outlive the call
	started := time.Now()
	answered := make(chan toolResult)
	go func() {
		defer s.gate.leave()
		result := toolResult{ToolPanicked, toolFailedReply, errToolEnded, 0} // stays after runtime.Goexit
		defer func() {
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

// callTool calls the function and survives its panic.
func callTool(ctx context.Context, t *servedTool, values []json.RawMessage) (result toolResult) {
	returned := false
	defer func() {
		if !returned {
			err := newPanicError(recover())
			t.logger.ErrorContext(ctx, "tool panicked", slog.String("panic", fmt.Sprint(err.value)), slog.String("stack", string(err.stack)))
			result = toolResult{ToolPanicked, toolFailedReply, err, 0}
		}
	}()
	text, err := t.call(ctx, values)
	if err == nil {
		result = toolResult{outcome: ToolAnswered, message: text}
	} else {
		result = resultOf(ctx, t, err)
	}
	returned = true
	return result
}

// resultOf chooses what the model may know of err.
func resultOf(ctx context.Context, t *servedTool, err error) toolResult {
	var faults argumentFaults
	if errors.As(err, &faults) {
		names := faults.parameters()
		t.logger.WarnContext(ctx, "tool call has unusable arguments", slog.Any("parameters", names))
		return toolResult{ToolArguments, faults.Error(), fmt.Errorf("heads: unusable arguments: %s", strings.Join(names, ", ")), 0}
	}
	if message := toolErrorMessage(err); message != "" {
		return toolResult{outcome: ToolTold, message: message}
	}
	t.logger.ErrorContext(ctx, "tool failed", slog.String("error", fmt.Sprint(err)))
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

// reply writes the one answer that the service understands.
func (s *toolServer) reply(w http.ResponseWriter, message string) {
	body, _ := json.Marshal(struct { // a string always marshals
		Message string `json:"message"`
	}{replyText(message, s.replyLimit)})
	w.Header()["Content-Type"] = jsonHeader
	_, _ = w.Write(body) // nobody is left to be told of an error
}

// replyText returns text as one line of valid UTF-8: line breaks and other
// control characters, with the space around them, become one space.
func replyText(text string, limit int) string {
	if strings.IndexFunc(text, breaksLine) < 0 {
		return cutText(strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"), limit)
	}
	parts := strings.FieldsFunc(text, breaksLine)
	kept := parts[:0]
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			kept = append(kept, part)
		}
	}
	return cutText(strings.ToValidUTF8(strings.Join(kept, " "), "\uFFFD"), limit)
}

func breaksLine(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

// cutText returns text with at most limit characters, the last of them "…" if
// any were cut.
func cutText(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	count := 0
	for i := range text {
		if count++; count == limit {
			return strings.TrimSpace(text[:i]) + "…"
		}
	}
	return text
}
