//go:build !race

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
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The benchmarks measure one call over a transport in memory, and the same call
// written with net/http and encoding/json alone.

const benchID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"

// inMemory answers every request with the same body.
func inMemory(body []byte) *http.Client {
	return &http.Client{Transport: answer(http.StatusOK, string(body), "Content-Type: application/json")}
}

func benchDocument(b *testing.B) []byte {
	doc := bytes.TrimSpace([]byte(readFile(b, "head_2048.json")))
	require.Len(b, doc, 2048)
	return doc
}

// measure measures f and counts its allocations.
func measure(b *testing.B, name string, f func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchClient(b *testing.B, answer []byte) *Client {
	return Must(New("https://api.example.com/v1", "token", WithHTTPClient(inMemory(answer))))(b)
}

func BenchmarkGet(b *testing.B) {
	doc := benchDocument(b)
	client, raw := benchClient(b, doc), inMemory(doc)
	measure(b, "heads", func() error { return ErrorOf(client.Heads.Get(context.Background(), benchID)) })
	measure(b, "raw", func() error { return ErrorOf(rawGet(raw)) })
	measure(b, "json", func() error { return json.Unmarshal(doc, new(rawHead)) })
	measure(b, "json-Head", func() error { return json.Unmarshal(doc, new(Head)) })
}

// rawCall is a call without this package. A body of JSON says so.
func rawCall(client *http.Client, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "https://api.example.com/v1/head/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "raw")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func rawGet(client *http.Client) (*rawHead, error) {
	body, err := rawCall(client, "GET", benchID, nil)
	if err != nil {
		return nil, err
	}
	head := new(rawHead)
	return head, json.Unmarshal(body, head)
}

func benchUpdate() *HeadUpdate {
	return NewHeadUpdate().Voice("elevenlabs", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5").Greetings("Welcome! Ask me about opening hours, tickets or the way.")
}

func BenchmarkUpdate(b *testing.B) {
	u := benchUpdate()
	body := u.document(benchID)
	b.Logf("body of %d bytes", len(body))
	client, raw := benchClient(b, nil), inMemory(nil)
	fields := rawUpdate{
		ID: benchID, TTSProvider: "elevenlabs", TTSVoice: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5",
		Greetings: "Welcome! Ask me about opening hours, tickets or the way.",
	}
	measure(b, "heads", func() error { return client.Heads.Update(context.Background(), benchID, u) })
	measure(b, "heads-builder", func() error { return client.Heads.Update(context.Background(), benchID, benchUpdate()) })
	measure(b, "raw", func() error { return rawPut(raw, &fields) })
}

type rawUpdate struct {
	ID          string `json:"id"`
	TTSProvider string `json:"ttsProvider"`
	TTSVoice    string `json:"ttsVoice"`
	Greetings   string `json:"greetings"`
}

func rawPut(client *http.Client, fields *rawUpdate) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return ErrorOf(rawCall(client, "PUT", "update", body))
}

// rawHead is a head as a program without this package would declare it.
type rawHead struct {
	ID                        string   `json:"id"`
	Name                      string   `json:"name"`
	Alias                     string   `json:"alias"`
	Language                  string   `json:"language"`
	LanguageSpeechRecognition string   `json:"languageSpeechRecognition"`
	TTSProvider               string   `json:"ttsProvider"`
	TTSVoice                  string   `json:"ttsVoice"`
	OperationMode             string   `json:"operationMode"`
	OCProvider                string   `json:"ocProvider"`
	Greetings                 string   `json:"greetings"`
	IsRandomSuggestions       bool     `json:"isRandomSuggestions"`
	Phrases                   []string `json:"phrases"`
	Suggestions               []string `json:"suggestions"`
	PromptConfig              struct {
		SystemPrompt string `json:"system_prompt"`
	} `json:"promptConfig"`
	VoiceflowAPIKey             *string           `json:"voiceflowApiKey"`
	CustomWords                 map[string]string `json:"customWords"`
	PublicURL                   string            `json:"publicUrl"`
	FileURL                     *string           `json:"fileUrl"`
	PluginOperationalModeConfig json.RawMessage   `json:"pluginOperationalModeConfig"`
	SemanticThreshold           float64           `json:"semanticThreshold"`
	VideoStreaming              bool              `json:"videoStreaming"`
	Splitter                    bool              `json:"splitter"`
	EnableEvents                bool              `json:"enableEvents"`
	ConversationSettings        struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			URL         string `json:"url"`
			Parameters  []struct {
				Name        string `json:"name"`
				Type        string `json:"type"`
				Description string `json:"description"`
			} `json:"parameters"`
		} `json:"tools"`
	} `json:"conversationSettings"`
	CreatedAt            string   `json:"createdAt"`
	UpdatedAt            string   `json:"updatedAt"`
	PublicID             string   `json:"publicId"`
	OrgID                string   `json:"orgId"`
	OrgPublicID          string   `json:"orgPublicId"`
	HeadVisualID         string   `json:"headVisualId"`
	IsActive             bool     `json:"isActive"`
	TTSStream            bool     `json:"ttsStream"`
	ExpirationSeconds    float64  `json:"expirationSeconds"`
	AllowedOrigins       []string `json:"allowedOrigins"`
	AllowedIframeOrigins []string `json:"allowedIframeOrigins"`
	HeadVisualVideoURL   string   `json:"headVisualVideoUrl"`
	PosterVideoImage     string   `json:"posterVideoImage"`
	TTSDisplayName       string   `json:"ttsDisplayName"`
	Organisation         struct {
		ID               string  `json:"id"`
		APIKey           string  `json:"apiKey"`
		Name             string  `json:"name"`
		PublicID         string  `json:"publicId"`
		SubscriptionType string  `json:"subscriptionType"`
		Slots            float64 `json:"slots"`
		Streaming        bool    `json:"streaming"`
		IsActive         bool    `json:"isActive"`
	} `json:"organisation"`
}

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
	measure(b, "verify", func() error { return VerifySignature(body, signature, testKeyA) })
	measure(b, "verify+parse", func() error {
		if err := VerifySignature(body, signature, testKeyA); err != nil {
			return err
		}
		return ErrorOf(ParseEvent(body))
	})
	measure(b, "bare", func() error { return bareVerifyAndParse(body, signature, testKeyA) })
}

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

