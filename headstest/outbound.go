package headstest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/headsapi/heads-go/internal/loopback"
)

// outboundClient is the client of deliveries and tool calls. It returns a redirect
// as the answer and does not follow it. It shares no connections, unless the given
// client has a transport. A nil hosts allows every host.
func outboundClient(given *http.Client, hosts *callbackHosts) (hc *http.Client, hangUp func()) {
	hc, hangUp = &http.Client{}, func() {}
	if given != nil {
		*hc = *given
	}
	if hc.Transport == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment}
		hc.Transport, hangUp = own, own.CloseIdleConnections
	}
	if hosts != nil {
		hosts.next = hc.Transport
		hc.Transport = hosts
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return hc, hangUp
}

// callbackHosts passes on the requests to loopback and to the hosts that are allowed.
type callbackHosts struct {
	to   map[string]*url.URL // by host, in lower case; nil to send to the host itself
	next http.RoundTripper
}

// anyHost is the name that stands for the hosts without an entry.
const anyHost = "*"

// newCallbackHosts returns an error for an entry that can't be used.
func newCallbackHosts(hosts map[string]string) (*callbackHosts, error) {
	c := &callbackHosts{to: map[string]*url.URL{}}
	for host, target := range hosts {
		u, err := url.Parse("//" + host)
		if host != anyHost && (err != nil || u.Hostname() == "" || u.Host != host || strings.HasSuffix(host, ":")) {
			return nil, fmt.Errorf("%q is not a host; give a name such as www.example.com, with or without a port, or * for all", host)
		}
		name := strings.ToLower(host)
		if _, twice := c.to[name]; twice {
			return nil, fmt.Errorf("the host %q is given twice; give it once", host)
		}
		c.to[name] = nil
		if target == "" {
			continue
		}
		u, err = url.Parse(target)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.TrimSuffix(target, "/") != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("the host %q can't be sent to %q; give a scheme and a host, such as http://127.0.0.1:8080", host, target)
		}
		c.to[name] = u
	}
	return c, nil
}

// RoundTrip sends a request that is allowed, perhaps to another address.
func (c *callbackHosts) RoundTrip(r *http.Request) (*http.Response, error) {
	to, allowed := c.find(r.URL)
	if !allowed {
		return nil, fmt.Errorf("nothing is sent to %s: it is not this machine; allow it with -allow-host", r.URL.Hostname())
	}
	r = r.Clone(r.Context())
	r.Host = cmp.Or(r.Host, r.URL.Host)
	r.URL.Host = strings.ToLower(r.URL.Host) // HTTP_PROXY applies to LOCALHOST, but not to localhost
	if to != nil {
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	}
	return c.next.RoundTrip(r)
}

// find returns where requests to a URL are sent, and whether they are allowed. An entry
// with the port applies before one without. Loopback needs no entry.
func (c *callbackHosts) find(u *url.URL) (to *url.URL, allowed bool) {
	host := strings.ToLower(u.Host)
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	bare := strings.TrimSuffix(host, ":"+u.Port())
	for _, name := range []string{bare + ":" + port, bare} {
		if to, allowed = c.to[name]; allowed {
			return to, true
		}
	}
	if loopback.Is(u.Hostname()) {
		return nil, true
	}
	to, allowed = c.to[anyHost]
	return to, allowed
}

// exchange sends a request, reads at most limit bytes of the answer, and closes its
// body. If it returns a response and an error, reading the body failed.
func exchange(client *http.Client, req *http.Request, limit int64) (resp *http.Response, body []byte, err error) {
	resp, err = client.Do(req)
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	return resp, body, err
}

// withoutURL removes the URL from a transport's error, since its path or query may
// hold a secret.
func withoutURL(err error) error {
	var u *url.Error
	switch {
	case !errors.As(err, &u):
		return err
	case strings.Contains(u.Err.Error(), "Location header"):
		return errors.New("the answer is a redirect to a malformed URL")
	default:
		return u.Err
	}
}
