package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// These errors match an *Error by its status with errors.Is. ErrServer matches
// every status from 500 up.
var (
	ErrBadRequest    = errors.New("heads: bad request (400)")
	ErrUnauthorized  = errors.New("heads: unauthorized (401)")
	ErrForbidden     = errors.New("heads: forbidden (403)")
	ErrNotFound      = errors.New("heads: not found (404)")
	ErrConflict      = errors.New("heads: conflict (409)")
	ErrUnprocessable = errors.New("heads: unprocessable (422)")
	ErrRateLimited   = errors.New("heads: rate limited (429)")
	ErrServer        = errors.New("heads: server error (5xx)")
)

// answerFault describes what is wrong with an answer. It shows nothing of the
// answer.
type answerFault string

func (f answerFault) Error() string { return string(f) }

const (
	maxErrorBody  = 64 << 10 // of Error.Body
	maxDecodeBody = 4 << 10  // of DecodeError.Body
	maxMessage    = 200      // of Error.Message, in characters
	maxErrorText  = 400      // of a foreign error's text, in characters
	maxLabel      = 128      // of Error.Code and the request id
)

// Error is an answer of the service with a status outside 200 to 299. It prints
// what is needed to act on it, but neither body nor header.
//
// If the wait for a retry ended early, the Error also unwraps to the reason,
// such as context.Canceled.
type Error struct {
	Operation  string // "Heads.Get"
	Method     string // "GET"
	Path       string // "/head/3fa8…", without the prefix of the base URL and without a query
	StatusCode int
	Code       string // the service's own code, if it sent one
	Message    string // from the answer: one line, at most 200 characters, the client's token and query strings masked
	RequestID  string
	RetryAfter time.Duration // 0 when the service did not ask for a wait
	Attempts   int
	Header     http.Header // Set-Cookie and the query of Location are [redacted]
	Body       Raw         // at most 64 KiB

	cause error
}

// Error returns operation, status, message and the wait that the service asked
// for.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "heads: %s: %s %s: %d", e.Operation, e.Method, e.Path, e.StatusCode)
	if text := http.StatusText(e.StatusCode); text != "" {
		b.WriteString(" " + text)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (retry after %v)", e.RetryAfter.Round(time.Second))
	}
	if e.RequestID != "" {
		b.WriteString(" [request " + e.RequestID + "]")
	}
	if e.cause != nil {
		b.WriteString(": " + e.cause.Error())
	}
	return b.String()
}

// Is reports whether target is the sentinel of the status: ErrNotFound for 404,
// and so on.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrBadRequest:
		return e.StatusCode == http.StatusBadRequest
	case ErrUnauthorized:
		return e.StatusCode == http.StatusUnauthorized
	case ErrForbidden:
		return e.StatusCode == http.StatusForbidden
	case ErrNotFound:
		return e.StatusCode == http.StatusNotFound
	case ErrConflict:
		return e.StatusCode == http.StatusConflict
	case ErrUnprocessable:
		return e.StatusCode == http.StatusUnprocessableEntity
	case ErrRateLimited:
		return e.StatusCode == http.StatusTooManyRequests
	case ErrServer:
		return e.StatusCode >= http.StatusInternalServerError
	}
	return false
}

// Unwrap returns what ended the call after this answer, or nil.
func (e *Error) Unwrap() error { return e.cause }

// LogValue returns the fields that are safe to log: all but Header and Body.
func (e Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("operation", e.Operation),
		slog.String("method", e.Method),
		slog.String("path", e.Path),
		slog.Int("status", e.StatusCode),
		slog.String("code", e.Code),
		slog.String("message", e.Message),
		slog.String("request_id", e.RequestID),
		slog.Duration("retry_after", e.RetryAfter),
		slog.Int("attempts", e.Attempts),
	)
}

// because returns an error with a text of its own that errors.Is matches with
// the sentinel. The sentinel's general words are not part of the text, since
// they could contradict it.
func because(sentinel error, format string, args ...any) error {
	return &reasonedError{text: fmt.Sprintf(format, args...), sentinel: sentinel}
}

type reasonedError struct {
	text     string
	sentinel error
}

func (e *reasonedError) Error() string { return e.text }
func (e *reasonedError) Unwrap() error { return e.sentinel }

// DecodeError reports that the service did what was asked, but its answer can't
// be read. Body holds at most the first 4 KiB of the answer.
type DecodeError struct {
	Operation string
	Body      Raw
	Err       error

	foreign bool // it was read into a type of the caller's, so names of fields may come from the answer
}

