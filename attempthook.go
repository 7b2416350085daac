package heads

import (
	"context"
	"log/slog"
	"net/http"
)

// attemptStart is what the start of an attempt hook is told.
type attemptStart struct {
	attempt Attempt
	header  http.Header
}

// startHooks tells the hooks that an attempt begins, and adds their keys to its
// header. It returns the context of the last one.
func (c *call) startHooks(ctx context.Context, header http.Header) context.Context {
	added := http.Header{}
	ctx, c.hooked = c.core.hooks.start(ctx, attemptStart{c.newAttempt(), added}, c.hooked[:0], c.complainOfHook)
	for name, values := range added {
		name = http.CanonicalHeaderKey(name)
		if _, taken := header[name]; !taken && !ownHeader(name) {
			header[name] = values
		}
	}
	return ctx
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
