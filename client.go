package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/go-querystring/query"
)

// Version is the version of this library, as it stands in the User-Agent.
const Version = "0.1.0"

const userAgent = "heads-go/" + Version

// Client gives access to all operations of the service. It is safe for
// concurrent use and never changes after New. It needs no closing.
type Client struct {
	Heads                *HeadsService
	HeadVisuals          *HeadVisualsService
	Webhooks             *WebhooksService
	ConversationSettings *ConversationSettingsService

	core *core
}

// core is what New made of base URL, token and options.
type core struct {
	base        *url.URL
	credentials *credentials
	retrier     *retryClient
	retry       RetryPolicy
	observer    func(context.Context, Attempt)
	logger      *slog.Logger
	userAgent   []string

	chatBase, streamBase string
	streamingProvider    map[string]bool
	insecureHTTP         bool

	locks keyedLocks // of what is read, changed and written back whole

	oldAddresses sync.Map // of heads that were switched and still show it: head id to AccessURL
}

// New returns a client for the service at baseURL, which authenticates with a
// bearer token. It makes no network call.
//
// The base URL must be absolute, with a host and without user name, query or
// fragment; a path is kept as a prefix. Plain http is refused unless the host
// is loopback or WithInsecureHTTP is given. The token is given without
// "Bearer "; with WithTokenSource it must be "". All faults are reported
// together, each an InvalidError.
func New(baseURL, token string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	faults := faultList{err}
	base, err := checkBaseURL("New", "base URL", baseURL, cfg.insecureHTTP)
	faults.add(err)
	switch {
	case cfg.tokenSource == nil:
		if fault := checkToken(token); fault != "" {
			faults.add(invalid("New", "token", "%s", fault))
		}
	case token != "":
		faults.add(invalid("New", "token", "is given beside a token source; give one of the two"))
	}
	faults.add(cleanAccessBase("chat URL", &cfg.chatURL, cfg.insecureHTTP))
	faults.add(cleanAccessBase("stream URL", &cfg.streamURL, cfg.insecureHTTP))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return newClient(base, newCredentials(token, cfg.tokenSource), cfg), nil
}

func newClient(base *url.URL, creds *credentials, cfg *config) *Client {
	c := &Client{core: &core{
		base:              base,
		credentials:       creds,
		retrier:           newRetrier(newHTTPClient(cfg)),
		retry:             cfg.retry,
		observer:          cfg.observer,
		logger:            cfg.logger,
		userAgent:         []string{cfg.userAgent},
		chatBase:          cfg.chatURL,
		streamBase:        cfg.streamURL,
		streamingProvider: cfg.streamingProvider,
		insecureHTTP:      cfg.insecureHTTP,
	}}
	c.Heads = &HeadsService{service{c}}
	c.HeadVisuals = &HeadVisualsService{service{c}}
	c.Webhooks = &WebhooksService{service{c}}
	c.ConversationSettings = &ConversationSettingsService{service{c}}
	return c
}

// newHTTPClient copies the caller's client: transport and cookie jar are kept,
// the time-out moves into the attempt.
func newHTTPClient(cfg *config) *http.Client {
	var given http.Client
	if cfg.httpClient != nil {
		given = *cfg.httpClient
	}
	transport := &attemptTransport{base: http.DefaultTransport, timeout: attemptTimeout(cfg.attemptTimeout, given.Timeout)}
	if given.Transport != nil {
		transport.base = given.Transport
	}
	return &http.Client{Transport: transport, Jar: given.Jar}
}

// attemptTimeout is the limit of WithAttemptTimeout or the caller's
// http.Client, the shorter of the two, or else the default.
func attemptTimeout(option, client time.Duration) time.Duration {
	switch {
	case option <= 0 && client <= 0:
		return defaultAttemptTimeout
	case option <= 0:
		return client
	case client <= 0:
		return option
	default:
		return min(option, client)
	}
}

