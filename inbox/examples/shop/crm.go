package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

// finished is a session as the CRM gets it.
type finished struct {
	HeadID    string  `json:"head_id"`
	SessionID string  `json:"session_id"`
	Events    []visit `json:"events"`
}

type visit struct {
	Event string `json:"event"`
	At    string `json:"at"`
}

// A POST that is redirected becomes a GET, which would be taken for success.
var crm = &http.Client{
	Timeout:       3 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send sends a session, perhaps twice: the CRM must keep one of each session_id. Errors don't show
// the URL.
func send(ctx context.Context, crmURL heads.Secret, session finished) error {
	body, err := json.Marshal(session)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, crmURL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return errors.New("SHOP_CRM_URL can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := crm.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return fmt.Errorf("the CRM can't be reached: %w", failed.Err)
	}
	resp.Body.Close()
	switch err := fmt.Errorf("the CRM answered with status %d", resp.StatusCode); resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return inbox.Permanent(err) // it would refuse the session again
	default:
		return err
	}
}
