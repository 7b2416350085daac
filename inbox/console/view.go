package console

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headsapi/heads-go/inbox"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"id": visible, "clipped": clipped, "time": timeText, "events": events}).ParseFS(assets, "assets/page.html"))

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

	Status  inbox.Status
	Waiting string
	Oldest  string // the age of the oldest waiting event
	Late    bool   // that is more than a minute
	Health  string
	Chart   chart

	Groups     []group
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

// group is one row of the dead letters by error.
type group struct {
	inbox.DeadGroup
	Link, Look string // to the list of the group, and to its latest event
	More       int    // types that are not shown
}

// filter has the values of the form as they were sent.
type filter struct{ Head, Session, Type, From, To, Error string }

func eventLink(sequence int64) string {
	return "?" + url.Values{"view": {"event"}, "sequence": {strconv.FormatInt(sequence, 10)}}.Encode()
}

// rowOf links to the session of an event, unless its ids may have been cut.
func rowOf(e inbox.Entry) row {
	r := row{Entry: e, Link: eventLink(e.Sequence)}
	if e.HeadID != "" && e.SessionID != "" && len(e.HeadID) < maxID && len(e.SessionID) < maxID {
		r.SessionLink = "?" + url.Values{"view": {"session"}, "head": {e.HeadID}, "session": {e.SessionID}}.Encode()
	}
	return r
}

const (
	maxBody = 128 << 10 // bytes shown; an EventHandler accepts 64 KiB
	maxID   = 1 << 10   // bytes, as in List
)

func bodyText(raw string) string {
	if raw == "" {
		return "There is no body: it was deleted, or it is not what was stored."
	}
	return escaped(cut(raw, maxBody))
}

// cut returns the first limit bytes of a text.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit]
}

// escaped writes control characters, those that change the direction of a text and others without a
// shape as escapes, except line breaks and tabs.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
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

// events returns "1 event" or "n events".
func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return strconv.Itoa(n) + " events"
}
