package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/forward"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// How long the service waits for the answer to an event, and a head for that of a tool.
const (
	eventTimeout = 5 * time.Second
	toolTimeout  = 30 * time.Second
)

// Run sends entries.
type Run struct {
	Target *forward.Target
	Token  string                                           // fills what was redacted in paths
	Speed  float64                                          // of the waits between the entries as they arrived; 0 is without waits
	Load   func(*recording.Entry) (*recording.Entry, error) // its headers and bodies
	Signer *Signer                                          // nil to send events as they were recorded
	Report func(Result)
}

// The outcomes of a Result.
const (
	OutcomeAccepted = "accepted"
	OutcomeRefused  = "refused"
)

// Result tells how an entry was answered.
type Result struct {
	Kind           string `json:"kind"` // event or tool
	ID             string `json:"id"`
	Name           string `json:"name"`
	HeadID         string `json:"head_id"`
	SessionID      string `json:"session_id"`
	Outcome        string `json:"outcome"`
	Status         int    `json:"status"`          // 0 without an answer
	RecordedStatus int    `json:"recorded_status"` // 0 if none is known
	DurationMS     int64  `json:"duration_ms"`
	Problem        string `json:"problem,omitempty"` // why it was refused, unless the status says so
}

// Send sends the entries in their order, each after the answer to the one before it. It
// returns an error when the context ends or an entry can't be loaded.
func (r *Run) Send(ctx context.Context, entries []*recording.Entry) error {
	started := time.Now()
	for _, e := range entries {
		if r.Speed > 0 {
			due := time.Duration(float64(e.At.Sub(entries[0].At)) / r.Speed)
			if err := pause(ctx, due-time.Since(started)); err != nil {
				return err
			}
		}
		loaded, err := r.Load(e)
		if err != nil {
			return err
		}
		result, err := r.send(ctx, loaded)
		if err != nil {
			return err
		}
		r.Report(result)
	}
	return nil
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Run) send(ctx context.Context, e *recording.Entry) (Result, error) {
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	body, timeout := []byte(e.Body), toolTimeout
	result := Result{Kind: "tool", ID: e.ID, Name: e.Name(), HeadID: e.HeadID, SessionID: e.SessionID, RecordedStatus: e.Status()}
	if e.Type == recording.KindEvent {
		result.Kind, timeout = "event", eventTimeout
		if r.Signer != nil {
			signed, signature, err := r.Signer.Sign(e, time.Now())
			if err != nil {
				return result, err
			}
			body = signed
			header.Set(heads.SignatureHeader, signature)
		}
	}
	answer, err := r.Target.Send(ctx, recording.Fill(e.Path, r.Token), header, body, timeout)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	result.Status, result.DurationMS = answer.Status, answer.DurationMS
	switch {
	case err != nil:
		result.Problem = err.Error()
	case e.Type == recording.KindToolCall:
		_, result.Problem = readReply(answer)
	}
	result.Outcome = OutcomeRefused
	if result.Problem == "" && recording.Accepted(answer.Status) {
		result.Outcome = OutcomeAccepted
	}
	return result, nil
}

// readReply returns the message of a tool's reply, or what keeps it from the contract's
// form: status 200, JSON, an object with the string message.
func readReply(answer recording.Answer) (message, problem string) {
	mediaType, _, _ := mime.ParseMediaType(answer.ContentType)
	var reply struct {
		Message *json.RawMessage `json:"message"`
	}
	switch {
	case answer.Status != http.StatusOK:
		return "", fmt.Sprintf("the status is %d instead of 200", answer.Status)
	case mediaType != "application/json":
		return "", "the content type is not application/json"
	case json.Unmarshal(answer.Body, &reply) != nil:
		return "", "the body is not a JSON object"
	case reply.Message == nil:
		return "", "the body has no message"
	case json.Unmarshal(*reply.Message, &message) != nil || string(*reply.Message) == "null":
		return "", "the message is not a string"
	}
	return message, ""
}
