package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

const pageLimit = 50

// show writes the tab that the query selects.
func (p *page) show(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := &view{Name: q.Get("view"), Message: p.results.get(q.Get("result"))}
	template := "list"
	err := p.limit.do(r.Context(), func(ctx context.Context) (err error) {
		switch i := slices.IndexFunc(views, func(l listed) bool { return l.Name == v.Name }); {
		case v.Name == "":
			template, err = "overview", p.overview(ctx, v)
		case v.Name == "dead":
			err = p.dead(ctx, v, q)
		case i > 0:
			v.Title = views[i].Heading
			err = p.list(ctx, v, q, views[i].state)
		case v.Name == "session":
			err = p.session(ctx, v, q)
		case v.Name == "event":
			template = "event"
			_, err = p.event(ctx, v, q.Get("sequence"))
		default:
			err = &fault{http.StatusNotFound, "There is no such view."}
		}
		return err
	})
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

func (p *page) overview(ctx context.Context, v *view) error {
	v.Title, v.Health = "Inbox", "accepts writes"
	s, err := p.status(ctx)
	if err != nil {
		return err
	}
	if !s.Healthy {
		v.Health = "refuses writes"
	}
	v.Status = s
	v.Chart = drawn(p.history.minutes(time.Now()))
	v.Waiting = strconv.FormatInt(s.Pending, 10)
	if s.Estimated {
		v.Waiting = "about " + v.Waiting
	}
	v.Oldest = "–"
	if !s.OldestPending.IsZero() {
		age := max(time.Since(s.OldestPending), 0)
		v.Oldest, v.Late = age.Round(time.Second).String(), age > time.Minute
	}
	return nil
}

// dead shows the dead letters, and without a filter their errors first.
func (p *page) dead(ctx context.Context, v *view, q url.Values) error {
	v.Title, v.Changeable = "Dead letters", p.actor != nil
	if err := p.list(ctx, v, q, inbox.StateDead); err != nil || v.Filter != (filter{}) || q.Has("before") {
		return err
	}
	found, err := p.in.DeadGroups(ctx)
	for _, g := range found {
		row := group{DeadGroup: g, Link: "?" + url.Values{"view": {"dead"}, "error": {g.Error}}.Encode(), Look: eventLink(g.Latest)}
		if n := len(row.Types); n > maxTypes {
			row.Types, row.More = row.Types[:maxTypes], n-maxTypes
		}
		v.Groups = append(v.Groups, row)
	}
	return err
}

const maxTypes = 4 // in a row

func (p *page) list(ctx context.Context, v *view, q url.Values, state inbox.State) error {
	v.Filter = filter{q.Get("head"), q.Get("session"), q.Get("type"), q.Get("from"), q.Get("to"), q.Get("error")}
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
	entries, next, err := p.in.List(ctx, query, state, before)
	if err != nil {
		return err
	}
	for _, e := range entries {
		v.Entries = append(v.Entries, rowOf(e))
	}
	if next != 0 {
		older := url.Values{"view": {v.Name}, "before": {strconv.FormatInt(next, 10)}}
		for name, text := range map[string]string{
			"head": v.Filter.Head, "session": v.Filter.Session, "type": v.Filter.Type, "from": v.Filter.From, "to": v.Filter.To, "error": v.Filter.Error,
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
	q := inbox.Query{HeadID: f.Head, SessionID: f.Session, Error: f.Error, Limit: pageLimit}
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

func (p *page) session(ctx context.Context, v *view, q url.Values) error {
	if q.Get("head") == "" || q.Get("session") == "" {
		return &fault{http.StatusBadRequest, "A session has a head id and a session id."}
	}
	v.Title = "Session " + visible(q.Get("session"))
	if err := p.list(ctx, v, q, ""); err != nil {
		return err
	}
	slices.Reverse(v.Entries)
	return nil
}

// event shows one event without its body, which it returns.
func (p *page) event(ctx context.Context, v *view, text string) (*heads.Event, error) {
	sequence, err := sequenceOf(text)
	if err != nil {
		return nil, err
	}
	entry, event, err := p.in.Entry(ctx, sequence)
	if err != nil {
		return nil, err
	}
	for _, id := range []*string{&entry.HeadID, &entry.SessionID, (*string)(&entry.Type), &entry.Error} {
		*id = cut(*id, maxID)
	}
	v.Name, v.Title, v.Entry = "event", fmt.Sprint("Event ", sequence), rowOf(entry)
	v.CanShow, v.Changeable = p.bodyActor != nil, p.actor != nil && entry.State == inbox.StateDead
	return event, nil
}

func sequenceOf(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, &fault{http.StatusBadRequest, "A sequence is not a number: want one like 17."}
	}
	return id, nil
}

// showBody shows an event with its body, and notes who has seen it.
func (p *page) showBody(w http.ResponseWriter, r *http.Request, form url.Values) error {
	actor, err := known(r, p.bodyActor, "AllowBodies")
	if err != nil {
		return err
	}
	v := &view{ShowBody: true}
	err = p.limit.do(r.Context(), func(ctx context.Context) error {
		event, err := p.event(ctx, v, form.Get("event"))
		if err == nil {
			v.Body = bodyText(string(event.Raw.Bytes()))
		}
		return err
	})
	if err != nil {
		return err
	}
	p.note(r, "inbox console: body shown", actor, []int64{v.Entry.Sequence}, 1)
	render(w, http.StatusOK, "event", v)
	return nil
}
