// Goshop is the back end of a head, written with the standard library only: it receives the events
// of conversations and answers the tool order_status. The scenarios of shop.test.yaml test it:
//
//	go build -o shop .
//	headsctl test .
//
// Every event is on disk before its delivery is answered, so none is lost if the program is killed.
// A redelivered event is stored once.
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("goshop", flag.ContinueOnError)
	journal := flags.String("journal", os.Getenv("SHOP_JOURNAL"), "file of events")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key := os.Getenv("HEADS_SHARED_KEY")
	if key == "" || *journal == "" {
		return errors.New("set HEADS_SHARED_KEY and SHOP_JOURNAL")
	}
	s, err := openShop(*journal, []byte(key))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

var orders = map[string]string{"7": "Your order has been shipped.", "8": "Your order is being packed."}

// record is a line of the journal: an event or a call of order_status.
type record struct {
	Session string `json:"session"`
	Event   string `json:"event,omitempty"`
	Digest  string `json:"digest,omitempty"` // of the event's body
	Order   string `json:"order,omitempty"`
}

type session struct {
	Events []string `json:"events"`
	Orders []string `json:"orders"`
}

// shop has the state of the sessions. All of it is in the journal.
type shop struct {
	key []byte

	mu       sync.Mutex
	journal  *os.File
	seen     map[string]bool
	sessions map[string]*session
}

func openShop(path string, key []byte) (*shop, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &shop{key: key, journal: file, seen: map[string]bool{}, sessions: map[string]*session{}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			s.remember(r)
		}
	}
	return s, nil
}

func (s *shop) remember(r record) {
	known := s.sessions[r.Session]
	if known == nil {
		known = &session{Events: []string{}, Orders: []string{}}
		s.sessions[r.Session] = known
	}
	if r.Event == "" {
		known.Orders = append(known.Orders, r.Order)
		return
	}
	s.seen[r.Digest] = true
	known.Events = append(known.Events, r.Event)
}

// add writes a record to disk and then adds it to the state.
func (s *shop) add(r record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[r.Digest] {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := s.journal.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := s.journal.Sync(); err != nil {
		return err
	}
	s.remember(r)
	return nil
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, map[string]bool{"ready": true}) })
	mux.HandleFunc("GET /sessions/{id}", s.session)
	mux.HandleFunc("POST /events", s.event)
	mux.HandleFunc("POST /tools/order_status", s.orderStatus)
	return mux
}

func (s *shop) session(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sessions[r.PathValue("id")]
	if known == nil {
		reply(w, http.StatusNotFound, map[string]string{"error": "there is no such session"})
		return
	}
	reply(w, http.StatusOK, known)
}

func (s *shop) event(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": "the body can't be read"})
		return
	}
	if !s.isSigned(body, r.Header.Get("X-Signature-256")) {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "the signature is wrong"})
		return
	}
	var event struct {
		Type    string `json:"event_type"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal(body, &event) != nil || event.Type == "" {
		reply(w, http.StatusBadRequest, map[string]string{"error": "this is no event"})
		return
	}
	digest := sha256.Sum256(body)
	if err := s.add(record{Session: event.Session, Event: event.Type, Digest: hex.EncodeToString(digest[:])}); err != nil {
		reply(w, http.StatusInternalServerError, map[string]string{"error": "the event can't be kept"})
		return
	}
	reply(w, http.StatusOK, map[string]string{"message": "received"})
}

// isSigned reports whether a signature is valid. It is hex or base64.
func (s *shop) isSigned(body []byte, signature string) bool {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(body)
	digest := mac.Sum(nil)
	return hmac.Equal([]byte(signature), []byte(hex.EncodeToString(digest))) ||
		hmac.Equal([]byte(signature), []byte(base64.StdEncoding.EncodeToString(digest)))
}

func (s *shop) orderStatus(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Order    string `json:"order"`
		Metadata struct {
			SessionID string `json:"session_id"`
		} `json:"session_metadata"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&call) != nil {
		reply(w, http.StatusOK, map[string]string{"message": "The number of the order is missing."})
		return
	}
	if err := s.add(record{Session: call.Metadata.SessionID, Order: call.Order}); err != nil {
		reply(w, http.StatusInternalServerError, map[string]string{"error": "the question can't be kept"})
		return
	}
	message, known := orders[call.Order]
	if !known {
		message = "There is no order with this number."
	}
	reply(w, http.StatusOK, map[string]string{"message": message})
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
