package transport

import (
	"context"
	"sync/atomic"
)

// TokenSource returns a token that can be sent. It is asked again with the token that the
// service refused. The text of its error shows no token.
type TokenSource func(ctx context.Context, rejected string) (string, error)

// credential is a token and the header made of it, which all requests share. It never
// changes.
type credential struct {
	token  string
	header []string
}

func newCredential(token string) *credential {
	return &credential{token: token, header: []string{"Bearer " + token}}
}

// credentials hold the token in force.
type credentials struct {
	source  TokenSource // nil with a fixed token
	current atomic.Pointer[credential]
	asking  chan struct{} // full while a call asks the source
}

func newCredentials(token string, source TokenSource) *credentials {
	c := &credentials{source: source, asking: make(chan struct{}, 1)}
	if source == nil {
		c.current.Store(newCredential(token))
	}
	return c
}

// get returns the token in force. It asks the source if there is none yet.
func (c *credentials) get(ctx context.Context) (*credential, error) {
	if cred := c.current.Load(); cred != nil {
		return cred, nil
	}
	return c.renew(ctx, nil)
}

// renew returns another credential than the refused one: the one that another call has
// fetched meanwhile, or a new one from the source. If the source has no other token, it
// returns the refused credential.
func (c *credentials) renew(ctx context.Context, refused *credential) (*credential, error) {
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
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
		return nil, err
	}
	if token == rejected {
		return refused, nil
	}
	cred := newCredential(token)
	c.current.Store(cred)
	return cred, nil
}
