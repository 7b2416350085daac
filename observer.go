package heads

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/headsapi/heads-go/internal/panics"
)

// Observer is told of what a client or a handler does: of every Attempt, every
// delivery (DeliveryInfo) or every tool call (ToolCallInfo).
//
// Start is called before, with what is known by then. What follows runs with the
// context that it returns, which must be derived from the one that it gets; nil
// stands for the latter. End is called after, with the context of its own Start.
// Either may be nil.
//
// Observers add up, in the order of their options: Starts are called in order,
// Ends in reverse, all of them in the goroutine of the work, and by many
// goroutines at once. A panic in one is logged and changes nothing else.
type Observer[T any] struct {
	Start func(ctx context.Context, t T) context.Context
	End   func(ctx context.Context, t T)
}

// check refuses an observer that would be told nothing.
func (o Observer[T]) check(operation, option string) error {
	if o.Start == nil && o.End == nil {
		return invalid(operation, option, "has neither Start nor End", "give one of them, or leave the option out")
	}
	return nil
}

type observers[T any] []Observer[T]

// start calls each Start with what next returns for it. It returns the context of
// the last, and those of all for end, appended to contexts.
func (os observers[T]) start(ctx context.Context, logger *slog.Logger, contexts []context.Context, next func() T) (context.Context, []context.Context) {
	for _, o := range os {
		if o.Start != nil {
			o.survive(ctx, logger, func() {
				if own := o.Start(ctx, next()); own != nil {
					ctx = own
				}
			})
		}
		contexts = append(contexts, ctx)
	}
	return ctx, contexts
}

// end calls each End with the context of its Start, also if that panicked.
func (os observers[T]) end(contexts []context.Context, logger *slog.Logger, t T) {
	for i := len(os) - 1; i >= 0; i-- {
		if os[i].End != nil {
			os[i].survive(contexts[i], logger, func() { os[i].End(contexts[i], t) })
		}
	}
}

// survive logs a panic of f, which calls the observer. The logger may be nil.
func (Observer[T]) survive(ctx context.Context, logger *slog.Logger, f func()) {
	err := panics.Try(func() error {
		f()
		return nil
	})
	if err != nil && logger != nil {
		attrs := append([]slog.Attr{slog.String("observer", fmt.Sprintf("%T", *new(T)))}, errorAttrs(err)...)
		logger.LogAttrs(ctx, slog.LevelError, "heads: an observer panicked", attrs...)
	}
}
