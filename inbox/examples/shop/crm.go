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
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

const crmTimeout = 3 * time.Second

// crm gets a POST for each finished session.
type crm struct {
	url  heads.Secret
	http *http.Client
}

func newCRM(url heads.Secret) *crm {
	return &crm{url, &http.Client{
		Timeout: crmTimeout,
		// A POST that is redirected becomes a GET, which would be taken for success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// finished is a session as the CRM gets it.
type finished struct {
	HeadID    string  `json:"head_id"`
	SessionID string  `json:"session_id"`
	Events    []visit `json:"events"`
}

// send sends a session. It may be sent twice: the CRM must keep one of each session_id.
// Errors don't show the URL, which may hold a key.
func (c *crm) send(ctx context.Context, session finished) error {
	body, err := json.Marshal(session)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.Reveal(), bytes.NewReader(body))
	if err != nil {
		return errors.New("SHOP_CRM_URL can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
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
