package heads

import (
	"cmp"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/transport"
	"golang.org/x/time/rate"
)

// Version is the version of this library, sent in the User-Agent.
const Version = "1.0.0-rc.2"

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
	return newClient(base, token, cfg), nil
}

func newClient(base *url.URL, token string, cfg *config) *Client {
	var given http.Client
	if cfg.httpClient != nil {
		given = *cfg.httpClient
	}
	c := transport.Config{
		Base:           base,
		RoundTripper:   cmp.Or(given.Transport, http.DefaultTransport),
		Jar:            given.Jar,
		UserAgent:      userAgent,
		Token:          token,
		TokenSource:    cfg.tokenSource.checked(),
		Retry:          transport.RetryPolicy(cfg.retry),
		AttemptTimeout: attemptTimeout(cfg.attemptTimeout, given.Timeout),
		Log:            cfg.log,
		Failure:        attemptError,
	}
	if cfg.application != "" {
		c.UserAgent = cfg.application + " " + userAgent
	}
	if cfg.rateLimit > 0 {
		c.Limiter = rate.NewLimiter(cfg.rateLimit, cfg.burst)
	}
	for _, o := range cfg.observers {
		c.Observers = append(c.Observers, attemptObserver(o, cfg.panicLog))
	}
	s := service{&core{
		transport:         transport.New(c),
		chatBase:          cfg.chatURL,
		streamBase:        cfg.streamURL,
		streamingProvider: cfg.streamingProvider,
	}}
	return &Client{
		Heads:                &HeadsService{s},
		HeadVisuals:          &HeadVisualsService{s},
		Webhooks:             &WebhooksService{s},
		ConversationSettings: &ConversationSettingsService{s},
		core:                 s.core,
	}
}

// shared returns what the services share, or nil for a client that was not made by New.
func (c *Client) shared() *core {
	if c == nil {
		return nil
	}
	return c.core
}

// BaseURL returns the base URL of the service as New has taken it, without a
// slash at its end. It holds no user name, query or fragment.
func (c *Client) BaseURL() string {
	if c.shared() == nil {
		return ""
	}
	return c.core.transport.Base.String()
}

// AccessURL returns the access URL at which a head is reached now: the legacy
// form or the streaming form, depending on the head's mode. It is the head's
// PublicURL, moved to the base of WithAccessBases for that mode if there is one.
//
// AccessURL returns an InvalidError for a head whose PublicURL lacks a part.
func (c *Client) AccessURL(h *Head) (AccessURL, error) {
	switch {
	case c.shared() == nil:
		return AccessURL{}, invalid("AccessURL", "client", "was not made by New", "make one with New or NewFromEnv", useNew)
	case h == nil:
		return AccessURL{}, invalid("AccessURL", "head", "is nil", "give one that Heads.Get returned", useHeadsGet)
	}
	return c.core.accessURL(h)
}

// cleanAccessBase checks one URL of WithAccessBases, if it was given, and removes the
// slash at its end.
func cleanAccessBase(field string, base *string, insecure bool) error {
	if *base == "" {
		return nil
	}
	u, err := checkBaseURL("New", field, *base, insecure)
	if err == nil {
		*base = u.String()
	}
	return err
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
// HEADS_TOKEN. If HEADS_CHAT_URL or HEADS_STREAM_URL is set, they are passed to
// WithAccessBases. opts are applied after that.
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
