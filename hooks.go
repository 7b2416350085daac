package heads

import (
	"context"

	"github.com/headsapi/heads-go/internal/panics"
)

// hook holds the functions of an option such as WithToolHook: start receives S and
// returns a context for the work, end receives E. Either function may be nil.
type hook[S, E any] struct {
	start func(context.Context, S) context.Context
	end   func(context.Context, E)
}

// hooks are called in the order of their options. Their panics are passed to
// complain.
type hooks[S, E any] []hook[S, E]

// hookedContexts holds what each hook's start returned, or would have.
type hookedContexts []context.Context

// start returns the context of the last hook, and those of all for end,
// appended to hooked.
func (hs hooks[S, E]) start(ctx context.Context, s S, hooked hookedContexts, complain func(context.Context, error)) (context.Context, hookedContexts) {
	for _, h := range hs {
		if h.start != nil {
			survive(ctx, complain, func() {
				if next := h.start(ctx, s); next != nil {
					ctx = next
				}
			})
		}
		hooked = append(hooked, ctx)
	}
	return ctx, hooked
}

// end is called with what start returned. A hook ends even if its start panicked.
func (hs hooks[S, E]) end(hooked hookedContexts, e E, complain func(context.Context, error)) {
	for i, h := range hs {
		if h.end != nil {
			survive(hooked[i], complain, func() { h.end(hooked[i], e) })
		}
	}
}

// survive passes a panic of f to complain.
func survive(ctx context.Context, complain func(context.Context, error), f func()) {
	err := panics.Try(func() error {
		f()
		return nil
	})
	if err != nil {
		complain(ctx, err)
	}
}
