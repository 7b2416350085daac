package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/headsapi/heads-go/inbox"
)

const (
	maxForm  = 1 << 20
	maxGroup = 10000

	redriveGroup = "redrive-group"
)

// changing is an action on dead letters, such as redriving them.
type changing struct {
	verb, done string
	do         func(ctx context.Context, ids ...int64) (int, error)
}

func (p *page) action(name string) (changing, bool) {
	switch name {
	case "redrive", redriveGroup:
		return changing{"Redrive", "redriven", p.in.Redrive}, true
	case "delete":
		return changing{"Delete", "deleted", p.in.DeleteDead}, true
	}
	return changing{}, false
}

// post answers a POST: a change, or a body that is shown.
func (p *page) post(w http.ResponseWriter, r *http.Request) {
	if err := p.origin.Check(r); err != nil {
		p.fail(w, r, &fault{http.StatusForbidden, "The request comes from another site."})
		return
	}
	form, err := readForm(w, r)
	if err == nil && form.Get("action") == "body" {
		err = p.showBody(w, r, form)
	} else if err == nil {
		err = p.change(w, r, form)
	}
	if err != nil {
		p.fail(w, r, err)
	}
}

// change shows a confirmation page before it changes anything. The group of an error is redriven at
// once, since that can be repeated.
func (p *page) change(w http.ResponseWriter, r *http.Request, form url.Values) error {
	actor, err := known(r, p.actor, "AllowChanges")
	if err != nil {
		return err
	}
	action, ok := p.action(form.Get("action"))
	if !ok {
		return &fault{http.StatusBadRequest, "The action is unknown: want redrive, redrive-group, delete or body."}
	}
	var ids []int64
	if form.Get("action") == redriveGroup {
		err = p.limit.do(r.Context(), func(ctx context.Context) error {
			ids, err = p.group(ctx, form.Get("error"))
			return err
		})
	} else {
		ids, err = sequences(form["event"])
	}
	if err != nil {
		return err
	}
	if form.Get("action") != redriveGroup && form.Get("confirmed") != "yes" {
		p.ask(w, form.Get("action"), action, ids)
		return nil
	}
	n, err := action.do(r.Context(), ids...)
	p.note(r, "inbox console: events "+action.done, actor, ids, n)
	if err != nil {
		return fmt.Errorf("%s %s, and then: %w", events(n), action.done, err)
	}
	// Not http.Redirect, which cuts the path before the question mark.
	w.Header().Set("Location", "?"+url.Values{"view": {"dead"}, "result": {p.results.add(events(n) + " " + action.done + ".")}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// group returns the dead letters with an error, at most 10,000.
func (p *page) group(ctx context.Context, text string) (ids []int64, err error) {
	if text == "" {
		return nil, &fault{http.StatusBadRequest, "The error of the group is missing."}
	}
	for before := int64(0); len(ids) < maxGroup; {
		entries, next, err := p.in.List(ctx, inbox.Query{Error: text, Limit: maxEvents}, inbox.StateDead, before)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			ids = append(ids, e.Sequence)
		}
		if next == 0 {
			break
		}
		before = next
	}
	return ids, nil
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

// ask shows the confirmation page.
func (p *page) ask(w http.ResponseWriter, name string, c changing, ids []int64) {
	title := c.verb + " " + events(len(ids))
	render(w, http.StatusOK, "ask", &view{Name: "ask", Title: title + "?", Action: name, Button: title, Sequences: ids})
}
