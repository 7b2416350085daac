package exporter

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mux := http.NewServeMux()
	stop, err := startMetrics(mux)
	if err != nil {
		log.Fatal(err)
	}
	defer stop(context.WithoutCancel(ctx))

	dir, err := os.MkdirTemp("", "exporter")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	handle := func(_ context.Context, d *inbox.Delivery) error {
		if d.Attempt == 1 {
			return inbox.RetryAfter(0, errors.New("the shop does not answer"))
		}
		return nil
	}
	received := make(chan error, 1)
	go func() {
		received <- receive(ctx, mux, filepath.Join(dir, "events.db"), heads.SharedKeys(sharedKey), handle)
	}()
	deliver(mux)
	var page []string
	for !slices.Contains(page, "heads_inbox_handled_total 1") || !slices.Contains(page, "heads_inbox_waiting 0") {
		page = lines(metrics(mux))
	}
	fmt.Println(strings.Join(page, "\n"))
	cancel()
	if err := <-received; err != nil {
		log.Fatal(err)
	}
	// Output:
	// heads_delivery_count_total{heads_delivery_outcome="handled",heads_event_type="start_conversation"} 1
	// heads_delivery_duration_seconds_count{heads_delivery_outcome="handled",heads_event_type="start_conversation"} 1
	// heads_inbox_dead 0
	// heads_inbox_failed_total 1
	// heads_inbox_handled_total 1
	// heads_inbox_lag_seconds_count 1
	// heads_inbox_oldest_waiting_seconds 0
	// heads_inbox_retrying 0
	// heads_inbox_waiting 0
}

const sharedKey = "the key of the registration"

// deliver sends an event as the service does.
func deliver(mux http.Handler) {
	event := heads.Event{Type: heads.EventStartConversation, HeadID: "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c", SessionID: "session-1"}
	for status := 0; status != http.StatusOK; { // retry until the handler is mounted
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.com/events", event, sharedKey))
		status = answer.Code
	}
}

// metrics returns the page that Prometheus would scrape.
func metrics(mux http.Handler) string {
	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return page.Body.String()
}

// scope is the label that every line of module headsotel has.
const scope = `otel_scope_name="github.com/headsapi/heads-go/headsotel",otel_scope_schema_url="",otel_scope_version="` + heads.Version + `"`

var withoutScope = strings.NewReplacer(","+scope, "", "{"+scope+"}", "")

// lines returns the lines with counts and gauges.
func lines(page string) (all []string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "heads_") && !strings.Contains(line, "_bucket") && !strings.Contains(line, "_sum") {
			all = append(all, withoutScope.Replace(strings.TrimSpace(line)))
		}
	}
	return all
}
