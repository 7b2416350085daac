package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"id": visible, "clipped": clipped, "time": timeText}).ParseFS(assets, "assets/page.html"))

var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

func serveAsset(w http.ResponseWriter, name string) bool {
	kind, known := assetTypes[path.Ext(name)]
	text, err := assets.ReadFile("assets/" + path.Base(name))
	if !known || err != nil {
		return false
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text)
	return true
}

// render writes a page. If the template fails, it writes an error and no part of the page.
func render(w http.ResponseWriter, status int, name string, v *view) {
	v.Views = views
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, v); err != nil {
		http.Error(w, "The page can't be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

// listed is a tab of the page that lists events.
type listed struct {
	Name, Heading string
	state         inbox.State
}

var views = []listed{
	{"", "Overview", ""},
	{"waiting", "Waiting", inbox.StateWaiting},
	{"retrying", "Retrying", inbox.StateRetrying},
	{"dead", "Dead letters", inbox.StateDead},
	{"handled", "Handled", inbox.StateHandled},
	{"all", "All events", ""},
}

// view is the data of the template.
type view struct {
	Title, Name string
	Views       []listed
	Message     string // an error, or the result of a change

	Status                  inbox.Status
	Waiting                 string
	Stored, Handled, Health string

	Filter     filter
	Entries    []row
	Changeable bool
	Older      string // the link to the next page
	Searched   int64  // the lowest sequence searched, if the page is not full

	Entry    row
	CanShow  bool
	Body     string
	ShowBody bool

	Action, Button string
	Sequences      []int64
}

// row is one event in a table.
type row struct {
	inbox.Entry
	Link, SessionLink string
}

// filter has the values of the form as they were sent.
type filter struct{ Head, Session, Type, From, To string }

const pageLimit = 50

// show writes the tab that the query selects.
func (p *page) show(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := &view{Name: q.Get("view"), Message: done(q)}
	template := "list"
	var err error
	switch i := slices.IndexFunc(views, func(l listed) bool { return l.Name == v.Name }); {
	case v.Name == "":
		template, err = "overview", p.overview(r, v)
	case i > 0:
		v.Title = views[i].Heading
		v.Changeable = v.Name == "dead" && p.actor != nil
		err = p.list(r, v, q, views[i].state)
	case v.Name == "session":
		err = p.session(r, v, q)
	case v.Name == "event":
		template, err = "event", p.event(r, v, q)
	default:
		err = &fault{http.StatusNotFound, "There is no such view."}
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if template == "overview" && !v.Status.Healthy {
		status = http.StatusServiceUnavailable
	}
	render(w, status, template, v)
}

// done returns the message after a change.
func done(q url.Values) string {
	for _, what := range []string{"redriven", "deleted"} {
		if n, err := strconv.Atoi(q.Get(what)); err == nil && n >= 0 {
			return events(n) + " " + what + "."
		}
	}
	return ""
}

func (p *page) overview(r *http.Request, v *view) error {
	v.Title, v.Health = "Inbox", "accepts writes"
	s, err := p.in.Status(r.Context())
	if err != nil {
		return err
	}
	if !s.Healthy {
		v.Health = "refuses writes"
	}
	latest, _, err := p.in.List(r.Context(), inbox.Query{Limit: 1}, "", 0)
	if err != nil {
		return err
	}
	now := sample{at: time.Now(), open: s.Pending + s.Dead, estimated: s.Estimated}
	if len(latest) > 0 {
		now.sequence = latest[0].Sequence
	}
	v.Status = s
	v.Stored, v.Handled = p.rates.add(now)
	v.Waiting = strconv.FormatInt(s.Pending, 10)
	if s.Estimated {
		v.Waiting = "about " + v.Waiting
	}
	return nil
}

func (p *page) list(r *http.Request, v *view, q url.Values, state inbox.State) error {
	v.Filter = filter{q.Get("head"), q.Get("session"), q.Get("type"), q.Get("from"), q.Get("to")}
	query, err := v.Filter.query()
	if err != nil {
		return err
	}
	var before int64
	if text := q.Get("before"); text != "" {
		if before, err = sequenceOf(text); err != nil {
			return err
		}
	}
	entries, next, err := p.in.List(r.Context(), query, state, before)
	if err != nil {
		return err
	}
	for _, e := range entries {
		v.Entries = append(v.Entries, rowOf(e))
	}
	if next != 0 {
		older := url.Values{"view": {v.Name}, "before": {strconv.FormatInt(next, 10)}}
		for name, text := range map[string]string{
			"head": v.Filter.Head, "session": v.Filter.Session, "type": v.Filter.Type, "from": v.Filter.From, "to": v.Filter.To,
		} {
			if text != "" {
				older.Set(name, text)
			}
		}
		v.Older = "?" + older.Encode()
		if len(entries) < pageLimit {
			v.Searched = next
		}
	}
	return nil
}

func (f filter) query() (inbox.Query, error) {
	q := inbox.Query{HeadID: f.Head, SessionID: f.Session, Limit: pageLimit}
	if f.Type != "" {
		q.Types = []heads.EventType{heads.EventType(f.Type)}
	}
	var err error
	if q.From, err = timeIn("from", f.From); err == nil {
		q.To, err = timeIn("to", f.To)
	}
	return q, err
}

// timeIn parses a time in the format of a datetime-local input or in RFC 3339.
func timeIn(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &fault{http.StatusBadRequest, "The time in the field \"" + name + "\" can't be read: want one like 2026-08-31T06:56:30, in UTC."}
}

func (p *page) session(r *http.Request, v *view, q url.Values) error {
	if q.Get("head") == "" || q.Get("session") == "" {
		return &fault{http.StatusBadRequest, "A session has a head id and a session id."}
	}
	v.Title = "Session " + visible(q.Get("session"))
	if err := p.list(r, v, q, ""); err != nil {
		return err
	}
	slices.Reverse(v.Entries)
	return nil
}

func (p *page) event(r *http.Request, v *view, q url.Values) error {
	sequence, err := sequenceOf(q.Get("sequence"))
	if err != nil {
		return err
	}
	entry, event, err := p.in.Entry(r.Context(), sequence)
	if err != nil {
		return err
	}
	v.Title, v.Entry = fmt.Sprint("Event ", sequence), rowOf(entry)
	v.CanShow, v.Changeable = p.bodies, p.actor != nil && entry.State == inbox.StateDead
	if q.Get("body") == "" {
		return nil
	}
	if !p.bodies {
		return &fault{http.StatusForbidden, "This page shows no bodies. Its operator can allow it with console.AllowBodies."}
	}
	v.ShowBody, v.Body = true, bodyText(string(event.Raw.Bytes()))
	actor := ""
	if p.actor != nil {
		actor = p.actor(r)
	}
	p.note(r, "inbox console: body shown", actor, []int64{sequence}, 1)
	return nil
}

func bodyText(raw string) string {
	if raw == "" {
		return "There is no body: it was deleted, or it is not what was stored."
	}
	return strings.ToValidUTF8(raw, "\uFFFD")
}

func rowOf(e inbox.Entry) row {
	r := row{Entry: e, Link: "?" + url.Values{"view": {"event"}, "sequence": {strconv.FormatInt(e.Sequence, 10)}}.Encode()}
	if e.HeadID != "" && e.SessionID != "" {
		r.SessionLink = "?" + url.Values{"view": {"session"}, "head": {e.HeadID}, "session": {e.SessionID}}.Encode()
	}
	return r
}

// visible quotes an id that has control characters or invalid UTF-8.
func visible(id string) string {
	if id == "" || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(id)
	}
	return id
}

const maxShown = 60 // characters of an id in a table

func clipped(id string) string {
	if id == "" {
		return ""
	}
	text := []rune(visible(id))
	if len(text) <= maxShown {
		return string(text)
	}
	return string(text[:maxShown]) + "…"
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format(time.DateTime)
}
