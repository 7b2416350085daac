// Package forward sends events and tool calls to a back end, byte for byte.
package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/internal/loopback"
	"github.com/headsapi/heads-go/internal/mask"
)

// maxAnswer is the size of the largest answer, in bytes.
const maxAnswer = 1 << 20

// The errors of Target.Send. No other error of it holds the URL.
var (
	ErrNoConnection = errors.New("no connection")
	ErrTimeout      = errors.New("no answer")
	ErrTooLarge     = fmt.Errorf("an answer of more than %d MiB", maxAnswer>>20)
)

var errStatus = errors.New("an answer with the status")

// Target is a back end.
type Target struct {
	base   string
	host   string // without the port
	client *http.Client
}

// NewTarget returns the back end at a URL, below which the paths are. Its errors do not
// show the URL.
func NewTarget(text string) (*Target, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("is not an http or https URL; give one such as http://127.0.0.1:8080")
	case u.User != nil:
		return nil, errors.New("holds a user name; leave it out, since only the recorded headers are sent")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("has a query or a fragment; give it without, since paths are put behind it")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // which would add a header
	return &Target{
		base: strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), host: u.Hostname(),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// URL returns the URL, without a slash at the end.
func (t *Target) URL() string { return t.base }

// String returns the URL to be shown.
func (t *Target) String() string {
	scheme, rest, _ := strings.Cut(t.base, "://")
	host, path, found := strings.Cut(rest, "/")
	if !found {
		return t.base
	}
	return scheme + "://" + host + mask.Path("/"+path, "")
}

// IsLoopback reports whether the back end can only be on this machine.
func (t *Target) IsLoopback() bool { return loopback.Is(t.host) }

// Send posts a body to a path, with its query, below the URL. Of the headers it sends
// those that a recording holds. It waits for the answer as long as timeout says.
// A redirect is an answer like any other.
func (t *Target) Send(ctx context.Context, path string, header http.Header, body []byte, timeout time.Duration) (recording.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	answer, err := t.exchange(ctx, path, header, body)
	answer.DurationMS = time.Since(started).Milliseconds()
	var shown *url.Error
	if errors.As(err, &shown) {
		err = shown.Err // without the URL, whose path may hold a secret
	}
	var dial *net.OpError
	switch {
	case err == nil || errors.Is(err, ErrTooLarge) || errors.Is(err, errStatus):
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w in %v", ErrTimeout, timeout)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = ErrNoConnection
	case ctx.Err() == nil:
		err = fmt.Errorf("the connection ended before the answer: %w", err)
	}
	return answer, err
}

func (t *Target) exchange(ctx context.Context, path string, header http.Header, body []byte) (answer recording.Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+path, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("User-Agent", "") // keeps package http from sending its own
	for _, name := range recording.Headers {
		if values := header.Values(name); len(values) > 0 {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	response, err := t.client.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err == nil && len(text) > maxAnswer:
		err = ErrTooLarge
	case err == nil && response.StatusCode < 100:
		err = fmt.Errorf("%w %d", errStatus, response.StatusCode)
	}
	if err != nil {
		return answer, err
	}
	return recording.Answer{Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), Body: text, By: recording.ByBackEnd}, nil
}
