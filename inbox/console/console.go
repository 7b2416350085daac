// Package console is a web page for the operator of an inbox. It shows waiting and failed events,
// and can redrive or delete dead letters if AllowChanges is given.
//
// The page has no login. Put it behind your own login, or serve it on a loopback address.
package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// Option configures New.
type Option func(*page) error

// AllowChanges adds the buttons that redrive and delete dead letters. actor returns the name of the
// user who sent the request, for example from a header that your login sets. If it returns "", the
// change is refused with 403.
func AllowChanges(actor func(*http.Request) string) Option {
	return func(p *page) error {
		p.actor = actor
		return refuse(actor == nil, "AllowChanges", "is nil", "leave the option out for a page that only reads")
	}
}

// AllowBodies adds the button that shows an event's body, which tells who talked to which head and
// when. actor is as for AllowChanges.
func AllowBodies(actor func(*http.Request) string) Option {
	return func(p *page) error {
		p.bodyActor = actor
		return refuse(actor == nil, "AllowBodies", "is nil", "leave the option out for a page without bodies")
	}
}

// Hosts sets the host names, without ports, that the page accepts in addition to localhost and
// loopback addresses. Requests for other hosts are refused with 403, which prevents DNS rebinding:
// another site could point its own name to this machine.
func Hosts(names ...string) Option {
	return func(p *page) (err error) {
		err = refuse(len(names) == 0, "Hosts", "has no name", "give one, or leave the option out")
		for _, name := range names {
			err = errors.Join(err, refuse(!isHostName(name), "Hosts", fmt.Sprintf("%q is not a host name", name), "give one like inbox.example.com, without scheme, port and path"))
			p.hosts[strings.ToLower(name)] = true
		}
		return err
	}
}

func isHostName(name string) bool {
	u, err := url.Parse("http://" + name)
	return err == nil && name != "" && u.Host == name && u.Port() == "" && !strings.HasSuffix(name, ":")
}

// Audit logs a line for each change and for each body shown, with the actor, the sequences and
// their count.
func Audit(l *slog.Logger) Option {
	return func(p *page) error {
		p.audit = l
		return refuse(l == nil, "Audit", "is nil", "leave the option out for no log")
	}
}

// Sample records the numbers of the inbox every 10 seconds until ctx ends, for the lines "Events
// per minute" of the last hour. Without it, the page knows only the moments at which it was read.
func Sample(ctx context.Context) Option {
	return func(p *page) error {
		if err := refuse(ctx == nil, "Sample", "is nil", "give the context of your program, or leave the option out"); err != nil {
			return err
		}
		p.sampling = ctx
		return nil
	}
}

func refuse(bad bool, field, problem, remedy string) error {
	if bad {
		return &heads.InvalidError{Operation: "console.New", Field: field, Problem: problem, Remedy: remedy}
	}
	return nil
}

const maxQuery = 16 << 10 // bytes, so that no page that repeats it is large

// isLoopback reports whether a host is this machine. It is copied from an internal package of
// module heads, which other modules must not import.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// New returns the page. All its state is in the query of one path, so it can be mounted anywhere.
// Without options, it is read-only. If options are invalid, New returns a *heads.InvalidError for
// each fault, joined.
func New(in *inbox.Inbox, opts ...Option) (http.Handler, error) {
	p := &page{in: in, hosts: map[string]bool{}, limit: newLimit()}
	err := refuse(in == nil, "in", "is nil", "open one with inbox.Open")
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, refuse(true, "option", "is nil", "leave it out"))
			continue
		}
		err = errors.Join(err, opt(p))
	}
	if err != nil {
		return nil, err
	}
	if p.sampling != nil {
		go p.sample(p.sampling)
	}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !p.knows(r.Host) {
		p.fail(w, r, &fault{http.StatusForbidden, "This page does not answer for this host name. Its operator can add it with console.Hosts."})
		return
	}
	if len(r.URL.RawQuery) > maxQuery {
		p.fail(w, r, &fault{http.StatusRequestURITooLong, "The address is too long."})
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		p.read(w, r)
	case http.MethodPost:
		p.post(w, r)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		p.fail(w, r, &fault{http.StatusMethodNotAllowed, "This page knows GET and POST."})
	}
}

func (p *page) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return isLoopback(host) || p.hosts[strings.ToLower(host)]
}

// read answers a GET.
func (p *page) read(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("asset") {
		p.show(w, r)
		return
	}
	if !serveAsset(w, r.URL.Query().Get("asset")) {
		p.fail(w, r, &fault{http.StatusNotFound, "There is no such file."})
	}
}
