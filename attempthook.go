package heads

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
)

// attemptHook is what WithAttemptHook was given; either function may be nil.
type attemptHook struct {
	start func(context.Context, Attempt, http.Header) context.Context
	end   func(context.Context, Attempt)
}

// startHooks tells the hooks that an attempt begins. It returns the request
// with the context of the last one and the header keys of all.
func (c *call) startHooks(req *http.Request) *http.Request {
	ctx, added := req.Context(), http.Header{}
	c.hooked = c.hooked[:0]
	for _, hook := range c.core.hooks {
		if hook.start != nil {
			c.survive(ctx, func() {
				if hooked := hook.start(ctx, c.newAttempt(), added); hooked != nil {
					ctx = hooked
				}
			})
		}
		c.hooked = append(c.hooked, ctx)
	}
	header := maps.Clone(req.Header)
	for name, values := range added {
		name = http.CanonicalHeaderKey(name)
		if _, taken := header[name]; !taken && !ownHeader(name) {
			header[name] = values
		}
	}
	req = req.WithContext(ctx)
	req.Header = header
	return req
}

func (c *call) endHooks(a Attempt) {
	for i, hook := range c.core.hooks {
		if hook.end != nil {
			c.survive(c.hooked[i], func() { hook.end(c.hooked[i], a) })
		}
	}
}

// survive keeps a panic of a hook from ending the call.
func (c *call) survive(ctx context.Context, hook func()) {
	defer func() {
		if value := recover(); value != nil && c.core.logger != nil {
			c.core.logger.LogAttrs(ctx, slog.LevelError, "heads: an attempt hook panicked", slog.String("operation", c.op.name))
		}
	}()
	hook()
}

// ownHeader reports whether the client alone sets a header.
func ownHeader(canonical string) bool {
	switch canonical {
	case "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Cookie":
		return true
	}
	return false
}
