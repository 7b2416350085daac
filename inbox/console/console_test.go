package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

const canary = "canary-of-a-body"

func openInbox(t *testing.T) *inbox.Inbox {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "inbox.db"))
	require.NoError(t, err)
	in, err := inbox.Open(t.Context(), db, inbox.WithErrorText())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close(context.Background())) })
	return in
}

func add(t *testing.T, in *inbox.Inbox, head, session string, n int) {
	body, err := json.Marshal(map[string]string{
		"event_type": "start_conversation", "timestamp": fmt.Sprintf("2026-08-31 06:56:%02d", n),
		"head_id": head, "session_id": session, "secret": canary,
	})
	require.NoError(t, err)
	addBody(t, in, body)
}

func addBody(t *testing.T, in *inbox.Inbox, body []byte) {
	e, err := heads.ParseEvent(body)
	require.NoError(t, err)
	added, err := in.Append(t.Context(), e)
	assert.NoError(t, err)
	assert.True(t, added)
}

func errorOf(text string) func(*heads.Event) error {
	return func(*heads.Event) error { return errors.New(text) }
}

// bury sends all waiting events to the dead letters.
func bury(t *testing.T, in *inbox.Inbox, failure func(*heads.Event) error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- in.Run(ctx, func(_ context.Context, d *inbox.Delivery) error { return inbox.Permanent(failure(d.Event)) })
	}()
	require.Eventually(t, func() bool {
		s, err := in.Status(t.Context())
		return err == nil && s.Pending == 0
	}, 30*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// browser is a client that does not follow redirects.
type browser struct {
	t   *testing.T
	url string
}

func serve(t *testing.T, in *inbox.Inbox, opts ...console.Option) browser {
	h, err := console.New(in, opts...)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/operations/inbox", h)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return browser{t, srv.URL + "/operations/inbox"}
}

func (b browser) do(method, query string, form url.Values, edit func(*http.Request)) (*http.Response, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+query, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if edit != nil {
		edit(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp, string(text)
}

func (b browser) get(query string) (int, string) {
	b.t.Helper()
	resp, text := b.do(http.MethodGet, query, nil, nil)
	return resp.StatusCode, text
}

func operator(*http.Request) string { return "ada" }

func TestEveryAnswerIsIsolated(t *testing.T) {
	in := openInbox(t)
	add(t, in, "head", "session", 1)
	b := serve(t, in)
	for _, query := range []string{"", "?view=waiting", "?view=dead", "?view=all", "?view=session&head=head&session=session", "?view=event&sequence=1",
		"?view=none", "?asset=style.css", "?asset=refresh.js", "?asset=page.html"} {
		resp, text := b.do(http.MethodGet, query, nil, nil)
		assert.Equal(t, "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			resp.Header.Get("Content-Security-Policy"), query)
		assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"), query)
		assert.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), query)
		assert.NotContains(t, text, "<style", query)
		assert.NotContains(t, text, "style=", query)
		assert.NotContains(t, strings.ReplaceAll(text, `<script type="module" src="?asset=refresh.js"></script>`, ""), "<script", query)
		assert.NotContains(t, text, canary, query)
	}
	status, _ := b.get("?asset=../console.go")
	assert.Equal(t, http.StatusNotFound, status)
	status, _ = b.get("?asset=page.html")
	assert.Equal(t, http.StatusNotFound, status)
}

func TestForeignHostNamesAreRefused(t *testing.T) {
	in := openInbox(t)
	b := serve(t, in, console.Hosts("Inbox.Example.com"))
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:80": 200, "inbox.example.com": 200, "INBOX.example.com:8443": 200,
		"evil.example": 403, "localhost.evil.example": 403, "x.localhost": 403, "10.0.0.1": 403, "127.0.0.1.evil.example": 403, "other.inbox.example.com": 403,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			resp, _ := b.do(method, "", nil, func(r *http.Request) { r.Host = host })
			if method == http.MethodPost {
				want = 403 // the page is read-only
			}
			assert.Equal(t, want, resp.StatusCode, "%s %s", method, host)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	in := openInbox(t)
	for name, opt := range map[string]console.Option{
		"option": nil, "AllowChanges": console.AllowChanges(nil), "AllowBodies": console.AllowBodies(nil), "Sample": console.Sample(nil), //nolint:staticcheck // refused
		"Audit": console.Audit(nil), "has no name": console.Hosts(),
		`"https://x"`: console.Hosts("https://x"), `"x:80"`: console.Hosts("x:80"), `"x/y"`: console.Hosts("x/y"), `""`: console.Hosts(""), `"x:"`: console.Hosts("x:"),
	} {
		_, err := console.New(in, opt)
		assert.ErrorIs(t, err, heads.ErrInvalid, name)
		assert.ErrorContains(t, err, name)
	}
	_, err := console.New(nil)
	assert.ErrorIs(t, err, heads.ErrInvalid)
}

func TestOnlyAConfirmedPostOfAnAllowedActorChanges(t *testing.T) {
	in := openInbox(t)
	for n := range 3 {
		add(t, in, "head", "session", n)
	}
	bury(t, in, errorOf("no such customer"))
	dead := func() int64 {
		s, err := in.Status(t.Context())
		require.NoError(t, err)
		return s.Dead
	}
	var log bytes.Buffer
	audit := console.Audit(slog.New(slog.NewJSONHandler(&log, nil)))
	form := url.Values{"action": {"redrive"}, "event": {"1", "2", "2"}, "confirmed": {"yes"}}
	unasked := url.Values{"action": {"redrive"}, "event": {"1", "2"}}

	reading := serve(t, in, audit)
	resp, text := reading.do(http.MethodPost, "", form, nil)
	assert.Equal(t, http.StatusForbidden, resp.StatusCode)
	assert.Contains(t, text, "console.AllowChanges")
	_, text = reading.get("?view=dead")
	assert.NotContains(t, text, "checkbox")
	assert.NotContains(t, text, "Redrive")

	nobody := serve(t, in, audit, console.AllowChanges(func(*http.Request) string { return "" }))
	resp, _ = nobody.do(http.MethodPost, "", form, nil)
	assert.Equal(t, http.StatusForbidden, resp.StatusCode)

	b := serve(t, in, audit, console.AllowChanges(operator))
	for name, edit := range map[string]func(*http.Request){
		"another origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"the same site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		resp, _ := b.do(http.MethodPost, "", form, edit)
		assert.Equal(t, http.StatusForbidden, resp.StatusCode, name)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		resp, _ := b.do(method, "?"+form.Encode(), nil, nil)
		assert.Equal(t, map[bool]int{true: 200, false: 405}[method == "GET" || method == "HEAD"], resp.StatusCode, method)
	}
	resp, _ = b.do(http.MethodPost, "?"+form.Encode(), url.Values{}, nil)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode, "the query is no form")
	for name, bad := range map[string]url.Values{
		"unknown": {"action": {"drop"}, "event": {"1"}, "confirmed": {"yes"}}, "selected": {"action": {"redrive"}, "confirmed": {"yes"}},
		"not a number": {"action": {"delete"}, "event": {"1", "x"}, "confirmed": {"yes"}}, "like 17": {"action": {"delete"}, "event": {"-1"}, "confirmed": {"yes"}},
		"at most": {"action": {"delete"}, "event": make([]string, 1001), "confirmed": {"yes"}},
	} {
		resp, text := b.do(http.MethodPost, "", bad, nil)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode, name)
		assert.Contains(t, text, name)
	}
	resp, text = b.do(http.MethodPost, "", unasked, nil)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Contains(t, text, "<h1>Redrive 2 events?</h1>")
	assert.Contains(t, text, ">Redrive 2 events</button>")
	assert.EqualValues(t, 3, dead(), "nothing has changed")
	assert.Empty(t, log.String())

	resp, _ = b.do(http.MethodPost, "", form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") })
	assert.Equal(t, http.StatusSeeOther, resp.StatusCode)
	_, text = b.get(resp.Header.Get("Location"))
	assert.Contains(t, text, `role="status">2 events redriven.<`)
	assert.EqualValues(t, 1, dead())
	assert.Contains(t, log.String(), `"msg":"inbox console: events redriven","actor":"ada","sequences":[1,2],"number":2`)

	_, text = b.do(http.MethodPost, "", url.Values{"action": {"delete"}, "event": {"3"}}, nil)
	assert.Contains(t, text, "<h1>Delete 1 event?</h1>")
	resp, _ = b.do(http.MethodPost, "", url.Values{"action": {"delete"}, "event": {"3"}, "confirmed": {"yes"}}, nil)
	_, text = b.get(resp.Header.Get("Location"))
	assert.Contains(t, text, `role="status">1 event deleted.<`)
	assert.Zero(t, dead())
}

// A message in an address that somebody sends proves nothing.
func TestOnlyWhatThisPageDidIsReported(t *testing.T) {
	b := serve(t, openInbox(t), console.AllowChanges(operator))
	for _, query := range []string{"?view=dead&deleted=7", "?view=dead&redriven=7", "?view=dead&result=7+events+deleted."} {
		_, text := b.get(query)
		assert.NotContains(t, text, `role="status"`, query)
	}
}

func TestBodiesAreShownOnlyToWhomIsAllowed(t *testing.T) {
	in := openInbox(t)
	add(t, in, "head", "session", 1)
	form := url.Values{"action": {"body"}, "event": {"1"}}
	var log bytes.Buffer
	audit := console.Audit(slog.New(slog.NewJSONHandler(&log, nil)))
	nobody := func(*http.Request) string { return "" }
	for name, opts := range map[string][]console.Option{
		"without the option": {audit}, "with another option": {audit, console.AllowChanges(operator)}, "nobody": {audit, console.AllowBodies(nobody)},
	} {
		b := serve(t, in, opts...)
		resp, text := b.do(http.MethodPost, "", form, nil)
		assert.Equal(t, http.StatusForbidden, resp.StatusCode, name)
		assert.NotContains(t, text, canary, name)
	}

	b := serve(t, in, audit, console.AllowBodies(operator))
	_, text := b.get("?view=event&sequence=1&body=1")
	assert.Contains(t, text, "Show body")
	assert.NotContains(t, text, canary, "a link shows none")
	resp, text := b.do(http.MethodPost, "", form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	assert.Equal(t, http.StatusForbidden, resp.StatusCode)
	assert.NotContains(t, text, canary)
	assert.Empty(t, log.String())
	_, text = b.do(http.MethodPost, "", form, nil)
	assert.Contains(t, text, canary)
	assert.Contains(t, log.String(), `"msg":"inbox console: body shown","actor":"ada","sequences":[1],"number":1`)
	assert.NotContains(t, log.String(), canary)
}

func TestHostileTextStaysText(t *testing.T) {
	in := openInbox(t)
	const script = `"><script>alert(1)</script>`
	ids := []string{script, "a\x00b", "\u202etxt", strings.Repeat("x", 4096), "a&b=c#d?e", "'; DROP TABLE x; --", "é"}
	for n, id := range ids {
		add(t, in, id, id, n)
	}
	bury(t, in, errorOf(script))
	b := serve(t, in, console.AllowChanges(operator), console.AllowBodies(operator))
	for _, id := range ids {
		for _, query := range []url.Values{{"view": {"session"}, "head": {id}, "session": {id}}, {"view": {"dead"}, "head": {id}}} {
			status, text := b.get("?" + query.Encode())
			assert.Equal(t, http.StatusOK, status, "%q", id)
			assert.Equal(t, 1, strings.Count(text, `scope="row"`), "%q", id)
			assert.NotContains(t, text, "<script>", "%q", id)
			assert.NotContains(t, text, "\x00", "%q", id)
			if len(id) < 1024 {
				assert.Contains(t, html.UnescapeString(text), url.Values{"session": {id}}.Encode(), "the link leads to the session: %q", id)
			}
		}
	}
	for n := range ids {
		_, text := b.do(http.MethodPost, "", url.Values{"action": {"body"}, "event": {fmt.Sprint(n + 1)}}, nil)
		assert.NotContains(t, text, "<script>")
		assert.NotContains(t, text, "\u202e")
	}
}

func TestBadQueriesAreExplained(t *testing.T) {
	in := openInbox(t)
	add(t, in, "head", "session", 1)
	b := serve(t, in)
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"?view=none":                                    {404, "no such view"},
		"?view=event":                                   {400, "not a number"},
		"?view=event&sequence=x":                        {400, "not a number"},
		"?view=event&sequence=-1":                       {400, "like 17"},
		"?view=event&sequence=2":                        {404, "no event has this sequence"},
		"?view=all&before=x":                            {400, "not a number"},
		"?view=all&before=0":                            {400, "like 17"},
		"?view=all&from=yesterday":                      {400, "field &#34;from&#34;"},
		"?view=all&to=2026-13-01T00:00:00":              {400, "field &#34;to&#34;"},
		"?view=session&head=head":                       {400, "a session id"},
		"?view=session":                                 {400, "a head id"},
		"?view=all&before=99999999999999999999":         {400, "not a number"},
		"?view=all&head=" + strings.Repeat("x", 20_000): {414, "too long"},
	} {
		status, text := b.get(query)
		assert.Equal(t, want.status, status, query)
		assert.Contains(t, text, want.text, query)
		assert.Contains(t, text, `role="alert"`, query)
	}
}

func TestPagesLeadToOlderEvents(t *testing.T) {
	in := openInbox(t)
	for n := range 60 {
		add(t, in, "head", fmt.Sprint("session", n%2), n)
	}
	b := serve(t, in)
	_, text := b.get("?view=waiting&head=head&from=2020-01-01T00:00")
	assert.Equal(t, 50, strings.Count(text, `scope="row"`))
	assert.Contains(t, text, `?before=11&amp;from=2020-01-01T00%3A00&amp;head=head&amp;view=waiting`)
	_, text = b.get("?before=11&head=head&view=waiting")
	assert.Equal(t, 10, strings.Count(text, `scope="row"`))
	assert.NotContains(t, text, "Older")
	_, text = b.get("?view=all&type=start_conversation&session=session1")
	assert.Equal(t, 30, strings.Count(text, `scope="row"`))
	_, text = b.get("?view=all&to=2020-01-01")
	assert.Contains(t, text, "No event.")
	_, text = b.get("?view=session&head=head&session=session1")
	assert.Less(t, strings.Index(text, "sequence=2&"), strings.Index(text, "sequence=60&"), "in the session's order")
}

func TestOverviewShowsNumbers(t *testing.T) {
	in := openInbox(t)
	b := serve(t, in)
	shows := func(name, number string) {
		_, text := b.get("")
		assert.Regexp(t, `<dt><a [^>]*>`+name+`</a></dt><dd>`+number+`</dd>`, text)
	}
	shows("Waiting", "0")
	shows("Oldest waiting", "–")
	for n := range 3 {
		add(t, in, "head", "session", n)
	}
	bury(t, in, errorOf("no"))
	add(t, in, "head", "session", 9)
	shows("Waiting", "1")
	shows("Dead letters", "3")
	shows("Database", "accepts writes")
	shows("Oldest waiting", `\d+s`)
}

// 5,000 dead letters in 40 groups.
func TestDeadLettersAreGroupedByErrorAndRedrivenTogether(t *testing.T) {
	in := openInbox(t)
	var bodies [][]byte
	for n := range 1600 { // 1,210 of them have error <7>, more than one List returns
		head := n % 80
		if n >= 400 {
			head = 7
		}
		bodies = append(bodies, fmt.Appendf(nil, `{"event_type":%q,"timestamp":"2026-08-31 06:56:30.%06d","head_id":"head%d","session_id":"session%d"}`,
			[]string{"start_conversation", "end_conversation"}[n/40%2], n, head, n%50))
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(bodies, 500) {
		all.Go(func() {
			for _, body := range part {
				addBody(t, in, body)
			}
		})
	}
	all.Wait()
	bury(t, in, func(e *heads.Event) error {
		n, err := strconv.Atoi(strings.TrimPrefix(e.HeadID, "head"))
		require.NoError(t, err)
		return fmt.Errorf("error <%d>", n%40)
	})
	var log bytes.Buffer
	b := serve(t, in, console.AllowChanges(operator), console.Audit(slog.New(slog.NewJSONHandler(&log, nil))))
	_, text := b.get("?view=dead")
	groups, _, _ := strings.Cut(text, "<h2>Events</h2>")
	assert.Equal(t, 40, strings.Count(groups, `scope="row"`))
	assert.Equal(t, 40, strings.Count(groups, " events</button>"))
	assert.Regexp(t, `<tr><td>1210</td>.*error &lt;7&gt;.*<td class="free">end_conversation, start_conversation</td><td>2</td><td>20.*Look at event \d+<.*>Redrive 1210 events</button>`, groups)

	query := "?" + url.Values{"view": {"dead"}, "error": {"error <7>"}}.Encode()
	_, text = b.get(query)
	assert.Equal(t, 50, strings.Count(text, `scope="row"`))
	assert.NotContains(t, text, "error &lt;8&gt;")
	assert.Contains(t, text, "Older")

	resp, _ := b.do(http.MethodPost, "", url.Values{"action": {"redrive-group"}, "error": {"error <7>"}}, nil)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	_, text = b.get(resp.Header.Get("Location"))
	assert.Contains(t, text, `role="status">1210 events redriven.<`)
	assert.Contains(t, log.String(), `"number":1210`)
	status, err := in.Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 390, status.Dead)
	assert.EqualValues(t, 1210, status.Pending)
	resp, _ = b.do(http.MethodPost, "", url.Values{"action": {"redrive-group"}}, nil)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

// Nothing that an event holds makes a page large.
func TestPagesOfHugeTextsAreSmall(t *testing.T) {
	in := openInbox(t)
	huge := strings.Repeat("\u202e", 20_000)
	for n := range 50 {
		add(t, in, huge, huge, n)
	}
	bury(t, in, errorOf(huge))
	b := serve(t, in, console.AllowChanges(operator), console.AllowBodies(operator))
	for _, query := range []string{"", "?view=all", "?view=dead", "?view=event&sequence=1"} {
		status, text := b.get(query)
		assert.Equal(t, http.StatusOK, status)
		assert.Less(t, len(text), 1_000_000, query)
	}
	_, text := b.do(http.MethodPost, "", url.Values{"action": {"body"}, "event": {"1"}}, nil)
	assert.Less(t, len(text), 1_000_000)
	assert.Contains(t, text, `\u202e\u202e`)
	entries, _, err := in.List(t.Context(), inbox.Query{HeadID: huge}, "", 0)
	require.NoError(t, err)
	require.Len(t, entries, 50, "the whole id is compared")
	assert.Len(t, entries[0].HeadID, 1024)
	entries, _, err = in.List(t.Context(), inbox.Query{HeadID: huge[:1200]}, "", 0)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestUnavailableDatabaseIsShown(t *testing.T) {
	in := openInbox(t)
	b := serve(t, in)
	require.NoError(t, in.Close(t.Context()))
	status, text := b.get("")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, text, "the inbox is closed")
}
