package inbox

import (
	"context"
	"io"
	"net/http"
	"time"
)

const (
	checkInterval = time.Second // between writes of Health
	checkTimeout  = time.Second // of such a write
)

// Health returns a handler for the checks of a load balancer. It answers 200 while the database
// accepts writes. It answers 503 while the database does not, from the beginning of the shutdown of
// Serve, and after Close. It writes to the database at most once a second, however often it is
// asked. The answer shows nothing of the database.
func (in *Inbox) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		healthy := in.check()
		if !healthy || in.ending() { // the shutdown may have begun during the check
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "unavailable\n")
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
}

// ending reports whether the inbox is closed or Serve shuts down.
func (in *Inbox) ending() bool {
	serving := in.serving.Load()
	return in.db.closed.Err() != nil || serving != nil && (*serving).Err() != nil
}

// check reports whether the database accepts writes. Requests that arrive during a write wait for
// it.
func (in *Inbox) check() bool {
	if in.ending() || in.health.down() != nil || !in.db.use() {
		return false
	}
	defer in.db.done()
	p := &in.probed
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= checkInterval {
		p.at = time.Now()
		ctx, cancel := context.WithTimeout(in.db.closed, checkTimeout)
		defer cancel()
		p.healthy = in.health.touch(ctx) == nil
	}
	return p.healthy
}
