package heads

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
)

// attemptStart is what the start of an attempt hook is told.
type attemptStart struct {
	attempt Attempt
	header  http.Header
}

// startHooks tells the hooks that an attempt begins. It returns the request
// with the context of the last one and the header keys of all.
func (c *call) startHooks(req *http.Request) *http.Request {
	added := http.Header{}
	ctx, hooked := c.core.hooks.start(req.Context(), attemptStart{c.newAttempt(), added}, c.hooked[:0], c.complainOfHook)
	c.hooked = hooked
	req = req.WithContext(ctx)
	if len(added) == 0 {
		return req
	}
	header := maps.Clone(req.Header)
	for name, values := range added {
		name = http.CanonicalHeaderKey(name)
		if _, taken := header[name]; !taken && !ownHeader(name) {
			header[name] = values
		}
	}
	req.Header = header
	return req
}

// complainOfHook doesn't show the panic, which may hold what a hook saw.
func (c *call) complainOfHook(ctx context.Context, _ error) {
	if c.core.logger != nil {
		c.core.logger.LogAttrs(ctx, slog.LevelError, "heads: an attempt hook panicked", slog.String("operation", c.op.name))
	}
}

// ownHeader reports whether the client alone sets a header.
func ownHeader(canonical string) bool {
	switch canonical {
	case "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Cookie":
		return true
	}
	return false
}
