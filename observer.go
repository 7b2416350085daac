package heads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/headsapi/heads-go/internal/panics"
	"github.com/headsapi/heads-go/internal/transport"
)

// Observer has functions that are called for each thing that a client or a handler
// does: each Attempt, each delivery (DeliveryInfo) or each tool call (ToolCallInfo).
//
// Start is called before it, with what is known by then. It returns the context for
// what follows, which must be derived from its own ctx; nil means ctx. End is called
// after it, with the context of its own Start. Either may be nil.
//
// Observers add up, in the order of their options: Starts are called in order,
// Ends in reverse, all of them in the goroutine of the work, and by many
// goroutines at once. A panic in one is logged and changes nothing else.
type Observer[T any] struct {
	Start func(ctx context.Context, t T) context.Context
	End   func(ctx context.Context, t T)
}

// check refuses an observer without functions.
func (o Observer[T]) check(operation, option string) error {
	if o.Start == nil && o.End == nil {
		return invalid(operation, option, "has neither Start nor End", "give one of them, or leave the option out")
	}
	return nil
}

type observers[T any] []Observer[T]

// start calls each Start. It returns the context of the last, and those of all for end,
// appended to contexts.
func (os observers[T]) start(ctx context.Context, log panicLog, contexts []context.Context, t T) (context.Context, []context.Context) {
	for _, o := range os {
		if o.Start != nil {
			ctx = o.start(ctx, log, t)
		}
		contexts = append(contexts, ctx)
	}
	return ctx, contexts
}

// end calls each End with the context of its Start, also if that panicked.
func (os observers[T]) end(contexts []context.Context, log panicLog, t T) {
	for i := len(os) - 1; i >= 0; i-- {
		if os[i].End != nil {
			os[i].end(contexts[i], log, t)
		}
	}
}

// start calls Start and returns the context for what follows.
func (o Observer[T]) start(ctx context.Context, log panicLog, t T) context.Context {
	o.recovered(ctx, log, func() {
		if own := o.Start(ctx, t); own != nil {
			ctx = own
		}
	})
	return ctx
}

func (o Observer[T]) end(ctx context.Context, log panicLog, t T) {
	o.recovered(ctx, log, func() { o.End(ctx, t) })
}

// recovered calls f, which calls the observer, and logs its panic, unless log is nil.
func (Observer[T]) recovered(ctx context.Context, log panicLog, f func()) {
	err := panics.Try(func() error {
		f()
		return nil
	})
	if err != nil && log != nil {
		log.observerPanicked(ctx, fmt.Sprintf("%T", *new(T)), err)
	}
}

// panicLog is an interface, as the log of attempts is a function, so that package log/slog is
// linked only into programs that log.
type panicLog interface {
	observerPanicked(ctx context.Context, observer string, err error)
}

type slogPanics struct{ *slog.Logger }

func (l slogPanics) observerPanicked(ctx context.Context, observer string, err error) {
	l.LogAttrs(ctx, slog.LevelError, "heads: an observer panicked", append([]slog.Attr{slog.String("observer", observer)}, errorAttrs(err)...)...)
}

// Attempt describes one attempt to an Observer. No field contains a secret, a query
// string or a body. The Attempt passed to Start has no outcome yet.
type Attempt struct {
	Operation  string // "Heads.Get"
	Method     string // "GET"
	Route      string // "/head/{id}": safe as a metric label
	Host       string // of the base URL, with its port if it has one
	Number     int    // 1 for the first
	StatusCode int    // 0 when no response came
	Duration   time.Duration
	RequestID  string
	Err        error         // redacted; nil for a status from 200 to 299
	Final      bool          // no further attempt follows
	RetryIn    time.Duration // the wait before the next attempt, 0 for none
	Waited     time.Duration // for WithRateLimit and for a Retry-After, before Duration began

	// Header is empty at the start. Its entries are sent with this one attempt,
	// unless the client sets the key itself. It is nil at the end.
	Header http.Header
}

// LogValue returns the fields of a log line of WithLogger: waited and request_id
// if they are set, error and retry_in if the attempt failed.
func (a Attempt) LogValue() slog.Value { return slog.GroupValue(a.attrs()...) }

func (a Attempt) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("operation", a.Operation),
		slog.String("method", a.Method),
		slog.String("route", a.Route),
		slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode),
		slog.Duration("duration", a.Duration),
	}
	if a.Waited > 0 {
		attrs = append(attrs, slog.Duration("waited", a.Waited))
	}
	if a.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", a.RequestID))
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()), slog.Duration("retry_in", a.RetryIn))
	}
	return attrs
}

// attemptLog logs what WithLogger says.
func attemptLog(logger *slog.Logger) func(context.Context, transport.Attempt) {
	return func(ctx context.Context, a transport.Attempt) {
		level := slog.LevelDebug
		if a.Err != nil {
			level = slog.LevelWarn
		}
		logger.LogAttrs(ctx, level, "heads: attempt", Attempt(a).attrs()...)
	}
}

// attemptObserver is the observer of a client for its transport.
func attemptObserver(o Observer[Attempt], log panicLog) (to transport.Observer) {
	if o.Start != nil {
		to.Start = func(ctx context.Context, a transport.Attempt) context.Context {
			return o.start(ctx, log, Attempt(a))
		}
	}
	if o.End != nil {
		to.End = func(ctx context.Context, a transport.Attempt) { o.end(ctx, log, Attempt(a)) }
	}
	return to
}

func errorAttrs(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	attrs := []slog.Attr{slog.String("error", shownError(err))}
	var p *panics.Error
	if errors.As(err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	return attrs
}
