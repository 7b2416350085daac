package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

func appendEvent(t *testing.T, in *inbox.Inbox, session string, n int) {
	e, err := heads.ParseEvent(fmt.Appendf(nil, `{"event_type":"start_conversation","timestamp":"2026-08-31 06:56:30.%06d","head_id":"ada","session_id":%q,"note":"a body"}`, n, session))
	require.NoError(t, err)
	_, err = in.Append(t.Context(), e)
	require.NoError(t, err)
}

func operator(*http.Request) string { return "ada" }

// visitInbox visits the page of an inbox with events in every state.
func visitInbox(t *testing.T) (*inbox.Inbox, *tab) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "inbox.db"))
	require.NoError(t, err)
	in, err := inbox.Open(t.Context(), db, inbox.WithErrorText())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, in.Close(context.Background())) })
	for n := range 75 {
		appendEvent(t, in, fmt.Sprint("session", n%7), n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- in.Run(ctx, func(_ context.Context, d *inbox.Delivery) error {
			switch d.Event.SessionID {
			case "session1":
				return inbox.Permanent(errors.New("no such customer: <script>alert(1)</script>"))
			case "session2":
				return inbox.RetryAfter(3600e9, errors.New("the calendar is closed"))
			}
			return nil
		})
	}()
	require.Eventually(t, func() bool {
		s, err := in.Status(t.Context())
		return err == nil && s.Retrying == 1 && s.Running == 0 && s.Sessions == 1
	}, patience, 5e6)
	cancel()
	require.NoError(t, <-done)
	for n := range 5 {
		appendEvent(t, in, "a new session", 100+n)
	}
	page, err := console.New(in, console.AllowBodies(operator), console.AllowChanges(operator))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/operations/inbox", page)
	return in, visit(t, server(t, mux.ServeHTTP)+"/operations/inbox")
}

func (p *tab) follow(e element, heading string) {
	e.click()
	p.get("heading", heading)
}

func TestOperatorsPage(t *testing.T) {
	_, p := visitInbox(t)
	for _, scheme := range []string{"light", "dark"} {
		p.view(1280, scheme)
		p.get("navigation", "Inbox").get("link", "Overview").click()
		p.region("Status").shows("Dead letters", "accepts writes")
		p.region("Events per minute").get("image", "")
		p.get("checkbox", "Refresh every 5 seconds").inspect("inbox: " + scheme + ", overview")
		for _, heading := range []string{"Waiting", "Retrying", "Dead letters", "Handled", "All events"} {
			p.follow(p.get("navigation", "Inbox").get("link", heading), heading)
			p.get("search", "Find events").get("button", "Find")
			p.get("table", "Events").inspect("inbox: " + scheme + ", " + heading)
		}
	}
	p.view(480, "light")
	assert.True(t, eval[bool](p, "document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "nothing is cut off at 480 px")
	p.view(1280, "light")
}

func TestOperatorRedrivesAndDeletes(t *testing.T) {
	_, p := visitInbox(t)
	p.follow(p.get("navigation", "Inbox").get("link", "Dead letters"), "Dead letters")
	p.get("checkbox", "Select event 2").click()
	p.get("checkbox", "Select event 9").click()
	p.follow(p.get("button", "Redrive"), "Redrive 2 events?")
	inspect(p, "inbox: a question")
	p.follow(p.get("link", "Cancel"), "Dead letters")
	p.get("checkbox", "Select event 2").click()
	p.get("checkbox", "Select event 9").click()
	p.follow(p.get("button", "Redrive"), "Redrive 2 events?")
	p.press("Redrive 2 events")
	p.get("status", "").shows("2 events redriven.")
	p.follow(p.get("link", "16"), "Event 16")
	p.press("Show body")
	p.region("Body").shows(`"note":"a body"`).inspect("inbox: an event")
	p.press("Delete")
	p.press("Delete 1 event")
	p.get("status", "").shows("1 event deleted.")
	p.get("search", "Find events").get("textbox", "session").fill("session1")
	p.press("Find")
	p.until("one session", func() bool {
		var query string
		return chromedp.Run(p.ctx, chromedp.Evaluate("document.readyState === 'complete' ? location.search : ''", &query)) == nil && strings.Contains(query, "session=session1")
	})
	p.follow(p.get("table", "Events").get("link", "session1"), "Session session1")
	p.get("table", "Events").shows("dead", "waiting, redriven", "deleted").inspect("inbox: a session")
}

// The page reads the numbers again, which takes neither the focus nor what was typed.
func TestOverviewRefreshes(t *testing.T) {
	in, p := visitInbox(t)
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(`const every = globalThis.setInterval; globalThis.setInterval = (f, ms) => { globalThis.period = ms; return every(f, 50) }`).Do(ctx)
		return err
	}), chromedp.Reload())
	p.region("Status").shows("accepts writes")
	p.script(`globalThis.kept = true; document.querySelector("#to-dead").focus()`)
	appendEvent(t, in, "another session", 500)
	p.until("the new event", func() bool { return strings.Contains(p.region("Status").text(), "17") })
	assert.True(t, eval[bool](p, `globalThis.kept && globalThis.period === 5000 && document.activeElement.id === "to-dead"`))
	p.get("checkbox", "Refresh every 5 seconds").click()
	assert.False(t, eval[bool](p, `document.querySelector("#refresh").checked`))
}

func TestOperatorRedrivesAGroup(t *testing.T) {
	_, p := visitInbox(t)
	p.get("link", "Dead letters").click()
	table := p.get("table", "Dead letters by error")
	table.get("link", "no such customer: <script>alert(1)</script>")
	table.get("link", "Look at event 72").inspect("inbox: groups")
	table.press("Redrive 11 events")
	p.get("status", "").shows("11 events redriven.")
}
