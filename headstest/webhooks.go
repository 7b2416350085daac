package headstest

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	heads "github.com/headsapi/heads-go"
)

// warnIfEarly logs a line for an early webhook.
func (c *core) warnIfEarly(w *webhook) {
	if w.early {
		c.cfg.logger.Warn(madeEarly, "webhook", w.id, "head", w.headID, "strict_order", c.cfg.strictOrder)
	}
}

// createWebhook adds a webhook, even if there is one with the same URL.
func (c *core) createWebhook(r *http.Request) (reply, error) {
	sent, err := object(r)
	if err != nil {
		return reply{}, err
	}
	for _, key := range []string{"headId", "webhookUrl"} {
		if _, ok := sent[key]; !ok {
			return reply{}, refuse(http.StatusBadRequest, "%s is missing", key)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.run.addWebhook(sent)
	if err != nil {
		return reply{}, err
	}
	c.warnIfEarly(w)
	if c.cfg.responses == ResponsesRecord {
		return jsonReply(http.StatusCreated, w.document().encode()), nil
	}
	return jsonReply(http.StatusCreated, newDocument(map[string]any{"sharedKey": w.sharedKey}).encode()), nil
}

// AddWebhook registers a URL for the given events, under the same rules as the
// operation. It returns the webhook's id and shared key.
func (e *Emulator) AddWebhook(headID, url string, events ...heads.EventType) (id int64, sharedKey string, err error) {
	sent := newDocument(map[string]any{"headId": headID, "webhookUrl": url})
	for _, t := range events {
		i := slices.IndexFunc(eventFlags, func(f eventFlag) bool { return f.event == t })
		if i < 0 {
			return 0, "", fmt.Errorf("headstest: there is no event %q", string(t))
		}
		sent.set(eventFlags[i].name, true)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notify()
	w, err := e.run.addWebhook(sent)
	if err != nil {
		return 0, "", fmt.Errorf("headstest: %w", err)
	}
	e.warnIfEarly(w)
	return w.id, w.sharedKey, nil
}

func (c *core) listWebhooks(r *http.Request) (reply, error) {
	query, err := queryOf(r)
	if err != nil {
		return reply{}, err
	}
	headID := query["headId"]
	if len(headID) != 1 || headID[0] == "" {
		return reply{}, refuse(http.StatusBadRequest, "the query must hold headId once")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.run.head(headID[0]); err != nil {
		return reply{}, err
	}
	var list [][]byte
	for _, w := range c.run.webhooksOf(headID[0]) {
		list = append(list, w.document().encode())
	}
	return jsonReply(http.StatusOK, slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))), nil
}

func (c *core) getWebhook(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.run.webhook(r.PathValue("webhookId"))
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, w.document().encode()), nil
}

// patchWebhook keeps the fields that are not sent.
func (c *core) patchWebhook(r *http.Request) (reply, error) {
	sent, err := object(r)
	if err != nil {
		return reply{}, err
	}
	if len(sent) == 0 {
		return reply{}, refuse(http.StatusBadRequest, "the update holds no field to change")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.run.webhook(r.PathValue("webhookId"))
	if err != nil {
		return reply{}, err
	}
	before := w.headID
	if err := c.run.apply(w, sent); err != nil {
		return reply{}, err
	}
	if w.headID != before {
		c.warnIfEarly(w)
	}
	return c.undocumented(w.document()), nil
}

func (c *core) deleteWebhook(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.run.webhook(r.PathValue("webhookId"))
	if err != nil {
		return reply{}, err
	}
	delete(c.run.webhooks, w.id)
	for _, j := range c.run.queue(w.id).held {
		c.giveUp(c.run, j, 0, ErrRemoved)
	}
	delete(c.run.queues, w.id)
	return c.undocumented(w.document()), nil
}

// getEnableEvents is not in the contract.
func (c *core) getEnableEvents(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.run.head(r.PathValue("headId"))
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, strconv.AppendBool(nil, h.is("enableEvents"))), nil
}

// putEnableEvents reads the query and ignores a body.
func (c *core) putEnableEvents(r *http.Request) (reply, error) {
	return c.putSwitch(r, "enableEvents", func(h document, enabled bool) error {
		h.set("enableEvents", enabled)
		h.touch()
		return nil
	})
}
