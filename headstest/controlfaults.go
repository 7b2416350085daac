package headstest

import (
	"net/http"
	"strconv"
	"time"

	heads "github.com/headsapi/heads-go"
)

// faultOfRequests is Fault as JSON.
type faultOfRequests struct {
	Method      string   `json:"method,omitempty"`
	Route       string   `json:"route,omitempty"`
	Times       int      `json:"times,omitempty"` // 0: always
	Status      int      `json:"status,omitempty"`
	Body        string   `json:"body,omitempty"`
	RetryAfter  duration `json:"retryAfter,omitzero"`
	Latency     duration `json:"latency,omitzero"`
	Cut         string   `json:"cut,omitempty"` // before or after the effect
	CutBody     bool     `json:"cutBody,omitempty"`
	AfterEffect bool     `json:"afterEffect,omitempty"`
	Share       float64  `json:"share,omitempty"` // 0: all
}

// faultOfDeliveries is DeliveryFault as JSON.
type faultOfDeliveries struct {
	WebhookID        int64           `json:"webhookId,omitempty"`
	Event            heads.EventType `json:"event,omitempty"`
	Times            int             `json:"times,omitempty"` // 0: always
	Drop             bool            `json:"drop,omitempty"`
	Duplicate        bool            `json:"duplicate,omitempty"`
	Reorder          bool            `json:"reorder,omitempty"`
	Delay            duration        `json:"delay,omitzero"`
	CorruptSignature bool            `json:"corruptSignature,omitempty"`
	Encoding         string          `json:"encoding,omitempty"` // hex or base64
	Age              duration        `json:"age,omitzero"`
	Status           int             `json:"status,omitempty"`
}

// faultsView lists the faults that can still happen, with their numbers.
type faultsView struct {
	Requests   []requestFaultView  `json:"requests"`
	Deliveries []deliveryFaultView `json:"deliveries"`
}

type requestFaultView struct {
	N int `json:"n"`
	faultOfRequests
}

type deliveryFaultView struct {
	N int `json:"n"`
	faultOfDeliveries
}

var cuts = names[CutPoint]{"": CutNone, "before": CutBefore, "after": CutAfter}

var encodings = names[SignatureEncoding]{"": 0, "hex": SignatureHex, "base64": SignatureBase64}

// names has the values of a type by their names in JSON.
type names[T comparable] map[string]T

func (n names[T]) of(value T) string {
	for name, v := range n {
		if v == value {
			return name
		}
	}
	return ""
}

// viewFaults is called under the lock.
func (rn *run) viewFaults() faultsView {
	v := faultsView{Requests: []requestFaultView{}, Deliveries: []deliveryFaultView{}}
	rn.faults.active(func(f Fault, n, times int) {
		v.Requests = append(v.Requests, requestFaultView{n, faultOfRequests{
			Method: f.Method, Route: f.Route, Times: times, Status: f.Status, Body: concealReply(f.Body),
			RetryAfter: duration(f.RetryAfter), Latency: duration(f.Latency), Cut: cuts.of(f.Cut), CutBody: f.CutBody, AfterEffect: f.After,
			Share: f.Share,
		}})
	})
	rn.deliveryFaults.active(func(f DeliveryFault, n, times int) {
		v.Deliveries = append(v.Deliveries, deliveryFaultView{n, faultOfDeliveries{
			WebhookID: f.WebhookID, Event: f.Event, Times: times, Drop: f.Drop, Duplicate: f.Duplicate, Reorder: f.Reorder,
			Delay: duration(f.Delay), CorruptSignature: f.CorruptSignature, Encoding: encodings.of(f.Encoding), Age: duration(f.Age),
			Status: f.Status,
		}})
	})
	return v
}

func (c *control) listFaults(*http.Request) (any, error) {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	return c.emulator.run.viewFaults(), nil
}

func (c *control) addRequestFault(r *http.Request) (any, error) {
	var f faultOfRequests
	if err := decodeBody(r, &f); err != nil {
		return nil, err
	}
	cut, known := cuts[f.Cut]
	switch {
	case !known:
		return nil, refuse(http.StatusBadRequest, "cut must be before or after")
	case f.Times < 0 || f.RetryAfter < 0 || f.Latency < 0:
		return nil, refuse(http.StatusBadRequest, "times, retryAfter and latency must not be below 0")
	}
	added := Fault{
		Method: f.Method, Route: f.Route, Times: f.Times, Status: f.Status, Body: f.Body,
		RetryAfter: time.Duration(f.RetryAfter), Latency: time.Duration(f.Latency), Cut: cut, CutBody: f.CutBody, After: f.AfterEffect,
		Share: f.Share,
	}
	if err := added.Validate(); err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	c.emulator.Inject(added)
	return c.listFaults(r)
}

func (c *control) addDeliveryFault(r *http.Request) (any, error) {
	var f faultOfDeliveries
	if err := decodeBody(r, &f); err != nil {
		return nil, err
	}
	encoding, known := encodings[f.Encoding]
	switch {
	case !known:
		return nil, refuse(http.StatusBadRequest, "encoding must be hex or base64")
	case f.Times < 0 || f.Delay < 0:
		return nil, refuse(http.StatusBadRequest, "times and delay must not be below 0")
	}
	added := DeliveryFault{
		WebhookID: f.WebhookID, Event: f.Event, Times: f.Times, Drop: f.Drop, Duplicate: f.Duplicate, Reorder: f.Reorder,
		Delay: time.Duration(f.Delay), CorruptSignature: f.CorruptSignature, Encoding: encoding, Age: time.Duration(f.Age),
		Status: f.Status,
	}
	if err := added.Validate(); err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	c.emulator.InjectDelivery(added)
	return c.listFaults(r)
}

func (c *control) removeFaults(r *http.Request) (any, error) {
	c.emulator.RemoveFaults()
	return c.listFaults(r)
}

// removeFault removes one fault of either kind.
func (c *control) removeFault(r *http.Request) (any, error) {
	n, _ := strconv.Atoi(r.PathValue("n")) // not a number: 0, which no fault has
	c.emulator.mu.Lock()
	removed := c.emulator.removeFault(c.emulator.run, n)
	c.emulator.mu.Unlock()
	if !removed {
		return nil, refuse(http.StatusNotFound, "there is no fault %q; GET %sfaults lists those that can still happen", r.PathValue("n"), controlPrefix)
	}
	return c.listFaults(r)
}
