package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

const (
	maxForm   = 1 << 20
	maxEvents = 1000 // in one request
)

// changing is an action on dead letters, such as redriving them.
type changing struct {
	verb, done string
	do         func(ctx context.Context, ids ...int64) (int, error)
}

func (p *page) action(name string) (changing, bool) {
	switch name {
	case "redrive":
		return changing{"Redrive", "redriven", p.in.Redrive}, true
	case "delete":
		return changing{"Delete", "deleted", p.in.DeleteDead}, true
	}
	return changing{}, false
}

// change answers a POST. It shows a confirmation page before it changes anything.
func (p *page) change(w http.ResponseWriter, r *http.Request) {
	if err := p.origin.Check(r); err != nil {
		p.fail(w, r, &fault{http.StatusForbidden, "The request comes from another site."})
		return
	}
	if p.actor == nil {
		p.fail(w, r, &fault{http.StatusForbidden, "This page only reads. Its operator can allow changes with console.AllowChanges."})
		return
	}
	actor := p.actor(r)
	if actor == "" {
		p.fail(w, r, &fault{http.StatusForbidden, "It is not known who asks for the change. The login in front of this page must tell."})
		return
	}
	form, err := readForm(w, r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	action, known := p.action(form.Get("action"))
	if !known {
		p.fail(w, r, &fault{http.StatusBadRequest, "The action is unknown: want redrive or delete."})
		return
	}
	ids, err := sequences(form["event"])
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if form.Get("confirmed") != "yes" {
		p.ask(w, form.Get("action"), action, ids)
		return
	}
	n, err := action.do(r.Context(), ids...)
	p.note(r, "inbox console: events "+action.done, actor, ids, n)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	// Not http.Redirect, which cuts the path before the question mark.
	w.Header().Set("Location", "?"+url.Values{"view": {"dead"}, action.done: {strconv.Itoa(n)}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, &fault{http.StatusBadRequest, "The form can't be read."}
	}
	return r.PostForm, nil
}

// sequences returns the numbers sorted, without duplicates.
func sequences(texts []string) ([]int64, error) {
	if len(texts) == 0 {
		return nil, &fault{http.StatusBadRequest, "No event is selected. Select at least one."}
	}
	if len(texts) > maxEvents {
		return nil, &fault{http.StatusBadRequest, "Too many events are selected: at most 1,000 can be changed at once."}
	}
	ids := make([]int64, len(texts))
	for i, text := range texts {
		id, err := sequenceOf(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func sequenceOf(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, &fault{http.StatusBadRequest, "A sequence is not a number: want one like 17."}
	}
	return id, nil
}

// ask shows the confirmation page.
func (p *page) ask(w http.ResponseWriter, name string, c changing, ids []int64) {
	title := c.verb + " " + events(len(ids))
	render(w, http.StatusOK, "ask", &view{Name: "ask", Title: title + "?", Action: name, Button: title, Sequences: ids})
}

// note writes a line of the audit log.
func (p *page) note(r *http.Request, what, actor string, ids []int64, n int) {
	if p.audit != nil {
		p.audit.LogAttrs(r.Context(), slog.LevelInfo, what, slog.String("actor", actor), slog.Any("sequences", ids), slog.Int("number", n))
	}
}

// events returns "1 event" or "n events".
func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return strconv.Itoa(n) + " events"
}
