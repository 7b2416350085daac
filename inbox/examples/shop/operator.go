package main

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// operator lets requests with the operator's token through.
func (s *shop) operator(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.operatorToken.Reveal())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the operator's token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// figures are those of GET /stats: how many events are stored, and what became of them, and how
// many sessions the CRM has.
type figures struct {
	Stored   int64 `json:"stored"`
	Handled  int64 `json:"handled"`
	Pending  int64 `json:"pending"`
	Dead     int64 `json:"dead"`
	Sessions int64 `json:"sessions"`
}

func (s *shop) stats(w http.ResponseWriter, r *http.Request) {
	var f figures
	status, err := s.inbox.Status(r.Context())
	const text = "SELECT count(*), count(*) FILTER (WHERE event = $1) FROM visits"
	err = errors.Join(err, s.inbox.SQL().QueryRowContext(r.Context(), text, string(heads.EventEndConversation)).Scan(&f.Handled, &f.Sessions))
	f.Pending, f.Dead, f.Stored = status.Pending, status.Dead, f.Handled+status.Pending+status.Dead
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

// answer writes a value, or 503 for an error, which is logged.
func (s *shop) answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		s.logger.Error("the inbox can't be read", "error", err)
		http.Error(w, "the inbox can't be used at the moment", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // an error means that the caller has left
}
