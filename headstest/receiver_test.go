package headstest_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/require"
)

// receiver stands for the customer's server. It is a transport, so it works in a
// bubble.
type receiver struct {
	answer func(n int, r *http.Request, body []byte) (*http.Response, error) // n counts from 1

	mu  sync.Mutex
	got []received
}

type received struct {
	at        time.Time
	host      string
	body      []byte
	signature string
	eventType string
}

func (rc *receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var event struct {
		EventType string `json:"event_type"`
	}
	mustUnmarshal(body, &event)
	rc.mu.Lock()
	rc.got = append(rc.got, received{time.Now(), r.URL.Host, body, r.Header.Get("x-signature-256"), event.EventType})
	n := len(rc.got)
	rc.mu.Unlock()
	if rc.answer == nil {
		return status(200), nil
	}
	return rc.answer(n, r, body)
}

func (rc *receiver) all() []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return append([]received(nil), rc.got...)
}

func (rc *receiver) types() []string {
	types := []string{}
	for _, r := range rc.all() {
		types = append(types, r.eventType)
	}
	return types
}

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil))}
}

func always(code int) func(int, *http.Request, []byte) (*http.Response, error) {
	return func(int, *http.Request, []byte) (*http.Response, error) { return status(code), nil }
}

var allEvents = []heads.EventType{
	heads.EventStartConversation, heads.EventEndConversation, heads.EventInactivityWarning, heads.EventTimeoutConversation,
}

// scene is an emulator with one head that delivers and one registration for
// every event.
type scene struct {
	*headstest.Emulator
	t    *testing.T
	head string
	hook int64
	key  string
	*receiver
}

// play runs a test in a bubble, in which waiting takes no time.
func play(t *testing.T, rc *receiver, opts []headstest.Option, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		opts := append([]headstest.Option{headstest.WithDeliveryClient(&http.Client{Transport: rc})}, opts...)
		e := headstest.NewEmulator(opts...)
		defer e.Close()
		head := e.AddHead(headstest.Head{EnableEvents: true})
		hook, key, err := e.AddWebhook(head, "https://hook.example.test/x", allEvents...)
		require.NoError(t, err)
		f(&scene{e, t, head, hook, key, rc})
	})
}

// settle waits until every delivery has ended.
func (s *scene) settle() {
	<-time.After(time.Hour) // of the bubble's clock
	synctest.Wait()
}

func hexHMAC(body []byte, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