// NewFromEnv is New with base URL and token from HEADS_BASE_URL and
// HEADS_TOKEN. HEADS_CHAT_URL and HEADS_STREAM_URL, where set, stand for
// WithAccessURLs; opts are applied after it.
func NewFromEnv(opts ...Option) (*Client, error) {
	baseURL, token := os.Getenv("HEADS_BASE_URL"), os.Getenv("HEADS_TOKEN")
	var faults faultList
	if baseURL == "" {
		faults.add(invalid("NewFromEnv", "HEADS_BASE_URL", "is not set; set it to the address of the service"))
	}
	cfg, err := newConfig(opts)
	faults.add(err)
	if token == "" && cfg.tokenSource == nil {
		faults.add(invalid("NewFromEnv", "HEADS_TOKEN", "is not set; set it to the access token, without \"Bearer \""))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	if chat, stream := os.Getenv("HEADS_CHAT_URL"), os.Getenv("HEADS_STREAM_URL"); chat != "" || stream != "" {
		opts = append([]Option{WithAccessURLs(chat, stream)}, opts...)
	}
	return New(baseURL, token, opts...)
}

// Format shows the base URL and nothing else.
func (c Client) Format(f fmt.State, _ rune) { writeText(f, c.describe()) }

// LogValue shows the base URL and nothing else.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.describe()) }

func (c Client) describe() string {
	if c.core == nil {
		return "heads.Client{}"
	}
	return "heads.Client{" + c.core.base.String() + "}"
}

// service is the part that all services share: the client, printed safely.
type service struct{ c *Client }

// Format shows the client's base URL and nothing else.
func (s service) Format(f fmt.State, _ rune) { writeText(f, s.describe()) }

// LogValue shows the client's base URL and nothing else.
func (s service) LogValue() slog.Value { return slog.StringValue(s.describe()) }

func (s service) describe() string {
	if s.c == nil {
		return "heads.Client{}"
	}
	return s.c.describe()
}

// operation is one endpoint of the service.
type operation struct {
	name, method, route string // "Heads.Get", "GET", "/head/{id}"
	before, after       string // the route around its parameter
}

func newOperation(name, method, route string) *operation {
	op := &operation{name: name, method: method, route: route}
	before, rest, found := strings.Cut(route, "{")
	op.before = before
	if found {
		_, op.after, _ = strings.Cut(rest, "}")
	}
	return op
}

// request is what a method hands to do: the parameter of the route, unescaped
// and checked, query options for go-querystring, and a JSON body. With once it
// is not retried.
type request struct {
	param string
	query any
	body  []byte
	once  bool
}

// jsonHeader is shared by all requests and never changed.
var jsonHeader = []string{"application/json"}

// do makes one request whose answer has the shape T by the contract.
func do[T any](ctx context.Context, c *Client, op *operation, r request) (*T, error) {
	call, err := c.exchange(ctx, op, r)
	if err != nil {
		return nil, err
	}
	defer call.release()
	v := new(T)
	if err := decodeAnswer(call.body.Bytes(), v); err != nil {
		return nil, call.decodeError(err)
	}
	return v, nil
}

// doPlain makes one request whose answer the contract does not describe.
func doPlain(ctx context.Context, c *Client, op *operation, r request) (*Response, error) {
	call, err := c.exchange(ctx, op, r)
	if err != nil {
		return nil, err
	}
	defer call.release()
	return &Response{
		StatusCode: call.status,
		Header:     call.header,
		Body:       bytes.Clone(call.body.Bytes()),
		Attempts:   call.attempts,
		RequestID:  call.requestID(),
		operation:  op.name,
	}, nil
}

// exchange is the one place where a request is made. The call that it returns
// succeeded, and must be released.
func (c *Client) exchange(ctx context.Context, op *operation, r request) (*call, error) {
	if err := c.check(ctx, op.name); err != nil {
		return nil, err
	}
	cred, err := c.core.credentials.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", op.name, err)
	}
	call := &call{
		Context:    ctx,
		core:       c.core,
		op:         op,
		credential: cred,
		body:       bodies.Get().(*bytes.Buffer),
		maxRetries: c.core.retry.MaxRetries,
	}
	if r.once {
		call.maxRetries = 0
	}
	if err = call.prepare(r); err == nil {
		err = call.send(r.body)
	}
	if call.attempts > 0 {
		err = call.outcome()
	}
	if err != nil {
		call.release()
		return nil, err
	}
	return call, nil
}

// check refuses a client and a context that nothing can be sent with.
func (c *Client) check(ctx context.Context, operation string) error {
	if c == nil || c.core == nil {
		return invalid(operation, "client", "was not made by New")
	}
	if ctx == nil {
		return invalid(operation, "context", "is nil; give context.Background()")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("heads: %s: nothing was sent: %w", operation, err)
	}
	return nil
}

// lock keeps other calls of this client from the same read, change and write.
func (c *Client) lock(ctx context.Context, operation, key string) (unlock func(), err error) {
	if err := c.check(ctx, operation); err != nil {
		return nil, err
	}
	unlock, err = c.core.locks.lock(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", operation, err)
	}
	return unlock, nil
}

// prepare builds the request without parsing its URL again, and with header
// values that all requests share.
func (c *call) prepare(r request) error {
	base := c.core.base
	c.url = *base
	c.url.Path = base.Path + c.op.before + r.param + c.op.after
	c.path = c.url.Path[len(base.Path):]
	if escaped := url.PathEscape(r.param); escaped != r.param || base.RawPath != "" {
		c.path = c.op.before + escaped + c.op.after
		c.url.RawPath = base.EscapedPath() + c.path
	}
	if r.query != nil {
		values, err := query.Values(r.query)
		if err != nil {
			return fmt.Errorf("heads: %s: query: %w", c.op.name, err)
		}
		c.url.RawQuery = values.Encode()
	}
	header := http.Header{"Accept": jsonHeader, "User-Agent": c.core.userAgent}
	if r.body != nil {
		header["Content-Type"] = jsonHeader
	}
	c.request = *(&http.Request{
		Method:     c.op.method,
		URL:        &c.url,
		Host:       base.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     header,
	}).WithContext(c)
	c.authorize(&c.request)
	c.retry.Request = &c.request
	return nil
}

// Response is what the service answered where the contract does not give the
// answer's shape: any status from 200 to 299, with a body that may be empty
// and need not be JSON.
type Response struct {
	StatusCode int
	Header     http.Header
	Body       []byte
	Attempts   int
	RequestID  string

	operation string
}

// Decode reads a JSON body into v. A body that is empty or of another shape
// gives a DecodeError.
func (r *Response) Decode(v any) error {
	if err := json.Unmarshal(r.Body, v); err != nil {
		return &DecodeError{Operation: r.operation, Body: bytes.Clone(r.Body[:min(len(r.Body), maxDecodeBody)]), Err: err, foreign: true}
	}
	return nil
}

// Format shows status, attempts, request id and the length of the body.
func (r Response) Format(f fmt.State, _ rune) { writeText(f, r.describe()) }

// LogValue shows status, attempts, request id and the length of the body.
func (r Response) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("status", r.StatusCode),
		slog.Int("attempts", r.Attempts),
		slog.String("request_id", r.RequestID),
		slog.Int("bytes", len(r.Body)),
	)
}

func (r Response) describe() string {
	return fmt.Sprintf("heads.Response{%d, attempts: %d, request: %q, body: %d bytes}", r.StatusCode, r.Attempts, r.RequestID, len(r.Body))
}
