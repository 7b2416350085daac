package headstest

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Option configures an emulator.
type Option func(*config)

// config holds what the options set. NewEmulator is the last to change it.
type config struct {
	token           string
	seed            *uint64
	responses       Responses
	loopbackHTTP    bool
	strictOrder     bool
	staleAddresses  bool
	chatURL         string
	streamURL       string
	providers       []string
	mutedVoices     []string
	journalSize     int
	backlog         int
	deliveryClient  *http.Client
	deliveryHandler http.Handler
	callbackHosts   *callbackHosts // nil: all hosts
	deliveryTimeout time.Duration
	retrySchedule   []time.Duration
	encoding        SignatureEncoding
	timestampLayout string
	toolTimeout     time.Duration
	rateLimit       *rate.Limiter // nil: none
	latency         time.Duration
	logger          *slog.Logger
	console         bool
}

func newConfig(opts []Option) config {
	c := config{
		chatURL:         "https://chat.example.test",
		streamURL:       "https://stream.example.test",
		providers:       []string{"azure", "elevenlabs"},
		journalSize:     4096,
		backlog:         1 << 17,
		deliveryTimeout: 5 * time.Second,
		retrySchedule:   []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		encoding:        SignatureHex,
		timestampLayout: eventTime,
		toolTimeout:     30 * time.Second,
		logger:          slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithToken sets the bearer token that requests must carry. Without it, or
// with "", the emulator generates one.
func WithToken(token string) Option {
	return func(c *config) { c.token = token }
}

// WithSeed makes the emulator generate the same ids, keys and tokens in every run
// and after every Reset.
func WithSeed(seed uint64) Option {
	return func(c *config) { c.seed = &seed }
}

// Responses is the form of the answers that the contract does not document: those
// to an update, a mode switch, a change of settings, of a webhook or of the
// delivery switch, and a delete.
type Responses int

// Forms of undocumented answers.
const (
	ResponsesEmpty  Responses = iota // 200 without a body
	ResponsesRecord                  // the changed or deleted record
	ResponsesBool                    // true
)

// WithResponses sets the form of undocumented answers. The answer to a new
// webhook is always an object with its shared key; with ResponsesRecord it is
// the whole record.
func WithResponses(r Responses) Option {
	return func(c *config) { c.responses = r }
}

// WithLoopbackHTTP allows plain http in the URLs of webhooks and tools if the host
// is a loopback address or localhost. The service refuses such URLs.
func WithLoopbackHTTP() Option {
	return func(c *config) { c.loopbackHTTP = true }
}

// WithStrictOrder makes the emulator never deliver to a webhook that was made while
// the head's delivery was off, also after delivery is enabled. The service is said to
// behave so; the contract is silent, and by default the emulator delivers. A
// webhook of a seed is made when it is added, after its head.
func WithStrictOrder() Option {
	return func(c *config) { c.strictOrder = true }
}

// WithAccessURLs sets the bases of the legacy and the streaming access URLs. The
// defaults are https://chat.example.test and https://stream.example.test.
func WithAccessURLs(chatURL, streamURL string) Option {
	return func(c *config) {
		c.chatURL = strings.TrimRight(chatURL, "/")
		c.streamURL = strings.TrimRight(streamURL, "/")
	}
}

// WithStaleAddresses makes a mode switch leave publicUrl unchanged, so callers must
// find the new access URL without it.
func WithStaleAddresses() Option {
	return func(c *config) { c.staleAddresses = true }
}

// WithStreamingProviders sets the providers whose voices can stream. The names are
// case-insensitive. The default is azure and elevenlabs.
func WithStreamingProviders(ids ...string) Option {
	return func(c *config) { c.providers = slices.Clone(ids) }
}

// WithNonStreamingVoices sets the voices that can't stream although their provider
// can. The ids are the exact values of ttsVoice.
func WithNonStreamingVoices(ids ...string) Option {
	return func(c *config) { c.mutedVoices = slices.Clone(ids) }
}

// WithJournalSize sets how many requests and how many deliveries are kept. The
// default is 4096 of each. The oldest are dropped first, also if the bodies of a
// journal exceed 32 MiB.
func WithJournalSize(n int) Option {
	return func(c *config) { c.journalSize = max(n, 1) }
}

// WithBacklog sets how many events may wait for the receiver of one webhook.
// The default is 131072. Further events fail with ErrBacklog.
func WithBacklog(n int) Option {
	return func(c *config) { c.backlog = max(n, 1) }
}

// WithDeliveryClient sets the client that posts events and calls tools, for example
// to trust a test's TLS server. The client is copied. Its CheckRedirect is ignored:
// redirects are never followed.
func WithDeliveryClient(hc *http.Client) Option {
	return func(c *config) { c.deliveryClient, c.deliveryHandler = hc, nil }
}

// WithDeliveryHandler passes events and tool calls to h in memory, without a
// socket, whatever the host of their URL. A test inside a testing/synctest bubble
// needs it, since the bubble's clock does not move while a goroutine waits for a
// socket. Close waits for calls of h under way. Of WithDeliveryHandler and
// WithDeliveryClient, the later option applies.
func WithDeliveryHandler(h http.Handler) Option {
	return func(c *config) { c.deliveryClient, c.deliveryHandler = nil, h }
}

// WithCallbackHosts sets the hosts that events and tool calls are sent to, besides
// loopback: 127.0.0.0/8, ::1 and localhost. A host, with or without a port, whose value
// is empty is sent to. If the value is a URL such as http://127.0.0.1:8080, what is for
// the host is sent there, with its path and its Host header. The host "*" stands for all
// others. Webhooks and tools of other hosts can be registered, but nothing is sent to
// them: an attempt fails, without a DNS query. A nil map allows loopback alone. Without
// the option, all hosts are allowed. WithCallbackHosts panics if a host or a URL is
// malformed.
func WithCallbackHosts(hosts map[string]string) Option {
	checked, err := newCallbackHosts(hosts)
	if err != nil {
		panic("headstest: " + err.Error())
	}
	return func(c *config) { c.callbackHosts = &callbackHosts{to: checked.to} }
}

// WithDeliveryTimeout sets how long a receiver has to answer an event, body
// included. The default is the contract's 5 s.
func WithDeliveryTimeout(d time.Duration) Option {
	return func(c *config) { c.deliveryTimeout = d }
}

// WithRetrySchedule sets the waits before the redeliveries of an event, and with
// them their number. The default is 1 s, 2 s, 4 s. Without arguments, nothing is
// redelivered.
func WithRetrySchedule(waits ...time.Duration) Option {
	return func(c *config) { c.retrySchedule = slices.Clone(waits) }
}

// WithSignatureEncoding sets how the signature of an event is written. The
// default is SignatureHex.
func WithSignatureEncoding(s SignatureEncoding) Option {
	return func(c *config) { c.encoding = s }
}

// WithTimestampLayout sets the layout, as in package time, of the timestamps of
// events and tool calls, which are in UTC. The default is "2006-01-02 15:04:05",
// the form of the one real sample; "2006-01-02T15:04:05.000Z" is ISO 8601 with
// milliseconds.
func WithTimestampLayout(layout string) Option {
	return func(c *config) { c.timestampLayout = layout }
}

// WithToolTimeout sets how long a tool has to answer. The default is 30 s; the
// contract documents no limit.
func WithToolTimeout(d time.Duration) Option {
	return func(c *config) { c.toolTimeout = d }
}

// WithRateLimit allows perSecond requests a second, and burst at once. A request
// above the limit is answered with 429 and Retry-After, and has no effect. The
// default is no limit. WithRateLimit panics unless perSecond is above 0 and burst
// is at least 1.
func WithRateLimit(perSecond float64, burst int) Option {
	if !(perSecond > 0) || burst < 1 {
		panic("headstest: a rate limit must be above 0 requests a second, with a burst of 1 or more")
	}
	return func(c *config) { c.rateLimit = rate.NewLimiter(rate.Limit(perSecond), burst) }
}

// WithLatency sets how long every request waits before it has its effect and is
// answered. The default is 0.
func WithLatency(d time.Duration) Option {
	return func(c *config) { c.latency = d }
}

// WithConsole serves the console at /_emulator/. The console is a web page that
// shows what happens in the emulator. The control API is served below the same
// path. Both require no token; they refuse requests of other machines and of pages
// of other sites. The console shows a running test:
//
//	srv := headstest.NewServer(headstest.WithConsole())
//	fmt.Println(srv.URL + "/_emulator/")
func WithConsole() Option {
	return func(c *config) { c.console = true }
}

// WithLogger logs one line for every request, every delivery attempt and every tool
// call, without headers, queries and bodies. The line of a failed tool call is a
// warning that says what was wrong with the reply, and a webhook that is made
// before delivery is enabled has a warning, too. The default, and nil, is silent.
// The handler must not call the emulator.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return func(c *config) { c.logger = l }
}
