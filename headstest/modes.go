package headstest

import (
	"fmt"
	"io"
	"net/http"
)

func (c *core) putVideoStreaming(r *http.Request) (reply, error) {
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		return reply{}, refuse(http.StatusBadRequest, "video-streaming takes no body")
	}
	return c.putSwitch(r, "videoStreaming", func(h document, streaming bool) error {
		if err := c.run.mayStream(h, streaming); err != nil {
			return err
		}
		c.run.setStreaming(h, streaming)
		return nil
	})
}

// putSplitter is not in the contract.
func (c *core) putSplitter(r *http.Request) (reply, error) {
	return c.putSwitch(r, "splitter", func(h document, on bool) error {
		c.run.setSplitter(h, on)
		return nil
	})
}

// EnableSplitter turns on text splitting for a head. No operation of the contract
// does that. A streaming head is switched back to legacy, whatever the mode of its
// visual. EnableSplitter returns an error if the head is unknown.
func (e *Emulator) EnableSplitter(headID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, err := e.run.headToChange(headID)
	if err != nil {
		return fmt.Errorf("headstest: %w", err)
	}
	e.run.setSplitter(h, true)
	e.notify()
	return nil
}
