package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// maxWait bounds how long a list of deliveries is waited for.
const maxWait = time.Minute

// deliveryView is one attempt. It shows the receiver's scheme and host alone,
// since a path or query may hold a secret.
type deliveryView struct {
	ID        int               `json:"id"`
	WebhookID int64             `json:"webhookId"`
	Receiver  string            `json:"receiver"`
	Event     string            `json:"event"`
	HeadID    string            `json:"headId"`
	SessionID string            `json:"sessionId"`
	Attempt   int               `json:"attempt"` // 0 when none was made
	Status    int               `json:"status"`  // 0 when no answer came
	Error     string            `json:"error"`
	Final     bool              `json:"final"` // no further attempt follows
	RetryIn   duration          `json:"retryIn"`
	Took      duration          `json:"took"`
	At        time.Time         `json:"at"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Reply     string            `json:"reply"` // the first 4 KiB of the receiver's answer
}

func viewDelivery(d headstest.Delivery) deliveryView {
	v := deliveryView{
		ID: d.ID, WebhookID: d.WebhookID, Receiver: origin(d.URL),
		Event: string(d.Event.Type), HeadID: d.Event.HeadID, SessionID: d.Event.SessionID,
		Attempt: d.Attempt, Status: d.Status, Final: d.Final, RetryIn: duration(d.RetryIn), Took: duration(d.Duration),
		At: d.At.UTC(), Headers: map[string]string{}, Body: string(d.Body), Reply: string(d.Reply),
	}
	if d.Err != nil {
		v.Error = d.Err.Error()
	}
	for name := range d.Header {
		v.Headers[name] = d.Header.Get(name)
	}
	return v
}

// deliveryFilter is what a query asks for.
type deliveryFilter struct {
	webhookID int64
	event     heads.EventType
	sessionID string
	final     bool
	wait      time.Duration
}

func (f deliveryFilter) matches(d headstest.Delivery) bool {
	return (f.webhookID == 0 || f.webhookID == d.WebhookID) &&
		(f.event == "" || f.event == d.Event.Type) &&
		(f.sessionID == "" || f.sessionID == d.Event.SessionID) &&
		(!f.final || d.Final)
}

// filterOf refuses a key that it does not know, since a misspelt one would
// match everything.
func filterOf(r *http.Request) (f deliveryFilter, err error) {
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		var bad error
		switch key {
		case "webhookId":
			f.webhookID, bad = strconv.ParseInt(value, 10, 64)
		case "event":
			f.event = heads.EventType(value)
		case "sessionId":
			f.sessionID = value
		case "final":
			f.final, bad = strconv.ParseBool(value)
		case "wait":
			f.wait, bad = time.ParseDuration(value)
		default:
			bad = errors.New("unknown")
		}
		if bad != nil || f.wait < 0 || f.wait > maxWait {
			return f, refuse(http.StatusBadRequest, "the query takes webhookId, event, sessionId, final=true, and wait up to %v as in wait=5s; %s is not right", maxWait, key)
		}
	}
	return f, nil
}

// listDeliveries shows the attempts of the journal that match, oldest first.
// With wait it waits for the first one.
func (c *control) listDeliveries(r *http.Request) (any, error) {
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	if f.wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), f.wait)
		defer cancel()
		_, _ = c.emulator.WaitDelivery(ctx, f.matches) // that none came shows in the list
	}
	list := []deliveryView{}
	for _, d := range c.emulator.Deliveries() {
		if f.matches(d) {
			list = append(list, viewDelivery(d))
		}
	}
	return list, nil
}

func (c *control) findDelivery(r *http.Request) (headstest.Delivery, error) {
	for _, d := range c.emulator.Deliveries() {
		if strconv.Itoa(d.ID) == r.PathValue("id") {
			return d, nil
		}
	}
	return headstest.Delivery{}, refuse(http.StatusNotFound, "the journal holds no delivery %q", r.PathValue("id"))
}

func (c *control) getDelivery(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	return viewDelivery(d), err
}

// getDeliveryBody answers the bytes that were signed.
func (c *control) getDeliveryBody(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	return rawJSON(d.Body), err
}

// resend sends the event of an attempt once more, behind what waits.
func (c *control) resend(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	if err != nil {
		return nil, err
	}
	if err := c.emulator.Redeliver(d); err != nil {
		return nil, err
	}
	return map[string]int{"resent": d.ID}, nil
}
