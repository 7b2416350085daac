package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// page is the handler.
type page struct {
	in        *inbox.Inbox
	actor     func(*http.Request) string // nil if changes are not allowed
	bodyActor func(*http.Request) string // nil if bodies are not shown
	hosts     map[string]bool
	audit     *slog.Logger
	origin    http.CrossOriginProtection
	sampling  context.Context //nolint:containedctx // of Sample; nil without it
	limit     *limit
	history   history
	results   results
}

// fail shows an error. Errors of package inbox contain no event data and no DSN.
func (p *page) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := &fault{http.StatusInternalServerError, err.Error()}
	switch {
	case errors.As(err, &f):
	case errors.Is(err, inbox.ErrNotFound):
		f.status = http.StatusNotFound
	case errors.Is(err, heads.ErrInvalid):
		f.status = http.StatusBadRequest
	case errors.Is(err, inbox.ErrUnavailable), errors.Is(err, inbox.ErrClosed), r.Context().Err() != nil:
		f.status = http.StatusServiceUnavailable
	}
	render(w, f.status, "error", &view{Name: "error", Title: http.StatusText(f.status), Message: f.text})
}

// known returns who sent the request. allowed is nil if the page does not allow what is asked for.
func known(r *http.Request, allowed func(*http.Request) string, option string) (string, error) {
	if allowed == nil {
		return "", &fault{http.StatusForbidden, "This page does not allow that. Its operator can allow it with console." + option + "."}
	}
	actor := allowed(r)
	if actor == "" {
		return "", &fault{http.StatusForbidden, "It is not known who asks. The login in front of this page must tell."}
	}
	return actor, nil
}

const maxEvents = 1000 // in one request, and in one line of the audit log

// note writes a line of the audit log, with the first sequences of a large group.
func (p *page) note(r *http.Request, what, actor string, ids []int64, n int) {
	if p.audit != nil {
		p.audit.LogAttrs(r.Context(), slog.LevelInfo, what,
			slog.String("actor", actor), slog.Any("sequences", ids[:min(len(ids), maxEvents)]), slog.Int("number", n))
	}
}

// status reads the status of the inbox and records it.
func (p *page) status(ctx context.Context) (inbox.Status, error) {
	s, err := p.in.Status(ctx)
	if err != nil {
		return s, err
	}
	latest, _, err := p.in.List(ctx, inbox.Query{Limit: 1}, "", 0)
	if err != nil {
		return s, err
	}
	now := sample{at: time.Now(), open: s.Pending + s.Dead, estimated: s.Estimated}
	if len(latest) > 0 {
		now.stored = latest[0].Sequence
	}
	p.history.add(now)
	return s, nil
}

// sample records the numbers until ctx ends. A database that does not answer leaves a gap.
func (p *page) sample(ctx context.Context) {
	ticks := time.NewTicker(historyStep)
	defer ticks.Stop()
	for {
		_ = p.limit.do(ctx, func(ctx context.Context) error {
			_, err := p.status(ctx)
			return err
		})
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
