package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxToolBody         = 64 << 10
	toolBodyTimeout     = 5 * time.Second
	toolFailedReply     = "The tool failed; tell the user that this does not work right now and go on without it"
	toolUnreadableReply = "The call could not be read; call the tool again"
)

// ToolError is an error whose text is meant for the model: "no order with that
// number; ask the user to read it out again". A function given to AddTool
// returns it, as a value or a pointer, wrapped or not. One without a text counts
// as any other error.
type ToolError struct{ Message string }

// Error returns the message.
func (e ToolError) Error() string { return e.Message }

// toolBodies holds buffers of at most about twice maxToolBody.
var toolBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// serve answers a call that found its tool.
func (s *toolServer) serve(w http.ResponseWriter, r *http.Request, t *servedTool) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxToolBody)
	if s.check != nil {
		if err := s.authorize(r); err != nil {
			t.logger.WarnContext(r.Context(), "tool call refused", slog.String("error", fmt.Sprint(err)))
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		limitBodyTime(w) // anew, since the check may have taken long
	}
	body, err := readToolBody(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		t.logger.WarnContext(r.Context(), "body of a tool call is too large")
		http.Error(w, "the body is above 64 KiB", http.StatusRequestEntityTooLarge)
	case err != nil:
		t.logger.WarnContext(r.Context(), "tool call could not be read", slog.String("error", err.Error()))
		s.reply(w, toolUnreadableReply)
	default:
		values, session := argumentsOf(body, t.fields)
		s.reply(w, s.answer(withSession(r.Context(), session), t, values))
	}
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

var errNotAnObject = errors.New("the body is not a JSON object")

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
	if jsonKind(body) != "object" || !json.Valid(body) {
		return nil, errNotAnObject
	}
	return bytes.Clone(body), nil
}

// argumentsOf returns the values of the fields, and the session beside them.
// The arguments are flat in the body, or, when none of the tool's parameters is
// there, in an object of their own.
func argumentsOf(body []byte, fields argumentFields) (values []json.RawMessage, session json.RawMessage) {
	session, _ = rawMember(body, sessionMetadataName)
	values, found := fields.find(body)
	for _, name := range []string{"parameters", "arguments"} {
		if found {
			break
		}
		nested, _ := rawMember(body, name)
		values, found = fields.find(nested)
	}
	return values, slices.Clip(session)
}

// answer returns what the model is told. It waits for the function no longer
// than its deadline, even if the function does not look at its context.
func (s *toolServer) answer(ctx context.Context, t *servedTool, values []json.RawMessage) string {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	started := time.Now()
	answered, gaveUp := make(chan string), make(chan struct{})
	defer close(gaveUp)
	go func() {
		message := toolFailedReply // stays if the function ends its goroutine
		defer func() {
			select {
			case answered <- message:
			case <-gaveUp:
				t.logger.WarnContext(ctx, "tool returned after its call had ended", slog.Duration("took", time.Since(started)))
			}
		}()
		message = callTool(ctx, t, values)
	}()
	select {
	case message := <-answered:
		return message
	case <-ctx.Done():
		t.logger.ErrorContext(ctx, "tool call ended before its tool", slog.Duration("took", time.Since(started)), slog.String("error", ctx.Err().Error()))
		return toolFailedReply
	}
}

// callTool calls the function and survives its panic.
func callTool(ctx context.Context, t *servedTool, values []json.RawMessage) (message string) {
	returned := false
	defer func() {
		if !returned {
			t.logger.ErrorContext(ctx, "tool panicked", slog.String("panic", fmt.Sprint(recover())), slog.String("stack", string(debug.Stack())))
			message = toolFailedReply
		}
	}()
	text, err := t.call(ctx, values)
	if err != nil {
		text = messageOf(ctx, t, err)
	}
	returned = true
	return text
}

// messageOf chooses what the model may know of err.
func messageOf(ctx context.Context, t *servedTool, err error) string {
	var faults argumentFaults
	if errors.As(err, &faults) {
		t.logger.WarnContext(ctx, "tool call has unusable arguments", slog.Any("parameters", faults.parameters()))
		return faults.Error()
	}
	if message := toolErrorMessage(err); message != "" {
		return message
	}
	t.logger.ErrorContext(ctx, "tool failed", slog.String("error", fmt.Sprint(err)))
	return toolFailedReply
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
