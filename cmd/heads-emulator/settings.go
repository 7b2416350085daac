package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// settings are what the flags set.
type settings struct {
	addr      string
	token     string
	seedFile  string
	ids       *uint64
	responses headstest.Responses
	retries   []time.Duration
	json      bool
	expose    bool
	iso       bool // timestamps
	rateLimit float64
	burst     int
	latency   time.Duration
	journal   int
	strict    bool // order of enabling and registering
	origins   []string
	hosts     map[string]string // of callbacks, beside loopback

	chatURL, streamURL string
	stale              bool // access URLs
	providers          []string
	mutedVoices        []string
	backlog            int
	deliveryTimeout    time.Duration
	toolTimeout        time.Duration
	encoding           headstest.SignatureEncoding
}

// parse reads the flags. Its errors never show the value of -token, or an argument
// without a flag, which may be a token too.
func parse(args []string, stdout io.Writer) (*settings, error) {
	s := &settings{
		retries:   []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		providers: []string{"azure", "elevenlabs"},
		encoding:  headstest.SignatureHex,
		hosts:     map[string]string{},
	}
	flags := flag.NewFlagSet("heads-emulator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.addr, "addr", "127.0.0.1:8787", "`address` to listen on; port 0 chooses a free one")
	flags.StringVar(&s.token, "token", "", "bearer `token` that requests must carry (default: generated)")
	flags.StringVar(&s.seedFile, "seed-file", "", "JSON `file` with heads, visuals, registrations and tools to start with (default: one head to try)")
	flags.Func("seed", "`number` that generates the same ids, keys and tokens in every run", s.setIDs)
	flags.Func("responses", "`style` of the answers that the contract leaves open: empty, record or bool (default empty)", s.setResponses)
	flags.Func("retry", "`waits` before an event is delivered again, such as 1s,2s,4s; none for no redelivery (default 1s,2s,4s)", s.setRetries)
	flags.Func("timestamps", "`form` of the timestamps of events and tool calls: plain, as in 2026-08-31 06:56:30, or iso (default plain)", s.setTimestamps)
	flags.Float64Var(&s.rateLimit, "rate-limit", 0, "how many requests a `second` are allowed; others are answered with 429 (default: no limit)")
	flags.IntVar(&s.burst, "burst", 1, "how many `requests` the rate limit allows at once")
	flags.DurationVar(&s.latency, "latency", 0, "how `long` every request waits, such as 50ms (default 0)")
	flags.IntVar(&s.journal, "journal", 16384, "how many `entries` of each kind are kept: requests, deliveries, steps of sessions")
	flags.Func("allow-origin", "`origin` of a web page that may call the operations, such as http://localhost:3000, or null for pages opened from a file; may be repeated", s.addOrigin)
	flags.Func("allow-host", "`host` that events and tool calls are sent to, besides this machine, such as www.example.com; or HOST=http://127.0.0.1:8080\n"+
		"to send there what is for the host; * for all hosts; may be repeated", s.addHost)
	flags.BoolVar(&s.strict, "strict-order", false, "never deliver to a webhook that was registered before delivery was enabled")
	flags.StringVar(&s.chatURL, "chat-url", "https://chat.example.test", "`base` of the access URLs of heads in legacy mode")
	flags.StringVar(&s.streamURL, "stream-url", "https://stream.example.test", "`base` of the access URLs of heads that stream")
	flags.BoolVar(&s.stale, "stale-addresses", false, "leave publicUrl unchanged when a head is switched to another mode")
	flags.Func("streaming-providers", "`names` of the providers whose voices can stream; none if no voice can (default azure,elevenlabs)", listInto(&s.providers))
	flags.Func("non-streaming-voices", "`ids` of voices that can't stream although their provider can, with commas between them", listInto(&s.mutedVoices))
	flags.IntVar(&s.backlog, "backlog", 1<<17, "how many `events` may wait for the receiver of one webhook")
	flags.DurationVar(&s.deliveryTimeout, "delivery-timeout", 5*time.Second, "how `long` a receiver has to answer an event")
	flags.DurationVar(&s.toolTimeout, "tool-timeout", 30*time.Second, "how `long` a tool has to answer a call")
	flags.Func("signature", "`encoding` of the signature of an event: hex or base64 (default hex)", s.setEncoding)
	flags.BoolVar(&s.json, "json", false, "print addresses, token and ids as one JSON object")
	flags.BoolVar(&s.expose, "expose-to-network", false, "allow an address that other machines can reach; whoever has the token can then\n"+
		"make this machine send requests, to its own loopback addresses too")
	version := flags.Bool("version", false, "print the version")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stdout)
		fmt.Fprintln(stdout, "Usage of heads-emulator:")
		flags.PrintDefaults()
		return nil, err
	case err != nil && strings.HasPrefix(err.Error(), "bad flag syntax"):
		return nil, errors.New("a flag begins with one or two dashes and a name; -h lists the flags") // the error of package flag shows the whole argument
	case err != nil:
		return nil, fmt.Errorf("%w; -h lists the flags", err)
	case flags.NArg() > 0:
		return nil, errors.New("there are arguments without a flag; -h lists the flags")
	case *version:
		fmt.Fprintf(stdout, "heads-emulator %s (%s, %s/%s)\n", heads.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil, flag.ErrHelp
	}
	return s, errors.Join(s.checkToken(), s.checkLimits(), s.checkBases())
}