// Error returns what is wrong with the answer. It shows nothing of the answer.
func (e *DecodeError) Error() string {
	what := "the request succeeded, but its answer"
	if e.Operation == opRawDecode {
		what = "the text"
	}
	return fmt.Sprintf("heads: %s: %s can't be read: %s", e.Operation, what, e.reason())
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }

// reason describes Err without the value that caused it, since the text of Err
// may hold that value.
func (e *DecodeError) reason() string {
	var mismatch *json.UnmarshalTypeError
	var twice *exactjson.DuplicateError
	var syntax *json.SyntaxError
	var fault answerFault
	switch {
	case e.Err == nil:
		return "no reason is known"
	case errors.As(e.Err, &mismatch):
		what := "it is"
		switch field := mismatch.Field; {
		case field == "":
		case e.foreign:
			what = "a field in it holds"
		case strings.HasPrefix(field, "customWords."):
			what = `field "customWords" holds` // the rest of the path is a word of the head's
		default:
			what = fmt.Sprintf("field %q holds", field)
		}
		return what + " " + describeMismatch(mismatch)
	case errors.As(e.Err, &twice):
		return twice.Error()
	case errors.As(e.Err, &syntax):
		return "it is not JSON"
	case errors.As(e.Err, &fault):
		return string(fault)
	default:
		return "a value in it is not of the form that its type wants"
	}
}

func newDecodeError(operation string, document []byte, err error) *DecodeError {
	return &DecodeError{Operation: operation, Body: NewRaw(document[:min(len(document), maxDecodeBody)]), Err: err}
}

// decodeInto reads JSON into a value of the caller's.
func decodeInto(operation string, text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		failure := newDecodeError(operation, text, err)
		failure.foreign = true
		return failure
	}
	return nil
}

// describeMismatch says what was found and what was expected, in JSON's words.
func describeMismatch(mismatch *json.UnmarshalTypeError) string {
	found, want := mismatch.Value, jsonType(mismatch.Type)
	switch {
	case strings.HasPrefix(found, "number"):
		found = "number" // without its digits
	case found == "bool":
		found = "boolean"
	}
	if found = "a JSON " + found; found == want {
		return found + " that is out of range"
	}
	return found + "; want " + want
}

// jsonType names the JSON value from which a Go type is read.
func jsonType(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "a JSON string"
	case reflect.Bool:
		return "a JSON boolean"
	case reflect.Float32, reflect.Float64:
		return "a JSON number"
	case reflect.Slice, reflect.Array:
		switch t.Elem().Kind() {
		case reflect.String:
			return "a JSON array of strings"
		case reflect.Uint8:
			return "a JSON string" // in base64
		}
		return "a JSON array"
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return "a JSON object of strings"
		}
		return "a JSON object"
	case reflect.Struct:
		return "a JSON object"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr {
		return "a JSON number without a fraction"
	}
	return "another value"
}

// transportError is the failure of a call whose last attempt got no whole
// answer. It unwraps to the error of the transport, and to the last answer if
// there was one.
type transportError struct {
	where    string // "Heads.Get: GET /head/3fa8…"
	text     string // of err, with URLs and token redacted
	attempts int
	err      sealed[error] // its own text may hold a secret
	last     *Error
}

func (e *transportError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "heads: %s: no answer: %s", e.where, e.text)
	if e.attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.attempts)
	}
	if e.last != nil {
		fmt.Fprintf(&b, " (the last status was %d)", e.last.StatusCode)
	}
	return b.String()
}

func (e *transportError) Unwrap() []error {
	if e.last != nil {
		return []error{e.err.get(), e.last}
	}
	return []error{e.err.get()}
}

// redactedError is a foreign error with a text that is safe to show.
type redactedError struct {
	text string
	err  sealed[error] // its own text may hold a secret
}

// redact returns err with the text of shownText.
func redact(err error, secrets ...string) error {
	return &redactedError{text: shownText(err, secrets...), err: seal(err)}
}

// shownText returns the text of a foreign error without the secrets, in at most maxErrorText
// characters.
func shownText(err error, secrets ...string) string {
	return mask.ErrorText(err.Error(), maxErrorText, secrets...)
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err.get() }

// quote returns a value that was given by mistake in quotes, clipped to fit into
// an error.
func quote(value string) string { return mask.Quote(value) }

// label returns a foreign label, such as an id or a name, in a form that may be shown.
func label(text string) string { return mask.OneLine(text, maxLabel) }

