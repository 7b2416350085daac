package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/forward"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/listen"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// listenFlags are those of listen.
type listenFlags struct {
	addr, forward, record, retry, keyFile string
	certFile, certKeyFile                 string
	ack, serviceKeys, expose, json        bool
}

func (a *app) listenCommand() *cobra.Command {
	var f listenFlags
	cmd := &cobra.Command{
		Use: "listen", Short: "Show, pass on and record what the service sends", Args: want(0, 0, "no arguments"),
		Long: `Listen receives events and tool calls, shows each on a line, passes it on to your
back end and records it. It ends with 0 on Ctrl-C.

It opens no tunnel. It stands behind your own tunnel or proxy, which has a public
https URL and passes on to --addr. Register that URL once:

  headsctl webhooks ensure ID --url https://YOUR-TUNNEL/events --event start_conversation

A POST with event_type and head_id is an event, one with session_metadata a tool
call, which the last part of the path names, unless it has any spelling of event_type
or a name twice. Anything else is answered 404, over 1 MiB 413, and a request of a
browser, with Origin or Sec-Fetch-Site, 403. An event is verified with the keys of --key-file, one on each line, or of
HEADS_SHARED_KEY, and with --service-keys also with those that the service has for
its head (HEADS_BASE_URL, HEADS_TOKEN). A wrong signature is answered 401 and goes no
further. Without a key every event is passed on, as unverified.

--forward passes on the same bytes to URL, with the path and the query behind it, and
Content-Type, User-Agent and X-Signature-256 as the only headers. What comes back is
the answer: 502 if there is no connection, 504 after 4.5s (a tool call: 30s). Listen
does not try again, since the service does. Without --forward the answer is 200.

--ack answers an event with 200 as soon as it is on disk, and passes it on after that,
the events of a head in order, until the back end answers with 200 to 299. It waits
as --retry says; the last wait is repeated. What is undelivered at the end can be sent
with replay --only undelivered.

A recording holds no secret but what is in the bodies: query values and long parts of
the path are [redacted].`,
		Example: "  headsctl listen --forward http://127.0.0.1:8080 --record tuesday.jsonl",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listen(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8790", "listen on `HOST:PORT`; port 0 is any free one")
	flags.StringVar(&f.forward, "forward", "", "pass on to the back end at `URL`")
	flags.StringVar(&f.record, "record", "", "append to the recording `FILE`")
	flags.BoolVar(&f.ack, "ack", false, "answer an event when it is recorded, and pass it on after that")
	flags.StringVar(&f.retry, "retry", "1s,2s,4s", "wait `DURATIONS` between the attempts of --ack")
	keyFlag(cmd, &f.keyFile)
	flags.BoolVar(&f.serviceKeys, "service-keys", false, "verify with the keys that the service has for the head of an event")
	flags.StringVar(&f.certFile, "tls-cert", "", "serve https with the certificate in `FILE`")
	flags.StringVar(&f.certKeyFile, "tls-key", "", "`FILE` with the private key of --tls-cert")
	flags.BoolVar(&f.expose, "expose-to-network", false, "allow an address that other machines can reach")
	flags.BoolVar(&f.json, "json", false, "write JSON lines")
	return cmd
}

func (a *app) listen(ctx context.Context, f listenFlags) error {
	settings, err := a.listenSettings(f)
	if err != nil {
		return err
	}
	// This comes before the recording is created, so that a failure leaves no file.
	socket, err := listenOn(f)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	if f.record != "" {
		settings.Record, err = openRecording(f.record)
		if err != nil {
			return err
		}
		defer func() { _ = settings.Record.Close() }()
	}
	a.printListening(socket.Addr(), f, settings.Target)
	// A terminal may block. No answer waits for it: what it does not take is left out.
	lines, printed := make(chan listen.Line, maxUnprinted), make(chan struct{})
	var unprinted atomic.Int64
	go func() {
		defer close(printed)
		for line := range lines {
			a.printLine(line, f.json)
		}
	}()
	settings.Report = func(line listen.Line) {
		select {
		case lines <- line:
		default:
			unprinted.Add(1)
		}
	}
	err = a.serveListener(ctx, socket, f, listen.New(settings))
	close(lines)
	<-printed
	if n := unprinted.Load(); n > 0 {
		a.note("%s not printed, since the output took no more; a recording has all", are(int(n), "line"))
	}
	return err
}

// maxUnprinted is how many lines wait for the terminal.
const maxUnprinted = 1000

// listenSettings checks everything that needs no file and no port.
func (a *app) listenSettings(f listenFlags) (settings listen.Settings, err error) {
	switch {
	case f.ack && (f.record == "" || f.forward == ""):
		return settings, usage("--ack wants --record and --forward, since no one sends again what it has answered")
	case (f.certFile == "") != (f.certKeyFile == ""):
		return settings, usage("--tls-cert and --tls-key go together; give both")
	}
	settings.Ack = f.ack
	if settings.Retry, err = parseWaits(f.retry); err != nil {
		return settings, err
	}
	if f.forward != "" {
		if settings.Target, err = newTarget("--forward", f.forward); err != nil {
			return settings, err
		}
	}
	settings.Keys, err = a.listenKeys(f)
	return settings, err
}

// parseWaits reads the durations of --retry.
func parseWaits(text string) ([]time.Duration, error) {
	var waits []time.Duration
	for word := range strings.SplitSeq(text, ",") {
		wait, err := time.ParseDuration(strings.TrimSpace(word))
		if err != nil || wait <= 0 {
			return nil, usage("--retry %q is no list of durations above 0; give one such as 1s,2s,4s", show.Line(text))
		}
		waits = append(waits, wait)
	}
	return waits, nil
}

func newTarget(what, text string) (*forward.Target, error) {
	target, err := forward.NewTarget(text)
	if err != nil {
		return nil, usage("%s %w", what, err)
	}
	return target, nil
}

// listenKeys returns the source of the keys, or nil if there is none.
func (a *app) listenKeys(f listenFlags) (heads.KeySource, error) {
	var sources listen.KeySources
	keys, err := a.listedKeys(f.keyFile)
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		sources = append(sources, heads.SharedKeys(keys...))
	}
	if f.serviceKeys {
		c, err := a.client()
		if err != nil {
			return nil, err
		}
		sources = append(sources, c.Webhooks.KeySource())
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return sources, nil
}

// listedKeys returns the keys of a file, one on each line, or that of HEADS_SHARED_KEY.
func (a *app) listedKeys(file string) ([]string, error) {
	if file == "" && os.Getenv("HEADS_SHARED_KEY") == "" {
		return nil, nil
	}
	text, err := a.sharedKey(file)
	if err != nil || file == "" {
		return []string{text}, err
	}
	var keys []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, line)
		}
	}
	return keys, nil
}

