package heads

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/headsapi/heads-go/internal/check"
)

// TokenSource returns bearer tokens. It is asked once before the first request,
// with rejected "", and again after a 401, with the token that was refused.
// The token that it returns is used until the service refuses it. It is never
// asked twice at the same time.
type TokenSource func(ctx context.Context, rejected string) (string, error)

// credential is a token and the header made of it, which is shared by all
// requests and never changed.
type credential struct {
	token  string
	header []string
}

func newCredential(token string) *credential {
	return &credential{token: token, header: []string{"Bearer " + token}}
}

// credentials holds the token in force.
type credentials struct {
	source  TokenSource // nil with a fixed token
	current atomic.Pointer[credential]
	turn    chan struct{} // held by the one that asks the source
}

func newCredentials(token string, source TokenSource) *credentials {
	c := &credentials{source: source, turn: make(chan struct{}, 1)}
	if source == nil {
		c.current.Store(newCredential(token))
	}
	return c
}

// get returns the token in force, asking the source when there is none yet.
func (c *credentials) get(ctx context.Context) (*credential, error) {
	if cred := c.current.Load(); cred != nil {
		return cred, nil
	}
	return c.renew(ctx, nil)
}

// renew returns another credential than the refused one: the one that somebody
// else has fetched meanwhile, or a new one from the source. It returns the
// refused one itself when the source has no other.
func (c *credentials) renew(ctx context.Context, refused *credential) (*credential, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if cred := c.current.Load(); cred != refused {
		return cred, nil
	}
	rejected := ""
	if refused != nil {
		rejected = refused.token
	}
	token, err := c.source(ctx, rejected)
	if err != nil {
		return nil, redact(fmt.Errorf("token source: %w", err), rejected, token)
	}
	if fault := check.Token(token); fault.Problem != "" {
		return nil, fmt.Errorf("token source: the token %s; %s", fault.Problem, fault.Remedy)
	}
	if token == rejected {
		return refused, nil
	}
	cred := newCredential(token)
	c.current.Store(cred)
	return cred, nil
}
