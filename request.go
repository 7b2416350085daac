package heads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/go-querystring/query"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/keycache"
	"github.com/headsapi/heads-go/internal/keyed"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// core is what the services of a client share.
type core struct {
	transport *transport.Client

	chatBase, streamBase string // of access URLs, or ""
	streamingProvider    map[string]bool

	locks            keyed.Locks[lockKey] // of what is read, changed and written back whole
	webhooksModified atomic.Int64         // writes of Webhooks.Modify
	newKeys          sync.Once
	keys             *keycache.Cache // the shared keys of heads, for Webhooks.KeySource
	oldAddresses     sync.Map        // of heads that were switched and still show it: headMode to AccessURL
}

// service is the part that all services have.
type service struct{ core *core }

// payload is what an operation sends: the parameter of its route, unescaped and checked, the query
// of queryOf, and a JSON body.
type payload struct {
	param string
	query func() (url.Values, error)
	body  []byte
	once  bool   // without retries
	of    string // the id that the answer must have, if it is not param
}

func (p payload) request() (transport.Request, error) {
	r := transport.Request{Param: p.param, Body: p.body, Once: p.once}
	if p.query == nil {
		return r, nil
	}
	values, err := p.query()
	r.RawQuery = values.Encode()
	return r, err
}

// queryOf returns the query of options for go-querystring. A program links that module only if it
// calls an operation with a query.
func queryOf(options any) func() (url.Values, error) {
	return func() (url.Values, error) { return query.Values(options) }
}

// document is what the service answers with. Its id is checked.
type document[T any] interface {
	*T
	// decode reads a document. It retains no part of it.
	decode(document []byte) error
	// checkID returns an error unless the document is the one with that id. The error
	// shows nothing of the document.
	checkID(id string) error
}

// do makes one request whose answer has the shape T by the contract. It checks the identity
// of the answer: a page of a proxy or the document of another head must never be mistaken
// for the document, changed and written back.
func do[T any, P document[T]](ctx context.Context, c *core, op *transport.Operation, p payload) (*T, error) {
	call, err := c.exchange(ctx, op, p)
	if err != nil {
		return nil, err
	}
	defer call.Release()
	v := new(T)
	if err := decodeAnswer(call.Body.Bytes(), P(v)); err != nil {
		return nil, answerDecodeError(call, err)
	}
	if err := P(v).checkID(cmp.Or(p.of, p.param)); err != nil {
		return nil, answerDecodeError(call, err)
	}
	return v, nil
}

// doPlain makes one request whose answer the contract does not describe.
func doPlain(ctx context.Context, c *core, op *transport.Operation, p payload) (*Response, error) {
	call, err := c.exchange(ctx, op, p)
	if err != nil {
		return nil, err
	}
	defer call.Release()
	return newResponse(call), nil
}

// doQuiet makes one request and ignores its answer.
func doQuiet(ctx context.Context, c *core, op *transport.Operation, p payload) error {
	call, err := c.exchange(ctx, op, p)
	if err == nil {
		call.Release()
	}
	return err
}

// exchange makes a call with a payload. The call that it returns succeeded, and must be released.
func (c *core) exchange(ctx context.Context, op *transport.Operation, p payload) (*transport.Call, error) {
	r, err := p.request()
	if err != nil {
		return nil, fmt.Errorf("heads: %s: query: %w", op.Name, err)
	}
	return c.send(ctx, op, r)
}

// send is the one place where a call is made. The call that it returns succeeded, and must be
// released.
func (c *core) send(ctx context.Context, op *transport.Operation, r transport.Request) (*transport.Call, error) {
	if err := c.check(ctx, op.Name); err != nil {
		return nil, err
	}
	call, err := c.transport.Do(ctx, op, r)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", op.Name, err)
	}
	if err := outcome(ctx, call); err != nil {
		call.Release()
		return nil, err
	}
	return call, nil
}

// check refuses a client that was not made by New, and a context that is nil or has ended.
func (c *core) check(ctx context.Context, operation string) error {
	if c == nil {
		return invalid(operation, "client", "was not made by New", "make one with New or NewFromEnv", useNew)
	}
	if ctx == nil {
		return invalid(operation, "context", "is nil", "give context.Background()", useBackground)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("heads: %s: nothing was sent: %w", operation, err)
	}
	return nil
}

// lockKey identifies what only one call of a client may change at a time.
type lockKey struct{ what, id string }

// headLock is the key for a part of a head. Ids are UUIDs, whose case is
// ignored.
func headLock(what, headID string) lockKey { return lockKey{what, strings.ToLower(headID)} }

// lock waits until no other call of this client reads, changes and writes the same thing.
func (c *core) lock(ctx context.Context, operation string, key lockKey) (unlock func(), err error) {
	if err := c.check(ctx, operation); err != nil {
		return nil, err
	}
	unlock, err = c.locks.Lock(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", operation, err)
	}
	return unlock, nil
}