// listenOn opens the address, which it has resolved once.
func listenOn(f listenFlags) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", f.addr)
	if err != nil {
		return nil, usage("--addr %s is no address to listen on; give one such as 127.0.0.1:8790", show.Line(f.addr))
	}
	if !addr.IP.IsLoopback() && !f.expose {
		return nil, usage("--addr %s can be reached from other machines, whose requests would be passed on; give a loopback address "+
			"such as 127.0.0.1:8790, or --expose-to-network if that is what you want", show.Line(f.addr))
	}
	var certificate tls.Certificate
	if f.certFile != "" {
		if certificate, err = tls.LoadX509KeyPair(f.certFile, f.certKeyFile); err != nil {
			return nil, usage("--tls-cert and --tls-key can't be used: %w; give a certificate and its key as PEM files", err)
		}
	}
	socket, err := net.ListenTCP("tcp", addr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--addr %s can't be listened on: %w; give another port", show.Line(f.addr), rootCause(err))
	case f.certFile != "":
		return tls.NewListener(socket, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), nil
	}
	return socket, nil
}

// rootCause removes the addresses from an error of package net.
func rootCause(err error) error {
	var e *net.OpError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func openRecording(path string) (*recording.Writer, error) {
	w, err := recording.Open(path, time.Now())
	var file *fs.PathError
	switch {
	case err == nil:
		return w, nil
	case errors.As(err, &file):
		return nil, usage("--record %s can't be written: %w; check the path and its permissions", show.Line(path), file.Err)
	}
	return nil, usage("--record %s %w; it was not changed; give a new file, or a recording", show.Line(path), err)
}

// serveListener serves until Ctrl-C and then completes the requests under way.
func (a *app) serveListener(ctx context.Context, socket net.Listener, f listenFlags, l *listen.Listener) error {
	server := &http.Server{
		Handler: l, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true, // OPTIONS * is for the listener too
	}
	if a.debug {
		server.ErrorLog = log.New(a.stderr, "debug: ", 0)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(socket) }()
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
	}
	_ = server.Shutdown(context.Background()) // a second Ctrl-C ends the program
	undelivered := l.Close()
	if undelivered > 0 {
		a.note("%s acknowledged and undelivered; send them with headsctl replay %s --to URL --only undelivered",
			show.Count(undelivered, "event"), show.ShellWord(f.record))
	}
	if lost := l.Unrecorded(); lost > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s could not be written to --record %s; check the disk", show.Count(lost, "line"), show.Line(f.record)))
	}
	return failed
}

func (a *app) printListening(addr net.Addr, f listenFlags, target *forward.Target) {
	scheme, forwardTo := "http://", ""
	if f.certFile != "" {
		scheme = "https://"
	}
	if target != nil {
		forwardTo = target.String()
	}
	url := scheme + addr.String()
	if f.json {
		a.printJSON(struct {
			Type    string `json:"type"`
			URL     string `json:"url"`
			Forward string `json:"forward,omitempty"`
		}{"listening", url, forwardTo})
		return
	}
	if target != nil {
		forwardTo = ", forwarding to " + forwardTo
	}
	a.say("listening on %s%s", url, show.Line(forwardTo))
}

var statusColours = map[int]string{2: console.Green, 3: console.Yellow, 4: console.Red, 5: console.Red}

// printLine prints the outcome of a request.
func (a *app) printLine(line listen.Line, asJSON bool) {
	if asJSON {
		a.printJSON(line)
		return
	}
	words := []string{line.At.Local().Format(time.TimeOnly)}
	took := fmt.Sprintf(" in %dms", line.DurationMS)
	switch line.Type {
	case recording.KindEvent:
		words = append(words, "event", word(line.Event), word(line.HeadID), word(line.SessionID), "signature", line.Signature)
	case recording.KindToolCall:
		words = append(words, "tool", word(line.Tool), word(line.HeadID), word(line.SessionID))
	default:
		words, took = append(words, "other", word(line.Method), word(line.Path)), ""
	}
	status := a.stdout.Paint(statusColours[line.Status/100], fmt.Sprint(line.Status))
	text := strings.Join(words, " ") + " → " + status + took
	if line.Note != "" && line.Type != listen.KindOther {
		text += " (" + show.Line(line.Note) + ")"
	}
	a.say("%s", text)
}

// word returns a text from outside as one word of at most 200 columns, or - if it is empty.
func word(text string) string {
	if text = strings.ReplaceAll(show.Line(text), " ", "_"); text == "" {
		return "-"
	}
	return runewidth.Truncate(text, 200, show.CutMark)
}
