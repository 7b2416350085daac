package headstest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
)

// remoteAddr is an address reserved for documentation.
const remoteAddr = "192.0.2.1:1234"

// NewEventRequest returns a signed delivery of an event. It can be sent by an
// http.Client or passed to a handler, like a request of a server. The body is
// e.Raw if that is set; otherwise it is encoded from the other fields. An event
// without a timestamp has the current time. Times are written as in "2026-08-31 06:56:30",
// in UTC, which is the form of the one real sample; Timestamp.Text overrides that.
// NewEventRequest panics if the URL is malformed.
//
// The body can be read only once. Make a new request for each delivery.
func NewEventRequest(url string, e heads.Event, sharedKey string) *http.Request {
	body := e.Raw.Bytes()
	if body == nil {
		body = eventBody(e, eventTime)
	}
	req, err := eventRequest(url, body, sign(body, sharedKey, SignatureHex))
	if err != nil {
		panic("headstest: the URL of an event request: " + withoutURL(err).Error())
	}
	req.RemoteAddr = remoteAddr // for a handler; a client ignores it
	return req
}

func eventRequest(url string, body []byte, signature string) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "headstest")
	req.Header.Set(signatureHeader, signature)
	return req, nil
}

// eventBody writes the payload of an event.
func eventBody(e heads.Event, layout string) []byte {
	stamp := e.Timestamp.Text
	if stamp == "" {
		at := e.Timestamp.Time
		if at.IsZero() {
			at = time.Now()
		}
		stamp = at.UTC().Format(layout)
	}
	body, _ := json.Marshal(struct {
		Timestamp    string `json:"timestamp"`
		HeadID       string `json:"head_id"`
		SessionID    string `json:"session_id"`
		PublicHeadID string `json:"public_head_id"`
		PublicOrgID  string `json:"public_org_id"`
		EventType    string `json:"event_type"`
	}{stamp, e.HeadID, e.SessionID, e.PublicHeadID, e.PublicOrgID, string(e.Type)}) // can't fail
	return body
}