func (s *settings) checkLimits() error {
	switch {
	case !(s.rateLimit >= 0): // NaN too
		return errors.New("-rate-limit must be above 0; leave it out for no limit")
	case s.burst < 1:
		return errors.New("-burst must be 1 or more")
	case s.burst > 1 && s.rateLimit == 0:
		return errors.New("-burst needs a rate limit; give -rate-limit too")
	case s.journal < 1:
		return errors.New("-journal must be 1 or more")
	case s.latency < 0:
		return errors.New("-latency must not be below 0")
	case s.backlog < 1:
		return errors.New("-backlog must be 1 or more")
	case s.deliveryTimeout <= 0:
		return errors.New("-delivery-timeout must be above 0")
	case s.toolTimeout <= 0:
		return errors.New("-tool-timeout must be above 0")
	}
	return nil
}

// checkBases refuses bases with which the access URLs would not be URLs.
func (s *settings) checkBases() error {
	for _, flag := range [][2]string{{"-chat-url", s.chatURL}, {"-stream-url", s.streamURL}} {
		if u, err := url.Parse(flag[1]); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(flag[1], "?#") {
			return fmt.Errorf("%s must be a URL without a user, a query and a fragment, such as https://chat.example.test", flag[0])
		}
	}
	return nil
}

func (s *settings) setTimestamps(text string) error {
	if text != "plain" && text != "iso" {
		return errors.New("must be plain or iso")
	}
	s.iso = text == "iso"
	return nil
}

// nullOrigin is the origin that a browser sends for a page opened from a file.
const nullOrigin = "null"

func (s *settings) addOrigin(text string) error {
	u, err := url.Parse(text)
	if text != nullOrigin && (err != nil || u.Host == "" || text != u.Scheme+"://"+u.Host) {
		return errors.New("must be a scheme and a host, as a browser sends them, such as http://localhost:3000, or null for pages opened from a file")
	}
	s.origins = append(s.origins, text)
	return nil
}

// addHost reads HOST or HOST=URL. WithCallbackHosts panics if they are malformed.
func (s *settings) addHost(text string) (err error) {
	host, target, moved := strings.Cut(text, "=")
	switch _, twice := s.hosts[host]; {
	case twice:
		return errors.New("the host is given twice; give it once")
	case moved && target == "":
		return errors.New("want a URL behind =, such as http://127.0.0.1:8080")
	}
	defer func() {
		if problem := recover(); problem != nil {
			err = errors.New(strings.TrimPrefix(fmt.Sprint(problem), "headstest: "))
		}
	}()
	s.hosts[host] = target
	headstest.WithCallbackHosts(s.hosts)
	return nil
}

