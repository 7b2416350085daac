package heads

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/transport"
	"golang.org/x/time/rate"
)

// Option configures a Client. New reports the faults of all options together.
type Option func(*config) error

// config is what the options set; nothing else configures a client.
type config struct {
	httpClient        *http.Client
	tokenSource       TokenSource
	retry             RetryPolicy
	rateLimit         rate.Limit // 0 when not given
	burst             int
	attemptTimeout    time.Duration                            // 0 when not given
	log               func(context.Context, transport.Attempt) // nil for none, as panicLog
	panicLog          panicLog
	observers         observers[Attempt]
	application       string // "kiosk/2"; "" when not given
	chatURL           string
	streamURL         string
	streamingProvider map[string]bool
	insecureHTTP      bool
}

const defaultAttemptTimeout = 30 * time.Second

func newConfig(opts []Option) (*config, error) {
	cfg := &config{
		retry:             DefaultRetryPolicy(),
		streamingProvider: map[string]bool{"azure": true, "elevenlabs": true},
	}
	var faults faultList
	for _, opt := range opts {
		if opt == nil {
			faults.add(invalid("New", "option", "is nil", "leave it out"))
			continue
		}
		faults.add(opt(cfg))
	}
	return cfg, faults.join()
}

// RetryPolicy sets how often a request is retried and how long the waits are.
// The wait before retry n is random between 0 and MinWait·2ⁿ⁻¹, at most
// MaxWait, unless the service asks for another one with Retry-After. A
// Retry-After of 0, or in the past, does not shorten the wait.
//
// RetryPolicy{MaxRetries: 5} retries at once and returns at any Retry-After. To
// change only the number of retries, set MaxRetries of DefaultRetryPolicy().
type RetryPolicy struct {
	MaxRetries       int // 0 means one attempt
	MinWait, MaxWait time.Duration
}

// DefaultRetryPolicy returns the policy of a client that is given none:
// 3 retries, 200 ms, 10 s.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{MaxRetries: 3, MinWait: 200 * time.Millisecond, MaxWait: 10 * time.Second}
}

// TokenSource returns bearer tokens. It is asked once before the first request,
// with rejected "", and again after a 401, with the token that was refused.
// The token that it returns is used until the service refuses it. It is never
// asked twice at the same time.
type TokenSource func(ctx context.Context, rejected string) (string, error)

// checked returns a source that refuses a token that can't be sent, and whose errors show no
// token. It returns nil for nil.
func (ts TokenSource) checked() transport.TokenSource {
	if ts == nil {
		return nil
	}
	return func(ctx context.Context, rejected string) (string, error) {
		token, err := ts(ctx, rejected)
		if err != nil {
			return "", redact(fmt.Errorf("token source: %w", err), rejected, token)
		}
		if fault := check.Token(token); fault.Problem != "" {
			return "", fmt.Errorf("token source: the token %s; %s", fault.Problem, fault.Remedy)
		}
		return token, nil
	}
}

// WithHTTPClient makes the client send through a copy of hc: its transport and
// its cookie jar are used, hc itself is never changed. Its Timeout, if set,
// limits each attempt instead of the default of WithAttemptTimeout; if
// both are given, the shorter one applies. Its CheckRedirect is not used, since
// redirects are never followed.
func WithHTTPClient(hc *http.Client) Option {
	return func(c *config) error {
		if hc == nil {
			return invalid("New", "WithHTTPClient", "has a nil client", "leave the option out for the default")
		}
		c.httpClient = hc
		return nil
	}
}

// WithTokenSource takes bearer tokens from ts instead of a fixed one; New is
// then called with token "".
func WithTokenSource(ts TokenSource) Option {
	return func(c *config) error {
		if ts == nil {
			return invalid("New", "WithTokenSource", "has a nil source", "give a function or a fixed token")
		}
		c.tokenSource = ts
		return nil
	}
}

