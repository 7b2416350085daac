package heads_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/headsapi/heads-go"
)

const (
	exampleEventHead = "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b"
	exampleEventKey  = "example-shared-key" // from your secret store
)

// exampleDelivery returns a delivery as the service sends it.
func exampleDelivery(timestamp time.Time) *http.Request {
	body := fmt.Sprintf(`{"timestamp":%q,"head_id":%q,"session_id":"session-1","public_head_id":"li-28379","public_org_id":"MyOrg-1234","event_type":"start_conversation"}`,
		timestamp.UTC().Format("2006-01-02 15:04:05"), exampleEventHead)
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set(heads.SignatureHeader, heads.Sign([]byte(body), exampleEventKey))
	return r
}

func ExampleNewEventHandler() {
	handler, err := heads.NewEventHandler(heads.SharedKeys(exampleEventKey), func(ctx context.Context, e *heads.Event) error {
		fmt.Println(e.Type, "in", e.SessionID)
		return nil // answered with 200; after an error the service redelivers the event
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	r := exampleDelivery(time.Now())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)

	forged := exampleDelivery(time.Now())
	forged.Header.Set(heads.SignatureHeader, heads.Sign([]byte("something else"), exampleEventKey))
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, forged)
	fmt.Println(w.Code)
	// Output:
	// start_conversation in session-1
	// 200
	// 401
}

func ExampleHeadKeys() {
	handler, err := heads.NewEventHandler(heads.HeadKeys(map[string][]string{
		"3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b": {"key of this head"},
		"8d0e6c52-1f3b-4a7c-8e9d-2b4c6d8e0f1a": {"new key of that head", "its key until yesterday"},
	}), func(context.Context, *heads.Event) error { return nil })
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}

// Work that takes longer than the service waits goes into a queue.
func ExampleWithQueue() {
	handler, err := heads.NewEventHandler(heads.SharedKeys(exampleEventKey), func(ctx context.Context, e *heads.Event) error {
		fmt.Println("working on", e.Type)
		return nil
	}, heads.WithQueue(4, 1000))
	if err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, exampleDelivery(time.Now()))

	// Before the program ends, wait until the queue is empty.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := handler.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("answered", w.Code)
	// Output:
	// working on start_conversation
	// answered 200
}

// In a framework that has its own handlers, read the bytes as they arrived
// before anything decodes them.
func ExampleVerifySignature() {
	handle := func(r *http.Request) (status int) {
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 64<<10))
		if err != nil {
			return http.StatusRequestEntityTooLarge
		}
		if err := heads.VerifySignature(body, r.Header.Get(heads.SignatureHeader), exampleEventKey); err != nil {
			return http.StatusUnauthorized
		}
		e, err := heads.ParseEvent(body)
		if err != nil {
			return http.StatusBadRequest
		}
		fmt.Println(e)
		return http.StatusOK
	}
	fmt.Println(handle(exampleDelivery(time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC))))
	// Output:
	// start_conversation at 2026-08-31 06:56:30, head 3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b, session session-1
	// 200
}

// Serverless gateways pass the body as text, some of them in base64, and change
// the case of header names. The signature is over the bytes.
func ExampleVerifySignature_gateway() {
	type gatewayRequest struct {
		Headers         map[string]string
		Body            string
		IsBase64Encoded bool
	}
	handle := func(r gatewayRequest) (status int) {
		body := []byte(r.Body)
		if r.IsBase64Encoded {
			decoded, err := base64.StdEncoding.DecodeString(r.Body)
			if err != nil {
				return http.StatusBadRequest
			}
			body = decoded
		}
		var signature string
		for name, value := range r.Headers {
			if strings.EqualFold(name, heads.SignatureHeader) {
				signature = value
			}
		}
		switch err := heads.VerifySignature(body, signature, exampleEventKey); {
		case errors.Is(err, heads.ErrSignatureMissing):
			fmt.Println("not from the service at all")
			return http.StatusUnauthorized
		case err != nil:
			fmt.Println(err)
			return http.StatusUnauthorized
		}
		e, err := heads.ParseEvent(body)
		if err != nil {
			return http.StatusBadRequest
		}
		fmt.Println(e.Type, e.Key()[:8]) // remember e.Key() to notice a redelivery
		return http.StatusOK
	}

	body := `{"event_type":"end_conversation","head_id":"` + exampleEventHead + `","session_id":"session-1","timestamp":"2026-08-31 06:56:30"}`
	request := gatewayRequest{
		Headers:         map[string]string{"x-signature-256": heads.Sign([]byte(body), exampleEventKey)},
		Body:            base64.StdEncoding.EncodeToString([]byte(body)),
		IsBase64Encoded: true,
	}
	fmt.Println(handle(request))
	request.IsBase64Encoded = false
	fmt.Println(handle(request))
	request.Headers = nil
	fmt.Println(handle(request))
	// Output:
	// end_conversation e14f10a2
	// 200
	// heads: the signature does not match the body with any of the shared keys
	// 401
	// not from the service at all
	// 401
}

func ExampleDiagnoseSignature() {
	sent := `{"event_type":"end_conversation","session_id":"session-1"}`
	signature := heads.Sign([]byte(sent), exampleEventKey)
	recorded := `{"event_type": "end_conversation", "session_id": "session-1"}`
	fmt.Println(heads.DiagnoseSignature([]byte(recorded), signature, exampleEventKey))
	fmt.Println(heads.DiagnoseSignature([]byte(sent+"\n"), signature, exampleEventKey+"\n"))
	// Output:
	// The signature would match with key 1 of 1: verify the bytes as they arrive: those signed were JSON without spaces (escaped as here).
	// The signature would match with key 1 of 1: trim the space around the key; remove the line end after the body.
}
