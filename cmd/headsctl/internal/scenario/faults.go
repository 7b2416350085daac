package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

// The keys of a fault are those of the emulator's control API in snake_case.
var (
	requestFaultKeys  = []string{"request", "times", "status", "body", "retry_after", "latency", "cut", "cut_body", "after_effect", "share"}
	deliveryFaultKeys = []string{"event", "times", "webhook_id", "drop", "duplicate", "reorder", "delay", "corrupt_signature", "encoding", "age"}
)

// checkFault returns the faults of a fault as it stands in a file.
func checkFault(v *yamltext.Value) []error {
	if v.Kind == yamltext.Text {
		if v.Text == "clear" {
			return nil
		}
		return []error{v.Errorf("%q is no fault%s; write clear, {request: …} or {event: …}", shown(v.Text), similar.Hint(v.Text, []string{"clear"}))}
	}
	if err := v.Want(yamltext.Object); err != nil {
		return []error{err}
	}
	_, _, err := readFault(v)
	return splitJoined(err)
}

func splitJoined(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// readFault reads a fault of requests or of deliveries; the other one is nil.
func readFault(v *yamltext.Value) (*headstest.Fault, *headstest.DeliveryFault, error) {
	f := faultReader{object: v}
	switch request, event := v.Get("request"), v.Get("event"); {
	case request != nil && event != nil:
		return nil, nil, v.Errorf("a fault is one of a request or one of an event; make two steps")
	case request != nil:
		fault := f.ofRequest(request)
		return fault, nil, errors.Join(f.faults...)
	case event != nil:
		fault := f.ofEvent(event)
		return nil, fault, errors.Join(f.faults...)
	}
	return nil, nil, v.Errorf("the fault has neither request nor event; write request: PUT /head/update, or event: start_conversation")
}

// faultReader reads the members of a fault.
type faultReader struct {
	object *yamltext.Value
	faults []error
}

func (f *faultReader) fault(err error) {
	if err != nil {
		f.faults = append(f.faults, err)
	}
}

func (f *faultReader) keys(known []string) {
	for _, m := range f.object.Members {
		if !slices.Contains(known, m.Key) {
			f.fault(&yamltext.Error{Line: m.Line, Column: m.Column, Text: fmt.Sprintf("unknown key %q%s; the keys here are %s", shown(m.Key), similar.Hint(m.Key, known), strings.Join(known, ", "))})
		}
	}
}

func (f *faultReader) ofRequest(request *yamltext.Value) *headstest.Fault {
	f.keys(requestFaultKeys)
	fault := &headstest.Fault{
		Times: f.times(), Status: f.integer("status"), Body: f.body(), RetryAfter: f.duration("retry_after", false), Latency: f.duration("latency", false),
		CutBody: f.bool("cut_body"), After: f.bool("after_effect"), Share: f.share(),
	}
	switch f.word("cut", "before", "after") {
	case "before":
		fault.Cut = headstest.CutBefore
	case "after":
		fault.Cut = headstest.CutAfter
	}
	if err := request.Want(yamltext.Text); err != nil {
		f.fault(err)
		return fault
	}
	if request.Text != "any" {
		fault.Method, fault.Route, _ = strings.Cut(request.Text, " ")
		if err := checkRoute(request, request.Text); err != nil {
			f.fault(err)
			return fault
		}
	}
	if hasReference(fault.Route) {
		return fault
	}
	if err := fault.Validate(); err != nil {
		f.fault(f.object.Errorf("%v", err))
	}
	return fault
}

func (f *faultReader) ofEvent(event *yamltext.Value) *headstest.DeliveryFault {
	f.keys(deliveryFaultKeys)
	fault := &headstest.DeliveryFault{
		Times: f.times(), WebhookID: int64(f.integer("webhook_id")), Drop: f.bool("drop"), Duplicate: f.bool("duplicate"), Reorder: f.bool("reorder"),
		Delay: f.duration("delay", false), CorruptSignature: f.bool("corrupt_signature"), Age: f.duration("age", true),
	}
	switch f.word("encoding", "hex", "base64") {
	case "hex":
		fault.Encoding = headstest.SignatureHex
	case "base64":
		fault.Encoding = headstest.SignatureBase64
	}
	switch err := event.Want(yamltext.Text); {
	case err != nil:
		f.fault(err)
	case event.Text == "any" || hasReference(event.Text):
	case !slices.Contains(eventTypes, event.Text):
		f.fault(event.Errorf("%q is no event%s; use any or one of %s", shown(event.Text), similar.Hint(event.Text, eventTypes), strings.Join(eventTypes, ", ")))
	default:
		fault.Event = heads.EventType(event.Text)
	}
	return fault
}

// times is once, unless another number or all is given.
func (f *faultReader) times() int {
	v := f.object.Get("times")
	if !given(v) {
		return 1
	}
	if v.Kind == yamltext.Text && v.Text == "all" {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 1 || v.Kind != yamltext.Number {
		f.fault(v.Errorf("want how often, 1 or more, or all"))
	}
	return n
}

func (f *faultReader) integer(key string) int {
	v := f.object.Get(key)
	if !given(v) {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 0 || v.Kind != yamltext.Number {
		f.fault(v.Errorf("%s wants a whole number", key))
	}
	return n
}

// share is a number from 0 to 1.
func (f *faultReader) share() float64 {
	v := f.object.Get("share")
	if !given(v) {
		return 0
	}
	share, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || v.Kind != yamltext.Number || !(share > 0 && share <= 1) {
		f.fault(v.Errorf("share wants a number above 0 and at most 1, such as 0.5 for every second request"))
	}
	return share
}

func (f *faultReader) bool(key string) bool {
	v := f.object.Get(key)
	if !given(v) {
		return false
	}
	f.fault(v.Want(yamltext.Bool))
	return isTrue(v)
}

// body is a text, or JSON for anything else.
func (f *faultReader) body() string {
	v := f.object.Get("body")
	if !given(v) || v.Kind == yamltext.Text {
		return textOr(v)
	}
	document, err := v.AppendJSON(nil)
	f.fault(err)
	return string(document)
}

func (f *faultReader) duration(key string, negative bool) time.Duration {
	v := f.object.Get(key)
	if !given(v) {
		return 0
	}
	if hasReference(v.Text) {
		return 0
	}
	d, err := time.ParseDuration(v.Text)
	if err != nil || d < 0 && !negative {
		f.fault(v.Errorf("%q is not a duration; write one such as 250ms, 2s or 1m", shown(v.Text)))
	}
	return d
}

func (f *faultReader) word(key string, words ...string) string {
	v := f.object.Get(key)
	if !given(v) {
		return ""
	}
	if !slices.Contains(words, v.Text) {
		f.fault(v.Errorf("%q is unknown%s; use one of %s", shown(v.Text), similar.Hint(v.Text, words), strings.Join(words, ", ")))
	}
	return v.Text
}
