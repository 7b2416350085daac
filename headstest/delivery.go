package headstest

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
)

// maxReply is how much of a receiver's answer is read.
const maxReply = 4 << 10

// The Err of a delivery if the emulator gives up an event without an answer.
var (
	ErrDropped = errors.New("headstest: dropped by a fault")
	ErrRemoved = errors.New("headstest: the registration was removed")
	ErrClosed  = errors.New("headstest: the emulator was reset or closed")
	ErrBacklog = errors.New("headstest: too many events wait for this receiver")
)

// Delivery is one attempt to deliver an event. The attempt succeeded if Status is
// 2xx and Err is nil. Header and Body are as sent, with the signature. They are
// shared with the journal and must not be changed.
type Delivery struct {
	ID              int // counts the attempts from 1, and from 1 again after a Reset
	WebhookID       int64
	URL             string
	Attempt, Status int // Attempt: 1 for the first, 0 if none was made. Status: 0 without an answer
	Event           heads.Event
	Body            []byte
	Err             error
	Duration        time.Duration
	Final           bool // no further attempt follows

	Header  http.Header
	Reply   []byte // the first 4 KiB of the receiver's answer
	RetryIn time.Duration
	At      time.Time

	eventID int // the id of the entry in the log of the session
}

// queue has the events that wait for delivery to one webhook. While it is not empty, one
// goroutine delivers them, so they arrive in their order.
type queue struct {
	jobs    []job
	held    []job // by a fault, until the next event
	working bool
}

// job is one event for one webhook, both as they were when the event occurred.
type job struct {
	webhookID int64
	url       string
	event     heads.Event
	body      []byte
	signature string
	delay     time.Duration
	eventID   int
}

// notSent is the Reply of an attempt that a fault has answered.
const notSent = "A fault answered this attempt. Nothing was sent."

func (d Delivery) answered() bool { return d.Err == nil && d.Status/100 == 2 }

func (j job) delivery() Delivery {
	return Delivery{
		WebhookID: j.webhookID, URL: j.url, Event: j.event, Body: j.body, At: time.Now(), eventID: j.eventID,
		Header: http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"headstest"}, signatureHeader: {j.signature},
		},
	}
}

// corrupt changes one character of a signature. The encoding is still valid.
func corrupt(signature string) string {
	b := bytes.Clone([]byte(signature))
	if b[0] == '1' {
		b[0] = '0'
	} else {
		b[0] = '1'
	}
	return string(b)
}