// outcome returns nil if the call succeeded, else its error.
func outcome(ctx context.Context, c *transport.Call) error {
	switch {
	case c.WaitErr != nil && c.Err != nil:
		return newTransportError(ctx, c, fmt.Errorf("%w: %w", c.WaitErr, c.Err))
	case c.WaitErr != nil:
		e := answerError(ctx, c)
		e.cause = c.WaitErr
		return e
	case c.Err != nil:
		return newTransportError(ctx, c, c.Err)
	case c.Deleted():
		return nil
	case !transport.IsSuccess(c.Status):
		return answerError(ctx, c)
	case c.TooLong:
		return answerDecodeError(c, errTooLarge)
	}
	return nil
}

// newResponse is the answer to a call that succeeded.
func newResponse(c *transport.Call) *Response {
	return &Response{
		StatusCode: c.Status,
		Header:     shownHeader(c),
		Body:       shownBody(c, transport.MaxAnswer),
		Attempts:   c.Attempts,
		RequestID:  c.RequestID(),
		operation:  c.Op.Name,
	}
}

// Response is the answer to Client.Do: any status from 200 to 299, with a body
// that may be empty and need not be JSON.
type Response struct {
	StatusCode int
	Header     http.Header // Set-Cookie and the query of Location are [redacted]
	Body       Raw
	Attempts   int
	RequestID  string

	operation string
}

// Decode reads a JSON body into v. It returns a DecodeError for a body that is
// empty or of another shape.
func (r *Response) Decode(v any) error { return decodeInto(r.operation, r.Body.Bytes(), v) }

// isOwn reports whether the answer to a change can only be the service's own: it is empty,
// true, or the record with that id, which occurs once.
func (r *Response) isOwn(id string) bool {
	body := bytes.TrimSpace(r.Body.Bytes())
	if len(body) == 0 || string(body) == "true" {
		return true
	}
	found, _ := rawjson.Value(body, "id")
	return json.Valid(body) && exactjson.Once(body, "id") == nil && strings.EqualFold(strings.Trim(string(found), `"`), id)
}

// isPage reports whether the answer is HTML, which the service never sends.
func (r *Response) isPage() bool {
	return bytes.HasPrefix(bytes.TrimSpace(r.Body.Bytes()), []byte("<"))
}

// confirm reads back what a change has made, unless the answer can only be the service's
// own. A status of 200 is not enough: a proxy that is under maintenance sends it with a
// page of its own.
func confirm[T any](operation string, answer *Response, id string, read func() (T, error), made func(T) bool) error {
	if answer.isOwn(id) {
		return nil
	}
	now, err := read()
	switch {
	case err != nil:
		return fmt.Errorf("heads: %s: the answer to the change may not be the service's, and a follow-up read that would show the change failed: %w", operation, err)
	case !made(now):
		return notMadeError("heads: " + operation + ": the answer to the change may not be the service's, and a follow-up read does not show the change; try again")
	}
	return nil
}

// notMadeError is the error for a change that only a proxy may have answered.
type notMadeError string

func (e notMadeError) Error() string { return string(e) }

var (
	errTooLarge    error = answerFault(fmt.Sprintf("the answer is longer than %d bytes", transport.MaxAnswer))
	errEmptyAnswer error = answerFault("it is empty")
	errNullAnswer  error = answerFault("it is null")
)

// A type that reads its own JSON has a method decode, and one that writes its own
// has a method document. UnmarshalJSON and MarshalJSON only call them. Requests
// are written by document too. All other types have tags for encoding/json.

// sameID compares the id in an answer with the one in the request. what names the document
// in the error, which shows neither id.
func sameID(what, found, asked string) error {
	switch {
	case found == "":
		return answerFault("it holds no id, so it is not the " + what + " that was asked for")
	case !strings.EqualFold(found, asked):
		return answerFault("it is not the " + what + " that was asked for: its id differs")
	}
	return nil
}

// decodeAnswer reads a document of the service. The caller may reuse data
// afterwards.
func decodeAnswer(data []byte, into interface{ decode(document []byte) error }) error {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errEmptyAnswer
	case !json.Valid(data):
		return json.Unmarshal(data, new(json.RawMessage)) // the error that says where
	}
	return into.decode(data)
}

// decodeObject reads a document that must be an object into a struct.
func decodeObject(document []byte, into any, rules exactjson.Rules) error {
	if rawjson.IsNull(document) {
		return errNullAnswer
	}
	return exactjson.Decode(document, into, rules)
}

// unmarshal is decode as an UnmarshalJSON method, for which null changes nothing.
func unmarshal(document []byte, decode func(document []byte) error) error {
	if rawjson.IsNull(document) {
		return nil
	}
	return decode(document)
}

// anyField is the rule of a document whose fields may have any type.
func anyField(string) bool { return true }
