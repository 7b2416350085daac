package headstest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// outboundClient is the client of deliveries and tool calls. It returns a redirect
// as the answer and does not follow it. It shares no connections, unless the given
// client has a transport.
func outboundClient(given *http.Client) (hc *http.Client, hangUp func()) {
	hc, hangUp = &http.Client{}, func() {}
	if given != nil {
		*hc = *given
	}
	if hc.Transport == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment}
		hc.Transport, hangUp = own, own.CloseIdleConnections
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return hc, hangUp
}

// exchange sends a request, reads at most limit bytes of the answer, and closes its
// body. If it returns a response and an error, reading the body failed.
func (c *core) exchange(req *http.Request, limit int64) (resp *http.Response, body []byte, err error) {
	resp, err = c.client.Do(req)
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
