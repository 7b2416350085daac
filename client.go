package heads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/keycache"
	"github.com/headsapi/heads-go/internal/keyed"
	"github.com/headsapi/heads-go/internal/rawjson"
	"golang.org/x/time/rate"
)

// Version is the version of this library, as it stands in the User-Agent.
const Version = "1.0.0-rc.1"

const userAgent = "heads-go/" + Version

// Client calls the operations of the service. It is safe for concurrent use and
// never changes after New. It need not be closed.
type Client struct {
	Heads                *HeadsService
	HeadVisuals          *HeadVisualsService
	Webhooks             *WebhooksService
	ConversationSettings *ConversationSettingsService

	core *core
}

// core holds what New has made of base URL, token and options.
type core struct {
	base        *url.URL
	credentials *credentials
	transport   http.RoundTripper
	jar         http.CookieJar
	retry       RetryPolicy
	pace        pace
	observers   observers[Attempt]
	logger      *slog.Logger
	userAgent   []string

	attemptTimeout time.Duration

	chatBase, streamBase string
	streamingProvider    map[string]bool
	insecureHTTP         bool

	locks            keyed.Locks[lockKey] // of what is read, changed and written back whole
	webhooksModified atomic.Int64         // writes of Webhooks.Modify

	keys *keycache.Cache // the shared keys of heads, for Webhooks.KeySource

	oldAddresses sync.Map // of heads that were switched and still show it: headMode to AccessURL
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
		faults.add(faultOf("New", "token", check.Token(token)))
	case token != "":
		faults.add(invalid("New", "token", "is given beside a token source", "give one of the two"))
	}
	faults.add(cleanAccessBase("chat URL", &cfg.chatURL, cfg.insecureHTTP))
	faults.add(cleanAccessBase("stream URL", &cfg.streamURL, cfg.insecureHTTP))
	if err := faults.join(); err != nil {
		return nil, err
	}
	return newClient(base, newCredentials(token, cfg.tokenSource), cfg), nil
}

func newClient(base *url.URL, creds *credentials, cfg *config) *Client {
	var given http.Client
	if cfg.httpClient != nil {
		given = *cfg.httpClient
	}
	if given.Transport == nil {
		given.Transport = http.DefaultTransport
	}
	c := &Client{core: &core{
		base:              base,
		credentials:       creds,
		transport:         given.Transport,
		jar:               given.Jar,
		attemptTimeout:    attemptTimeout(cfg.attemptTimeout, given.Timeout),
		retry:             cfg.retry,
		observers:         cfg.observers,
		logger:            cfg.logger,
		userAgent:         []string{cfg.userAgent},
		chatBase:          cfg.chatURL,
		streamBase:        cfg.streamURL,
		streamingProvider: cfg.streamingProvider,
		insecureHTTP:      cfg.insecureHTTP,
	}}
	if cfg.rateLimit > 0 {
		c.core.pace.limiter = rate.NewLimiter(cfg.rateLimit, cfg.burst)
	}
	c.Heads = &HeadsService{service{c}}
	c.HeadVisuals = &HeadVisualsService{service{c}}
	c.Webhooks = &WebhooksService{service{c}}
	c.ConversationSettings = &ConversationSettingsService{service{c}}
	c.core.keys = newKeyCache(c.Webhooks.sharedKeys)
	return c
}

