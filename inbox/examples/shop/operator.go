package main

import (
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// operator answers those who look after the shop.
type operator struct {
	token  heads.Secret
	logger *slog.Logger
	inbox  *inbox.Inbox
	visits *visits
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

func (op *operator) stats(w http.ResponseWriter, r *http.Request) {
	status, err := op.inbox.Status(r.Context())
	f := figures{Pending: status.Pending, Retrying: status.Retrying, Dead: status.Dead}
	if !status.OldestPending.IsZero() {
		f.Oldest = int64(time.Since(status.OldestPending) / time.Second)
	}
	if err == nil {
		f.Handled, f.Sessions, err = op.visits.count(r.Context())
	}
	f.Stored = f.Handled + f.Pending + f.Dead
	op.answer(w, f, err)
}

func (op *operator) redrive(w http.ResponseWriter, r *http.Request) {
	var dead []int64
	for d, err := range op.inbox.Dead(r.Context(), inbox.Query{}) {
		if err != nil {
			op.answer(w, nil, err)
			return
		}
		dead = append(dead, d.Sequence)
	}
	n, err := op.inbox.Redrive(r.Context(), dead...)
	op.logger.Info("dead letters redriven", "count", n)
	op.answer(w, map[string]int{"redriven": n}, err)
}

// only lets requests with the operator's token through.
func (op *operator) only(next http.HandlerFunc) http.Handler {
	want := []byte("Bearer " + op.token.Reveal())
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
func (op *operator) answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		op.logger.Error("the inbox can't be read", "error", err)
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
