package main

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

func (s *shop) health(w http.ResponseWriter, r *http.Request) {
	status, err := s.inbox.Status(r.Context())
	code := http.StatusOK
	if err != nil || !status.Healthy {
		code = http.StatusServiceUnavailable
	}
	reply(w, code, map[string]bool{"healthy": code == http.StatusOK})
}

// figures are those of GET /stats.
type figures struct {
	Stored   int64 `json:"stored"` // handled, pending and dead
	Handled  int64 `json:"handled"`
	Pending  int64 `json:"pending"`  // neither handled nor dead
	Retrying int64 `json:"retrying"` // sessions that wait for another attempt
	Dead     int64 `json:"dead"`     // the dead letters
	Sessions int64 `json:"sessions"` // that the CRM has
	Oldest   int64 `json:"oldest_s"` // age of the oldest pending event, in seconds
}

func (s *shop) stats(w http.ResponseWriter, r *http.Request) {
	status, err := s.inbox.Status(r.Context())
	f := figures{Pending: status.Pending, Retrying: status.Retrying, Dead: status.Dead}
	if !status.OldestPending.IsZero() {
		f.Oldest = int64(time.Since(status.OldestPending) / time.Second)
	}
	if err == nil {
		err = s.visits.QueryRowContext(r.Context(), "SELECT count(*), count(*) FILTER (WHERE event = ?) FROM visits", string(heads.EventEndConversation)).Scan(&f.Handled, &f.Sessions)
	}
	f.Stored = f.Handled + f.Pending + f.Dead
	s.answer(w, f, err)
}

func (s *shop) redrive(w http.ResponseWriter, r *http.Request) {
	var dead []int64
	for d, err := range s.inbox.Dead(r.Context(), inbox.Query{}) {
		if err != nil {
			s.answer(w, nil, err)
			return
		}
		dead = append(dead, d.Sequence)
	}
	n, err := s.inbox.Redrive(r.Context(), dead...)
	s.logger.Info("dead letters redriven", "count", n)
	s.answer(w, map[string]int{"redriven": n}, err)
}

// operatorOnly lets requests with the operator's token through.
func (s *shop) operatorOnly(next http.HandlerFunc) http.Handler {
	want := []byte("Bearer " + s.operator.Reveal())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			reply(w, http.StatusUnauthorized, map[string]string{"error": "send the operator's token: Authorization: Bearer TOKEN"})
			return
		}
		next(w, r)
	})
}

// answer writes a value, or 503 for an error, which is logged.
func (s *shop) answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		s.logger.Error("the inbox can't be read", "error", err)
		reply(w, http.StatusServiceUnavailable, map[string]string{"error": "the inbox can't be used at the moment"})
		return
	}
	reply(w, http.StatusOK, value)
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // an error means that the caller has left
}
