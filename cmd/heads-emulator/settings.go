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
}

// parse reads the flags. Its errors never show the value of -token, or an argument
// without a flag, which may be a token too.
func parse(args []string, stdout io.Writer) (*settings, error) {
	s := &settings{retries: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, hosts: map[string]string{}}
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
	return s, errors.Join(s.checkToken(), s.checkLimits())
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