// WithRetryPolicy replaces DefaultRetryPolicy.
func WithRetryPolicy(p RetryPolicy) Option {
	return func(c *config) error {
		if p.MaxRetries < 0 || p.MinWait < 0 || p.MaxWait < p.MinWait {
			return invalid("New", "WithRetryPolicy", fmt.Sprintf("has MaxRetries %d, MinWait %v and MaxWait %v", p.MaxRetries, p.MinWait, p.MaxWait), "want MaxRetries of 0 or more and 0 <= MinWait <= MaxWait")
		}
		c.retry = p
		return nil
	}
}

// WithAttemptTimeout limits each attempt, from dialling to the last byte of
// the answer. The default is 30 s. The whole call is limited by its context.
func WithAttemptTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return invalid("New", "WithAttemptTimeout", fmt.Sprintf("is %v, which is no limit", d), "give more than 0")
		}
		c.attemptTimeout = d
		return nil
	}
}

// WithRateLimit keeps the client from making more than perSecond attempts a
// second on average, retries included; burst of them may come at once. All
// goroutines that use the client share the limit. An attempt waits for its
// slot. If the context's deadline comes before that, the call fails at once with
// context.DeadlineExceeded. The default is no limit.
func WithRateLimit(perSecond float64, burst int) Option {
	return func(c *config) error {
		if !(perSecond > 0) || math.IsInf(perSecond, 1) || burst < 1 {
			return invalid("New", "WithRateLimit", fmt.Sprintf("has %v a second and a burst of %d", perSecond, burst), "want more than 0 a second and a burst of 1 or more")
		}
		c.rateLimit, c.burst = rate.Limit(perSecond), burst
		return nil
	}
}

// WithLogger logs one record an attempt: at level debug, or at level warn when
// the attempt failed. The default is silent.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return invalid("New", "WithLogger", "has a nil logger", "leave the option out to log nothing")
		}
		c.log, c.panicLog = attemptLog(l), slogPanics{l}
		return nil
	}
}

// WithObserver calls o for every attempt, for metrics and tracing. The attempt runs
// with the context that Start returns, in the goroutine of the call.
func WithObserver(o Observer[Attempt]) Option {
	return func(c *config) error {
		c.observers = append(c.observers, o)
		return o.check("New", "WithObserver")
	}
}

// WithApplication puts the name and version of the program before the
// library's own User-Agent. The version may be empty.
func WithApplication(name, version string) Option {
	return func(c *config) error {
		if !check.IsHeaderName(name) || version != "" && !check.IsHeaderName(version) {
			return invalid("New", "WithApplication", fmt.Sprintf("has name %q and version %q", name, version), "give a name, both of letters, digits and -._+!~ without spaces")
		}
		c.application = name
		if version != "" {
			c.application += "/" + version
		}
		return nil
	}
}

// WithAccessBases sets the base URLs of access URLs: chatURL for heads in legacy
// mode, streamURL for heads in streaming mode. One of them may be "".
func WithAccessBases(chatURL, streamURL string) Option {
	return func(c *config) error {
		if chatURL == "" && streamURL == "" {
			return invalid("New", "WithAccessBases", "has two empty base URLs", "leave the option out")
		}
		c.chatURL, c.streamURL = chatURL, streamURL
		return nil
	}
}

// WithStreamingProviders replaces the text-to-speech providers that can
// stream, which are azure and elevenlabs. Case is ignored.
func WithStreamingProviders(ids ...string) Option {
	return func(c *config) error {
		providers := make(map[string]bool, len(ids))
		for _, id := range ids {
			if strings.TrimSpace(id) == "" {
				return invalid("New", "WithStreamingProviders", "has a blank id", "give the ids that heads have in ttsProvider")
			}
			providers[strings.ToLower(id)] = true
		}
		if len(providers) == 0 {
			return invalid("New", "WithStreamingProviders", "has no id", "leave the option out for azure and elevenlabs")
		}
		c.streamingProvider = providers
		return nil
	}
}

// WithInsecureHTTP allows a base URL with plain http:// to a host that is not
// loopback. Whoever sees the traffic then sees the token.
func WithInsecureHTTP() Option {
	return func(c *config) error {
		c.insecureHTTP = true
		return nil
	}
}