// shownError returns the text of an error that a function of the user returned, fit for
// a log line. It recovers from an Error method that panics.
func shownError(err error) string { return mask.OneLine(fmt.Sprint(err), 1024) }

// Temporary reports whether the same call may succeed later. It returns true if
// the service sent no answer, did not get enough time, or answered 408, 425, 429
// or 5xx other than 501, if a change that a proxy may have answered was not made,
// and if a conversion failed with ReasonTemporary or ReasonUnknownOutcome. Joined
// errors are temporary if all of them are.
//
// Temporary returns false for nil, for a call whose context was canceled, and
// for any other error.
func Temporary(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it unwraps step by step
	case interface{ temporary() bool }:
		return e.temporary()
	case *net.OpError:
		return !errors.Is(err, context.Canceled)
	case interface{ Unwrap() []error }:
		isLasting := func(err error) bool { return !Temporary(err) }
		return len(e.Unwrap()) > 0 && !slices.ContainsFunc(e.Unwrap(), isLasting)
	case interface{ Unwrap() error }:
		return Temporary(e.Unwrap())
	}
	return err == context.DeadlineExceeded //nolint:errorlint // nothing is left to unwrap
}

func (e *Error) temporary() bool {
	return temporaryStatus(e.StatusCode) && !errors.Is(e.cause, context.Canceled)
}
func (e *transportError) temporary() bool { return !errors.Is(e, context.Canceled) }
func (notMadeError) temporary() bool      { return true }
func (*DecodeError) temporary() bool      { return false }
func (*InvalidError) temporary() bool     { return false }

func temporaryStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// mayHaveHappened reports whether the service may have done what a failed call
// asked for: there was no whole answer, or a 5xx, or an answer that can't be
// read.
func mayHaveHappened(err error) bool {
	var lost *transportError
	var unread *DecodeError
	return errors.As(err, &lost) || errors.As(err, &unread) || errors.Is(err, ErrServer)
}

// attemptError returns the error of the last attempt, for observers and the log.
func attemptError(c *transport.Call) error {
	if c.Err != nil {
		return redact(c.Err, c.Tokens()...)
	}
	return newError(c)
}

// answerError makes an *Error of the last answer.
func answerError(ctx context.Context, c *transport.Call) *Error {
	e := newError(c)
	e.Header = shownHeader(c)
	e.Body = shownBody(c, maxErrorBody)
	e.cause = c.TokenErr
	if c.Interrupted() {
		e.cause = ctx.Err()
	}
	return e
}

// newError returns an *Error without header and body.
func newError(c *transport.Call) *Error {
	text := readErrorText(c.Body.Bytes())
	e := &Error{
		Operation: c.Op.Name, Method: c.Op.Method, Path: c.Path,
		StatusCode: c.Status, Code: mask.Answer(text.code, maxLabel, c.Tokens()...), Message: mask.Answer(text.message, maxMessage, c.Tokens()...),
		RequestID: c.RequestID(), RetryAfter: c.RetryAfter(), Attempts: c.Attempts,
	}
	if target := redirectTarget(c); target != "" {
		e.Message = mask.OneLine("redirected to "+target+", which is not followed; give the URL at which the service itself answers", maxMessage)
	}
	return e
}

// errorText is the text in the body of an error answer, in the forms of field
// note 20.
type errorText struct{ message, code string }

func readErrorText(body []byte) errorText {
	cut := len(body) > maxErrorBody
	if cut {
		end := maxErrorBody
		for !utf8.RuneStart(body[end]) && end > maxErrorBody-utf8.UTFMax {
			end--
		}
		body = closeCut(body[:end])
	}
	doc, err := readTexts(body)
	found := errorText{message: valueText(doc)}
	if object, ok := doc.(map[string]any); ok {
		found.code = valueText(object["code"])
		for _, key := range []string{"error", "message"} {
			if nested, ok := object[key].(map[string]any); ok && found.code == "" {
				found.code = valueText(nested["code"])
			}
		}
		if err == nil || cut {
			return found
		}
	}
	if found.message == "" && !errors.Is(err, errTooDeep) && (doc != nil || err != nil) {
		found.message = plainText(body)
	}
	return found
}

