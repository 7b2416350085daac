package headstest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// outboundClient is the client of deliveries and tool calls. It answers with
// the redirect itself, so that none is followed. Its connections are its own,
// unless the given client brings a transport.
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

// exchange sends a request and reads at most limit bytes of the answer, whose
// body is closed. An error with a response is one of reading the body.
func (c *core) exchange(req *http.Request, limit int64) (resp *http.Response, body []byte, err error) {
	resp, err = c.client.Do(req)
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	return resp, body, err
}

// withoutURL takes the address off a transport's error, since its path or
// query may hold a secret.
func withoutURL(err error) error {
	var u *url.Error
	switch {
	case !errors.As(err, &u):
		return err
	case strings.Contains(u.Err.Error(), "Location header"):
		return errors.New("the answer is a redirect to an address that can't be read")
	default:
		return u.Err
	}
}