func (s *settings) checkToken() error {
	for _, c := range []byte(s.token) {
		if c <= ' ' || c > '~' {
			return errors.New("-token must be visible ASCII characters without a space")
		}
	}
	if s.expose && s.token == "" && s.ids != nil {
		return errors.New("-seed generates a token that anyone can predict; give -token too, or leave out -expose-to-network")
	}
	return nil
}

func (s *settings) setIDs(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("not a whole number from 0 on")
	}
	s.ids = &n
	return nil
}

func (s *settings) setResponses(text string) error {
	styles := map[string]headstest.Responses{
		"empty": headstest.ResponsesEmpty, "record": headstest.ResponsesRecord, "bool": headstest.ResponsesBool,
	}
	style, ok := styles[text]
	if !ok {
		return errors.New("must be empty, record or bool")
	}
	s.responses = style
	return nil
}

func (s *settings) setEncoding(text string) error {
	encoding, ok := map[string]headstest.SignatureEncoding{"hex": headstest.SignatureHex, "base64": headstest.SignatureBase64}[text]
	if !ok {
		return errors.New("must be hex or base64")
	}
	s.encoding = encoding
	return nil
}

// listInto sets a list from a text with commas, or to none.
func listInto(list *[]string) func(string) error {
	return func(text string) error {
		*list = nil
		if text == "none" {
			return nil
		}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item == "" {
				return errors.New("must be names with commas between them, or none")
			}
			*list = append(*list, item)
		}
		return nil
	}
}

func (s *settings) setRetries(text string) error {
	s.retries = nil
	if text == "none" {
		return nil
	}
	for item := range strings.SplitSeq(text, ",") {
		wait, err := time.ParseDuration(strings.TrimSpace(item))
		if err != nil || wait < 0 {
			return errors.New("must be durations such as 500ms,1s, or none")
		}
		s.retries = append(s.retries, wait)
	}
	return nil
}

// options returns the options of the emulator.
func (s *settings) options() []headstest.Option {
	opts := []headstest.Option{
		headstest.WithConsole(),
		headstest.WithCallbackHosts(s.hosts),
		headstest.WithJournalSize(s.journal),
		headstest.WithLoopbackHTTP(),
		headstest.WithToken(s.token),
		headstest.WithResponses(s.responses),
		headstest.WithRetrySchedule(s.retries...),
		headstest.WithLatency(s.latency),
		headstest.WithAccessURLs(s.chatURL, s.streamURL),
		headstest.WithStreamingProviders(s.providers...),
		headstest.WithNonStreamingVoices(s.mutedVoices...),
		headstest.WithBacklog(s.backlog),
		headstest.WithDeliveryTimeout(s.deliveryTimeout),
		headstest.WithToolTimeout(s.toolTimeout),
		headstest.WithSignatureEncoding(s.encoding),
	}
	if s.stale {
		opts = append(opts, headstest.WithStaleAddresses())
	}
	if s.iso {
		opts = append(opts, headstest.WithTimestampLayout("2006-01-02T15:04:05.000Z"))
	}
	if s.strict {
		opts = append(opts, headstest.WithStrictOrder())
	}
	if s.rateLimit > 0 {
		opts = append(opts, headstest.WithRateLimit(s.rateLimit, s.burst))
	}
	if s.ids != nil {
		opts = append(opts, headstest.WithSeed(*s.ids))
	}
	return opts
}

// demo is the seed of a start without a seed file.
//
//go:embed demo.json
var demo []byte

// seed returns the seed of the file, or the one built into the program.
func (s *settings) seed() (headstest.Seed, error) {
	if s.seedFile == "" {
		return headstest.ParseSeed(demo)
	}
	text, err := os.ReadFile(s.seedFile)
	if err != nil {
		return headstest.Seed{}, fmt.Errorf("-seed-file: %w", err)
	}
	seed, err := headstest.ParseSeed(text)
	if err != nil {
		return headstest.Seed{}, fmt.Errorf("-seed-file %s: %w", s.seedFile, err)
	}
	return seed, nil
}