// closeCut ends the JSON string in which a body is cut. Only its first half is kept, since
// its end may be the beginning of a token.
func closeCut(body []byte) []byte {
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		end := rawjson.SkipString(body, i)
		if end < len(body) {
			i = end - 1
			continue
		}
		text := body[i+1 : (i+1+len(body))/2]
		if escape := bytes.LastIndexByte(text, '\\'); escape >= len(text)-len(`\u00e4`) {
			text = bytes.TrimRight(text[:max(0, escape)], `\`)
		}
		return slices.Concat(body[:i+1], bytes.ToValidUTF8(text, nil), []byte{'"'})
	}
	return body
}

// plainText returns the message of a body that is not a JSON object. It returns
// "" for a text with escapes, since a token in it could not be recognized.
func plainText(body []byte) string {
	text := strings.TrimSpace(string(body))
	if !utf8.ValidString(text) || strings.Contains(text, `\`) {
		return ""
	}
	return text
}

// maxErrorDepth is how many levels of an error body are read.
const maxErrorDepth = 32

// readTexts reads a JSON value up to where it is cut, is no JSON, or is nested too deep.
func readTexts(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	doc, err := readValue(decoder, 0)
	if err != nil {
		return doc, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return doc, nil
}

// readValue returns what it has read before an error, too.
func readValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		var list []any
		for decoder.More() {
			value, err := readNested(decoder, depth)
			list = append(list, value)
			if err != nil {
				return list, err
			}
		}
		_, err = decoder.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return object, err
			}
			value, err := readNested(decoder, depth)
			object[key.(string)] = value // package json allows no other key
			if err != nil {
				return object, err
			}
		}
		_, err = decoder.Token()
		return object, err
	}
	return token, nil
}

// readNested ends the reading at what is too deep.
func readNested(decoder *json.Decoder, depth int) (any, error) {
	if depth++; depth >= maxErrorDepth {
		return nil, errTooDeep
	}
	return readValue(decoder, depth)
}

var errTooDeep = errors.New("nested too deep")

// valueText is textIn, where a number is a text too.
func valueText(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return textIn(value)
}

// messageKeys are the keys of an object that may hold its text, the best first.
var messageKeys = []string{"message", "error", "errors", "text", "detail", "title", "msg", "code"}

// textIn returns the text in a JSON value: a string itself, all texts of a list,
// and of an object the first text under one of the messageKeys. A number is a
// message only under the key message.
func textIn(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var texts []string
		for _, item := range v {
			if text := textIn(item); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "; ")
	case map[string]any:
		if number, ok := v["message"].(float64); ok {
			return strconv.FormatFloat(number, 'f', -1, 64)
		}
		for _, key := range messageKeys {
			if text := textIn(v[key]); text != "" {
				return text
			}
		}
	}
	return ""
}

// redirectTarget names the host that a redirect points to, for its error.
func redirectTarget(c *transport.Call) string {
	if c.Status < 300 || c.Status > 399 || c.Header.Get("Location") == "" {
		return ""
	}
	target, err := url.Parse(c.Header.Get("Location"))
	switch {
	case err != nil:
		return "an unreadable URL"
	case target.Host == "":
		return "another path of host " + c.Host()
	default:
		return "host " + mask.Secrets(target.Host, c.Tokens()...)
	}
}

// newTransportError is the outcome of a call whose last attempt got no whole answer.
func newTransportError(ctx context.Context, c *transport.Call, err error) error {
	err = mask.URLError(err)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	e := &transportError{
		where: c.Op.Name + ": " + c.Op.Method + " " + c.Path,
		text:  shownText(err, c.Tokens()...), attempts: c.Attempts, err: seal(err),
	}
	if c.MayBeCarriedOut() {
		e.text += "; the request was not retried and may have been carried out"
	}
	if c.Status != 0 && !transport.IsSuccess(c.Status) {
		e.last = answerError(ctx, c)
	}
	return e
}

// answerDecodeError returns the error for an answer that can't be read.
func answerDecodeError(c *transport.Call, err error) error {
	failure := newDecodeError(c.Op.Name, nil, err)
	failure.Body = shownBody(c, maxDecodeBody)
	return failure
}

// shownHeader returns the header of the last answer. What can be a credential in
// it is [redacted]: cookies of the service, parts of a redirect's address, and a
// token that the answer repeats.
func shownHeader(c *transport.Call) http.Header {
	shown := c.Header.Clone()
	for name, values := range shown {
		for i, value := range values {
			switch values[i] = mask.Secrets(value, c.Tokens()...); name {
			case "Set-Cookie":
				values[i] = redacted
			case "Location":
				values[i] = mask.URL(values[i])
			}
		}
	}
	return shown
}

// shownBody returns the body of the last answer, at most limit bytes.
func shownBody(c *transport.Call, limit int) Raw {
	return NewRaw(c.Body.Bytes()[:min(c.Body.Len(), limit)])
}
