package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// visit is an event as the CRM gets it.
type visit struct {
	Event string `json:"event"`
	At    string `json:"at"`
}

// finished is a session as the CRM gets it.
type finished struct {
	HeadID    string  `json:"head_id"`
	SessionID string  `json:"session_id"`
	Events    []visit `json:"events"`
}

// handOver sends a session to the CRM. If the shop is killed before the event is marked
// as handled, the session is sent again: the CRM must keep one of each session_id.
func (s *shop) handOver(ctx context.Context, e *heads.Event, last visit) error {
	earlier, err := s.visitsOf(ctx, e)
	if err != nil {
		return err
	}
	body, err := json.Marshal(finished{HeadID: e.HeadID, SessionID: e.SessionID, Events: append(earlier, last)})
	if err != nil {
		return err
	}
	return s.post(ctx, body)
}

// visitsOf returns the handled events of a session, in order.
func (s *shop) visitsOf(ctx context.Context, e *heads.Event) (visits []visit, err error) {
	rows, err := s.visits.QueryContext(ctx, "SELECT event, at FROM visits WHERE session = ? AND head = ? ORDER BY rowid", e.SessionID, e.HeadID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v visit
		if err := rows.Scan(&v.Event, &v.At); err != nil {
			return nil, err
		}
		visits = append(visits, v)
	}
	return visits, rows.Err()
}

// post sends a body to the CRM. Its errors don't show the URL, which may hold a key.
func (s *shop) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.crm.Reveal(), bytes.NewReader(body))
	if err != nil {
		return errors.New("SHOP_CRM_URL can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("the CRM can't be reached: %w", failed.Err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		return inbox.Permanent(fmt.Errorf("the CRM refused the session with status %d", code))
	default:
		return fmt.Errorf("the CRM answered with status %d", code)
	}
}
