package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/mask"
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

// ErrInvalid matches every InvalidError with errors.Is.
var ErrInvalid = errors.New("heads: invalid request")

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

// InvalidError reports that a request was refused before anything was sent.
type InvalidError struct {
	Operation string // "Heads.Get"
	Field     string // "head id"
	Problem   string // what is wrong, with the given value where it may be shown; it continues the sentence after Field
	Remedy    string // what to do, in Go's terms
	Use       string // the method, option or setter that Remedy names, such as "Webhooks.Ensure"; "" if none
}

// Error returns one sentence: operation, field, problem and remedy.
func (e *InvalidError) Error() string { return "heads: " + e.Operation + ": " + e.reason() }

// reason is the sentence without the operation.
func (e *InvalidError) reason() string {
	text := e.Field + " " + e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// invalid returns an InvalidError. The problem continues the sentence that field
// begins, with the given value or a verb. If the remedy names a method, an option
// or a setter, use is its name.
func invalid(operation, field, problem, remedy string, use ...string) error {
	return faultOf(operation, field, fault{Problem: problem, Remedy: remedy, Use: strings.Join(use, "")})
}

// The values of InvalidError.Use and Finding.Use. A program that is not written in
// Go, or whose users are not, has remedies of its own for them.
const (
	useAccessURL         = "Client.AccessURL"
	useAllowUnknownMode  = "ConvertOptions.AllowUnknownMode"
	useBackground        = "context.Background"
	useConvertVoice      = "ConvertOptions.Voice"
	useEnsure            = "Webhooks.Ensure"
	useHeadsGet          = "Heads.Get"
	useHeadsUpdate       = "Heads.Update"
	useKeySource         = "Webhooks.KeySource"
	useNew               = "New"
	useNewHeadUpdate     = "NewHeadUpdate"
	useNewWebhookUpdate  = "NewWebhookUpdate"
	useOperationMode     = "HeadUpdate.OperationMode"
	usePathEscape        = "url.PathEscape"
	usePutTool           = "ConversationSettings.PutTool"
	useQuery             = "Request.Query"
	useRemoveDuplicates  = "EnsureOptions.RemoveDuplicates"
	useReveal            = "Secret.Reveal"
	useSetDelivery       = "Webhooks.SetDelivery"
	useSetVideoStreaming = "Heads.SetVideoStreaming"
	useSettingsModify    = "ConversationSettings.Modify"
	useSettingsTools     = "ConversationSettings.Tools"
	useSystemPrompt      = "HeadUpdate.SystemPrompt"
	useVoice             = "HeadUpdate.Voice"
)

// fault is what is wrong with a field, for an InvalidError.
type fault = check.Fault

// faultOf returns f as the InvalidError about a field, or nil if f is no fault.
func faultOf(operation, field string, f fault) error {
	if !f.Found() {
		return nil
	}
	return &InvalidError{Operation: operation, Field: field, Problem: f.Problem, Remedy: f.Remedy, Use: f.Use}
}

func faultsOf(operation, field string, found []fault) (faults faultList) {
	for _, f := range found {
		faults.add(faultOf(operation, field, f))
	}
	return faults
}

// checkText returns a fault for a required text that is blank. The remedy ends
// the sentence.
func checkText(operation, field, text, remedy string, use ...string) error {
	return faultOf(operation, field, check.Text(text, remedy, use...))
}

func checkHeadID(operation, id string) error {
	return faultOf(operation, "head id", check.HeadID(id))
}

func checkPathID(operation, field, id string) error {
	return faultOf(operation, field, check.PathID(id))
}

func checkWebhookID(operation string, id int64) error {
	return faultOf(operation, "webhook id", check.WebhookID(id))
}

// checkCallbackURL refuses a URL that the service could not or would not call.
func checkCallbackURL(operation, field, raw string) error {
	_, found := check.URL(raw, check.Callback)
	return faultsOf(operation, field, found).join()
}

// checkBaseURL returns the base URL of the service, or of access URLs, without a slash
// at its end.
func checkBaseURL(operation, field, raw string, insecure bool) (*url.URL, error) {
	purpose := check.Base
	if insecure {
		purpose = check.InsecureBase
	}
	u, found := check.URL(raw, purpose)
	if len(found) > 0 {
		return nil, faultsOf(operation, field, found).join()
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
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

// faultList collects the faults of one call, which are returned together.
type faultList []error

func (l *faultList) add(err error) {
	if err != nil {
		*l = append(*l, err)
	}
}

// join returns nil for no fault, the fault itself for one, and errors.Join for
// more.
func (l faultList) join() error {
	if len(l) == 1 {
		return l[0]
	}
	return errors.Join(l...)
}

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
// or 5xx other than 501, and if a conversion failed with ReasonTemporary or
// ReasonUnknownOutcome. Joined errors are temporary if all of them are.
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