func benchHandlers(b *testing.B) map[string]http.Handler {
	ours := Must(NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil }))(b)
	return map[string]http.Handler{"handler": ours, "bare": http.HandlerFunc(bareHandler)}
}

// BenchmarkEventHandlerOnServer measures both handlers behind net/http. It sends
// on raw connections, so the sender adds as little as possible.
func BenchmarkEventHandlerOnServer(b *testing.B) {
	for name, handler := range benchHandlers(b) {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(handler)
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
	w := &SilentWriter{Headers: make(http.Header)}
	body := benchEventBody(0)
	reader := BenchBody{bytes.NewReader(body)}
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
		reader.Reset(body)
		h.ServeHTTP(w, r)
		if w.Status != http.StatusOK {
			b.Errorf("answered %d", w.Status)
			return
		}
	}
}

func BenchmarkEventHandler(b *testing.B) {
	for name, handler := range benchHandlers(b) {
		b.Run(name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			benchDeliver(b, handler, b.Loop)
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) { benchDeliver(b, handler, pb.Next) })
		})
	}
}

// The race detector makes sync.Pool drop items, so allocations are counted
// without it.
func TestVerifyAndParseAllocateLittle(t *testing.T) {
	body := benchEventBody(0)
	assert.Len(t, body, 300)
	signature := Sign(body, testKeyA)
	verifyAndParse := func() {
		require.NoError(t, VerifySignature(body, signature, testKeyA))
		Must(ParseEvent(body))(t)
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, verifyAndParse), 14.0)
	assert.LessOrEqual(t, bytesPerRun(1000, verifyAndParse), uint64(700))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = VerifySignature(body, signature, testKeyA, testKeyB) }), "verifying allocates nothing")
}

// bytesPerRun is like testing.AllocsPerRun, but counts bytes.
func bytesPerRun(runs uint64, f func()) uint64 {
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

func TestVariantsAllocateNothing(t *testing.T) {
	full := []byte(parseObject(t, readFile(t, "head_full.json")).String())
	beside := []byte(strings.TrimSuffix(string(full), "}") + `,"ttsvoice":"v","TTSVOICE":5,"videostreaming":"yes","ID":"x"}`)
	decoding := func(document []byte) func() {
		return func() { _ = decodeAnswer(document, new(Head)) }
	}
	assert.Equal(t, int(testing.AllocsPerRun(100, decoding(full))), int(testing.AllocsPerRun(100, decoding(beside))))
	assert.LessOrEqual(t, testing.AllocsPerRun(100, decoding(full)), 43.0, "strings share one copy of the document")
}
