package headstest

import (
	"cmp"
	"context"
	"crypto/hmac"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
)

// maxWait is the longest wait for a delivery to list.
const maxWait = time.Minute

// deliveryRow is one attempt in a list. It shows only the receiver's scheme and
// host, since a path or query may hold a secret.
type deliveryRow struct {
	ID        int       `json:"id"`
	WebhookID int64     `json:"webhookId"`
	Receiver  string    `json:"receiver"`
	Event     string    `json:"event"`
	EventID   int       `json:"eventId"` // the same for all attempts of one event
	HeadID    string    `json:"headId"`
	SessionID string    `json:"sessionId"`
	Attempt   int       `json:"attempt"` // 0 if none was made
	Status    int       `json:"status"`  // 0 without an answer
	Error     string    `json:"error"`
	Final     bool      `json:"final"` // no further attempt follows
	RetryIn   duration  `json:"retryIn"`
	Took      duration  `json:"took"`
	At        time.Time `json:"at"`
}

// deliveryView is one attempt in full.
type deliveryView struct {
	deliveryRow
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Reply     string            `json:"reply"`     // the first 4 KiB of the receiver's answer
	Signature string            `json:"signature"` // right, wrong, or unknown without the webhook
}

func rowOfDelivery(d Delivery) deliveryRow {
	row := deliveryRow{
		ID: d.ID, WebhookID: d.WebhookID, Receiver: origin(d.URL), Event: string(d.Event.Type), EventID: d.eventID,
		HeadID: d.Event.HeadID, SessionID: d.Event.SessionID, Attempt: d.Attempt, Status: d.Status, Final: d.Final,
		RetryIn: duration(d.RetryIn), Took: duration(d.Duration), At: d.At.UTC(),
	}
	if d.Err != nil {
		row.Error = d.Err.Error()
	}
	return row
}

func (c *control) viewDelivery(d Delivery) deliveryView {
	v := deliveryView{
		deliveryRow: rowOfDelivery(d), Headers: map[string]string{}, Body: string(d.Body),
		Reply: concealReply(string(d.Reply)), Signature: c.checkSignature(d),
	}
	for name := range d.Header {
		v.Headers[name] = d.Header.Get(name)
	}
	return v
}

// checkSignature checks the signature as a receiver with the webhook's key does.
func (c *control) checkSignature(d Delivery) string {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	w, ok := c.emulator.run.webhooks[d.WebhookID]
	if !ok {
		return "unknown"
	}
	for _, encoding := range []SignatureEncoding{SignatureHex, SignatureBase64} {
		if hmac.Equal([]byte(d.Header.Get(signatureHeader)), []byte(sign(d.Body, w.sharedKey, encoding))) {
			return "right"
		}
	}
	return "wrong"
}

// deliveryFilter selects the deliveries that a query asks for.
type deliveryFilter struct {
	webhookID int64
	event     heads.EventType
	headID    string
	sessionID string
	outcome   string
	final     bool
	wait      time.Duration
	page
}

func (f *deliveryFilter) matches(d Delivery) bool {
	return (f.webhookID == 0 || f.webhookID == d.WebhookID) &&
		(f.event == "" || f.event == d.Event.Type) &&
		(f.headID == "" || f.headID == d.Event.HeadID) &&
		(f.sessionID == "" || f.sessionID == d.Event.SessionID) &&
		(f.outcome == "" || (f.outcome == "delivered") == d.answered()) &&
		(!f.final || d.Final)
}

// filterOf refuses unknown keys, since a misspelt key would match everything.
func filterOf(r *http.Request) (f deliveryFilter, err error) {
	for key, values := range r.URL.Query() {
		if bad := f.set(key, values[len(values)-1]); bad != nil {
			return f, refuse(http.StatusBadRequest, "the query takes webhookId, event, headId, sessionId, outcome=delivered or outcome=failed, final=true, "+
				"before and limit above 0, and wait up to %v as in wait=5s; %s is not right", maxWait, key)
		}
	}
	return f, nil
}

func (f *deliveryFilter) set(key, value string) (err error) {
	switch key {
	case "webhookId":
		f.webhookID, err = strconv.ParseInt(value, 10, 64)
	case "event":
		f.event = heads.EventType(value)
	case "headId":
		f.headID = value
	case "sessionId":
		f.sessionID = value
	case "outcome":
		if f.outcome = value; value != "delivered" && value != "failed" {
			err = errQuery
		}
	case "final":
		f.final, err = strconv.ParseBool(value)
	case "wait":
		if f.wait, err = time.ParseDuration(value); f.wait < 0 || f.wait > maxWait {
			err = errQuery
		}
	default:
		err = f.page.set(key, value)
	}
	return err
}

// listDeliveries returns the attempts of the journal that match, oldest first. With
// wait, it waits for the first one.
func (c *control) listDeliveries(r *http.Request) (any, error) {
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	if f.wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), f.wait)
		defer cancel()
		_, _ = c.emulator.WaitDelivery(ctx, f.matches) // without one, the list is empty
	}
	list := []deliveryView{}
	c.emulator.mu.Lock()
	found := c.emulator.run.deliveries.newest(f.before, cmp.Or(f.limit, c.emulator.cfg.journalSize), f.matches)
	c.emulator.mu.Unlock()
	for _, d := range found {
		list = append(list, c.viewDelivery(d))
	}
	return list, nil
}

func (c *control) findDelivery(r *http.Request) (Delivery, error) {
	return find(c.emulator.core, func(rn *run) *journal[Delivery] { return &rn.deliveries }, r.PathValue("id"), "delivery")
}

func (c *control) getDelivery(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	if err != nil {
		return nil, err
	}
	return c.viewDelivery(d), nil
}

// getDeliveryBody returns the bytes that were signed.
func (c *control) getDeliveryBody(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	return rawJSON(d.Body), err
}

// resend sends the event of an attempt once more, after the events in the queue.
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

// copied is a text for the clipboard.
type copied struct {
	Text string `json:"text"`
}

// getDeliveryCurl returns a command that sends the same request. It holds the whole
// URL of the receiver, which may hold a secret.
func (c *control) getDeliveryCurl(r *http.Request) (any, error) {
	if err := admitSecret(r); err != nil {
		return nil, err
	}
	d, err := c.findDelivery(r)
	if err != nil {
		return nil, err
	}
	return copied{"curl -sS -H 'Content-Type: application/json' -H " + shellQuote(signatureHeader+": "+d.Header.Get(signatureHeader)) +
		" --data-binary " + shellQuote(string(d.Body)) + " " + shellQuote(d.URL)}, nil
}

// shellQuote quotes any text as one word.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// getDeliveryTest returns a test that delivers the same body to a handler.
func (c *control) getDeliveryTest(r *http.Request) (any, error) {
	d, err := c.findDelivery(r)
	if err != nil {
		return nil, err
	}
	return copied{fmt.Sprintf(goTest, string(d.Event.Type), strconv.Quote(string(d.Body)))}, nil
}

// goTest signs with its own key, so it holds no secret.
const goTest = `package receiver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// A delivery of %s, as the emulator sent it.
func TestDelivery(t *testing.T) {
	const sharedKey = "a key of the test"
	handler, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), func(_ context.Context, e *heads.Event) error {
		return nil // what your program does with the event
	})
	if err != nil {
		t.Fatal(err)
	}
	event := heads.Event{Raw: heads.NewRaw([]byte(%s))}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.test/events", event, sharedKey))
	if answer.Code != http.StatusOK {
		t.Errorf("the handler answered %%d: %%s", answer.Code, answer.Body)
	}
}
`
