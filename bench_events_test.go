package heads

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The baselines are written with package hmac and package json alone.

type bareEvent struct {
	Timestamp    string `json:"timestamp"`
	HeadID       string `json:"head_id"`
	SessionID    string `json:"session_id"`
	PublicHeadID string `json:"public_head_id"`
	PublicOrgID  string `json:"public_org_id"`
	EventType    string `json:"event_type"`
}

func bareVerifyAndParse(body []byte, signature, key string) error {
	sent, err := hex.DecodeString(signature)
	if err != nil {
		return err
	}
	m := hmac.New(sha256.New, []byte(key))
	m.Write(body)
	if !hmac.Equal(m.Sum(nil), sent) {
		return ErrSignatureMismatch
	}
	return json.Unmarshal(body, new(bareEvent))
}

// benchEventBody has 300 bytes.
func benchEventBody(session int) []byte {
	body := eventBody(testHeadA, fmt.Sprintf("7c9e6679-7425-40de-944b-%012d", session), "start_conversation", time.Now().UTC().Format("2006-01-02 15:04:05"))
	body = strings.TrimSuffix(body, "}") + `,"reason":"`
	return []byte(body + strings.Repeat("x", 298-len(body)) + `"}`)
}

func BenchmarkVerifySignature(b *testing.B) {
	body := benchEventBody(0)
	signature := Sign(body, testKeyA)
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := VerifySignature(body, signature, testKeyA); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify+parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := VerifySignature(body, signature, testKeyA); err != nil {
				b.Fatal(err)
			}
			if _, err := ParseEvent(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := bareVerifyAndParse(body, signature, testKeyA); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchEventWriter is a ResponseWriter that does no work.
type benchEventWriter struct {
	header http.Header
	status int
}

func (w *benchEventWriter) Header() http.Header             { return w.header }
func (w *benchEventWriter) Write(p []byte) (int, error)     { return len(p), nil }
func (w *benchEventWriter) WriteHeader(status int)          { w.status = status }
func (w *benchEventWriter) SetReadDeadline(time.Time) error { return nil }

// benchEventReader is a body that can be read again.
type benchEventReader struct {
	body []byte
	at   int
}

func (r *benchEventReader) Read(p []byte) (int, error) {
	n := copy(p, r.body[r.at:])
	r.at += n
	if r.at == len(r.body) {
		return n, io.EOF
	}
	return n, nil
}

func (r *benchEventReader) Close() error { return nil }

func bareHandler(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := bareVerifyAndParse(body, r.Header.Get(SignatureHeader), testKeyA); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// BenchmarkEventHandlerOnServer measures both handlers behind net/http. It sends
// on raw connections, so the sender adds as little as possible.
func BenchmarkEventHandlerOnServer(b *testing.B) {
	ours, err := NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		handler http.Handler
	}{
		{"handler", ours},
		{"bare", http.HandlerFunc(bareHandler)},
	} {
		b.Run(row.name, func(b *testing.B) {
			server := httptest.NewServer(row.handler)
			defer server.Close()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					b.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				sendBenchEvents(b, conn, pb.Next)
			})
		})
	}
}

// sendBenchEvents sends one new event after the other on one connection.
func sendBenchEvents(b *testing.B, conn net.Conn, next func() bool) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\nX-Signature-256: "
	body := benchEventBody(0)
	request := append([]byte(head), make([]byte, hexLen)...)
	request = append(append(request, "\r\n\r\n"...), body...)
	signature, sent := request[len(head):][:hexLen], request[len(request)-len(body):]
	answer := make([]byte, 1024)
	for next() {
		numberBenchEvent(sent)
		copy(signature, Sign(sent, testKeyA))
		if _, err := conn.Write(request); err != nil {
			b.Error(err)
			return
		}
		n, err := conn.Read(answer) // the server writes an answer at once
		if err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK")) {
			b.Errorf("answered %q, %v", answer[:n], err)
			return
		}
	}
}

// numberBenchEvent sets the session of the event in body to the next one.
func numberBenchEvent(body []byte) {
	const before = `"session_id":"7c9e6679-7425-40de-944b-`
	number := body[bytes.Index(body, []byte(before))+len(before):][:12]
	for i, n := len(number)-1, benchSession.Add(1); n > 0; i, n = i-1, n/10 {
		number[i] = '0' + byte(n%10)
	}
}

// benchSession numbers the sessions, so no event is a redelivery.
var benchSession atomic.Int64

// benchDeliver sends one new event after the other. Both sides of the comparison
// include signing them.
func benchDeliver(b *testing.B, h http.Handler, next func() bool) {
	w := &benchEventWriter{header: make(http.Header)}
	body := benchEventBody(0)
	reader := &benchEventReader{body: body}
	signature := []string{""}
	r := &http.Request{
		Method:        http.MethodPost,
		Header:        http.Header{SignatureHeader: signature},
		Body:          reader,
		ContentLength: int64(len(body)),
	}
	for next() {
		numberBenchEvent(body)
		signature[0] = Sign(body, testKeyA)
		reader.at = 0
		h.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Errorf("answered %d", w.status)
			return
		}
	}
}

func BenchmarkEventHandler(b *testing.B) {
	ours, err := NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		handler http.Handler
	}{
		{"handler", ours},
		{"bare", http.HandlerFunc(bareHandler)},
	} {
		b.Run(row.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			benchDeliver(b, row.handler, b.Loop)
		})
		b.Run(row.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) { benchDeliver(b, row.handler, pb.Next) })
		})
	}
}