// BaseURL returns the base URL of the service as New has taken it, without a
// slash at its end. It holds no user name, query or fragment.
func (c *Client) BaseURL() string {
	if c == nil || c.core == nil {
		return ""
	}
	return c.core.base.String()
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
// WithAccessBases; opts are applied after it.
func NewFromEnv(opts ...Option) (*Client, error) {
	baseURL, token := os.Getenv("HEADS_BASE_URL"), os.Getenv("HEADS_TOKEN")
	var faults faultList
	if baseURL == "" {
		faults.add(invalid("NewFromEnv", "HEADS_BASE_URL", "is not set", "set it to the address of the service"))
	}
	cfg, err := newConfig(opts)
	faults.add(err)
	if token == "" && cfg.tokenSource == nil {
		faults.add(invalid("NewFromEnv", "HEADS_TOKEN", "is not set", "set it to the access token, without \"Bearer \""))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	if chat, stream := os.Getenv("HEADS_CHAT_URL"), os.Getenv("HEADS_STREAM_URL"); chat != "" || stream != "" {
		opts = append([]Option{WithAccessBases(chat, stream)}, opts...)
	}
	return New(baseURL, token, opts...)
}

// service is the part that all services share.
type service struct{ c *Client }

// operation is one endpoint of the service.
type operation struct {
	name, method, route string // "Heads.Get", "GET", "/head/{id}"
	before, after       string // the route around its parameter
	repeatable          bool   // it may be retried even if it may have been carried out
}

func newOperation(name, method, route string) *operation {
	op := &operation{name: name, method: method, route: route, repeatable: method != http.MethodPost}
	before, rest, found := strings.Cut(route, "{")
	op.before = before
	if found {
		_, op.after, _ = strings.Cut(rest, "}")
	}
	return op
}

// payload is what a method passes to do: the parameter of the route, unescaped
// and checked, query options for go-querystring, and a JSON body.
type payload struct {
	param string
	query any
	body  []byte
	once  bool   // without retries
	of    string // the id that the answer must prove to be of, where it is not param

	// Client.Do's alone, which has no parameter.
	path, escapedPath string
	values            url.Values
	header            http.Header
}

// jsonHeader is shared by all requests and never changed.
var jsonHeader = []string{"application/json"}

// proven is a document that can prove to be the one that was asked for.
type proven[T any] interface {
	*T
	// decode reads a document, which it keeps no part of.
	decode(document []byte) error
	// prove returns an error unless the document is that of id. The error
	// holds nothing of the document.
	prove(id string) error
}

// do makes one request whose answer has the shape T by the contract, and
// proves to be of what was asked for: a page of a proxy or the document of
// another head must never be taken for it, changed and written back.
func do[T any, P proven[T]](ctx context.Context, c *Client, op *operation, p payload) (*T, error) {
	call, err := c.exchange(ctx, op, p)
	if err != nil {
		return nil, err
	}
	defer call.release()
	v := new(T)
	if err := decodeAnswer(call.body.Bytes(), P(v)); err != nil {
		return nil, call.decodeError(err)
	}
	if err := P(v).prove(cmp.Or(p.of, p.param)); err != nil {
		return nil, call.decodeError(err)
	}
	return v, nil
}

// doPlain makes one request whose answer the contract does not describe.
func doPlain(ctx context.Context, c *Client, op *operation, p payload) (*Response, error) {
	call, err := c.exchange(ctx, op, p)
	if err != nil {
		return nil, err
	}
	defer call.release()
	return call.response(), nil
}

// doQuiet makes one request whose answer no one reads.
func doQuiet(ctx context.Context, c *Client, op *operation, p payload) error {
	call, err := c.exchange(ctx, op, p)
	if err == nil {
		call.release()
	}
	return err
}

// exchange is the one place where a request is made. The call that it returns
// succeeded, and must be released.
func (c *Client) exchange(ctx context.Context, op *operation, p payload) (*call, error) {
	if err := c.check(ctx, op.name); err != nil {
		return nil, err
	}
	cred, err := c.core.credentials.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", op.name, err)
	}
	call := &call{
		core:       c.core,
		op:         op,
		credential: cred,
		body:       bodies.Get().(*bytes.Buffer),
	}
	if !p.once {
		call.maxRetries = c.core.retry.MaxRetries
	}
	if err = call.prepare(ctx, p); err == nil {
		err = call.send(p.body)
	}
	if call.attempts > 0 || call.heldBack != nil {
		err = call.outcome(ctx)
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

// lockKey is what calls of one client take turns on.
type lockKey struct{ what, id string }

// headLock is the key for a part of a head. Ids are UUIDs, whose case is
// ignored.
func headLock(what, headID string) lockKey { return lockKey{what, strings.ToLower(headID)} }

// lock keeps other calls of this client from the same read, change and write.
func (c *Client) lock(ctx context.Context, operation string, key lockKey) (unlock func(), err error) {
	if err := c.check(ctx, operation); err != nil {
		return nil, err
	}
	unlock, err = c.core.locks.Lock(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("heads: %s: nothing was sent: %w", operation, err)
	}
	return unlock, nil
}

// Request is an operation of the service that has no method here, for
// Client.Do.
type Request struct {
	Method     string      // GET, PUT, PATCH, POST or DELETE
	Path       string      // below the base URL, escaped, beginning with one "/"
	Route      string      // label for observers and logs, such as "/voice/{id}"; "" means "other"
	Query      url.Values  // added to the path
	Body       any         // nil; []byte, json.RawMessage and Raw as they are; anything else through encoding/json. Not with GET
	Header     http.Header // added, and instead of the client's own Accept, Content-Type and User-Agent
	Repeatable bool        // a POST that may be retried as a PUT is
}

func (r Request) route() string { return cmp.Or(r.Route, "other") }

// Do calls an operation that has no method here. Token, retries, limits and
// redaction are the same as for every other method; any status from 200 to 299
// is success. So is 404 for a DELETE that follows an attempt without an answer,
// or with a 5xx.
//
// Do returns an InvalidError and sends nothing for another method, for a path
// that has a host, a query, a fragment, a backslash, a broken escape or a dot
// segment, for a body with GET or one that encoding/json can't write, and for
// the headers that the client sets itself: Authorization, Host, Content-Length,
// Transfer-Encoding and Cookie. An empty body is no body.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	var faults faultList
	faults.add(checkMethod(r.Method))
	path, err := checkPath(r.Path)
	faults.add(err)
	header, err := checkHeader(r.Header)
	faults.add(err)
	body, err := r.encodeBody()
	faults.add(err)
	if err := faults.join(); err != nil {
		return nil, err
	}
	op := &operation{name: opDo, method: r.Method, route: r.route(), repeatable: r.Repeatable || r.Method != http.MethodPost}
	return doPlain(ctx, c, op, payload{path: path, escapedPath: r.Path, values: r.Query, header: header, body: body})
}

const opDo = "Client.Do"

func checkMethod(method string) error {
	switch method {
	case http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete:
		return nil
	}
	return invalid(opDo, "method", fmt.Sprintf("%s is not supported", quote(method)), "use GET, PUT, PATCH, POST or DELETE")
}

// checkPath returns the path unescaped. Its errors don't show the path, which
// may hold a secret.
func checkPath(escaped string) (string, error) {
	refuse := func(problem, remedy string, use ...string) (string, error) {
		return "", invalid(opDo, "path", problem, remedy, use...)
	}
	switch {
	case !strings.HasPrefix(escaped, "/"):
		return refuse(`does not begin with "/"`, `give the path below the base URL, such as "/voice"`)
	case strings.HasPrefix(escaped, "//"):
		return refuse(`begins with "//", which names a host`, `give the path below the base URL`)
	case strings.ContainsAny(escaped, "?#"):
		return refuse("has a query or a fragment", "use Request.Query, or escape the character", useQuery)
	case strings.Contains(escaped, `\`):
		return refuse("has a backslash", "leave it out")
	case strings.IndexFunc(escaped, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0:
		return refuse("has a space or another character that must be escaped", "use url.PathEscape on each segment", usePathEscape)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return refuse("has a broken escape", "use url.PathEscape on each segment", usePathEscape)
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return refuse("has a dot segment, which would lead to another operation", "leave it out")
		}
	}
	if strings.Contains(path, `\`) {
		return refuse("has an escaped backslash, which a server may take for a slash", "leave it out")
	}
	return path, nil
}

// checkHeader returns the header under canonical names. Its errors don't show
// values.
func checkHeader(given http.Header) (http.Header, error) {
	header := make(http.Header, len(given))
	var faults faultList
	for _, name := range slices.Sorted(maps.Keys(given)) {
		canonical := http.CanonicalHeaderKey(name)
		if ownHeader(canonical) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("%s is set by the client itself", canonical), "leave it out"))
			continue
		}
		if !check.IsHeaderName(name) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("%s is not a header name", quote(name)), "want letters, digits and dashes"))
		}
		if slices.ContainsFunc(given[name], unsafeInHeader) {
			faults.add(invalid(opDo, "header", fmt.Sprintf("the value of %s has a line break or another control character", quote(canonical)), "take it out"))
		}
		header[canonical] = slices.Concat(header[canonical], given[name])
	}
	return header, faults.join()
}

func unsafeInHeader(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0
}

// encodeBody returns the JSON to send, or nil.
func (r Request) encodeBody() ([]byte, error) {
	var body []byte
	switch given := r.Body.(type) {
	case nil:
	case []byte:
		body = bytes.Clone(given)
	case json.RawMessage:
		body = bytes.Clone(given)
	case Raw:
		body = given.Bytes()
	default:
		encoded, err := rawjson.Encode(r.Body)
		if err != nil {
			return nil, invalid(opDo, "body", "can't be written as JSON", "give a value that JSON can hold")
		}
		if found := findMasked(encoded); found != "" {
			return nil, invalid(opDo, "body", fmt.Sprintf("holds %q, which a Secret or a Raw shows of itself", found), "give what it holds, with Secret.Reveal or Raw.Bytes", useReveal)
		}
		body = encoded
	}
	switch {
	case len(body) == 0:
		return nil, nil
	case r.Method == http.MethodGet:
		return nil, invalid(opDo, "body", "can't be sent with GET", "use Request.Query", useQuery)
	}
	return body, nil
}
