package headstest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/loopback"
)

// eventFlags are the flags of a registration and the events that they turn on.
var eventFlags = []eventFlag{
	{"startConversation", heads.EventStartConversation},
	{"endConversation", heads.EventEndConversation},
	{"timeoutConversation", heads.EventTimeoutConversation},
	{"inactivityWarning", heads.EventInactivityWarning},
}

type eventFlag struct {
	name  string
	event heads.EventType
}

// webhook is one registration.
type webhook struct {
	id                            int64
	createdAt, updatedAt          string
	orgID, headID, url, sharedKey string
	events                        map[heads.EventType]bool
	queue                         *queue
	early                         bool // made, or moved to its head, while delivery was off
}

// madeEarly says in the log, the console and the control API what a field note says of
// an early registration. The contract is silent about the order.
const madeEarly = "made before delivery was enabled; the real service may not deliver to it"

// warnIfEarly logs a line for an early registration.
func (c *core) warnIfEarly(w *webhook) {
	if w.early {
		c.cfg.logger.Warn(madeEarly, "webhook", w.id, "head", w.headID, "strict_order", c.cfg.strictOrder)
	}
}

func (w *webhook) document() document {
	d := newDocument(map[string]any{
		"id": w.id, "createdAt": w.createdAt, "updatedAt": w.updatedAt,
		"orgId": w.orgID, "headId": w.headID, "webhookUrl": w.url, "sharedKey": w.sharedKey,
	})
	for _, f := range eventFlags {
		d.set(f.name, w.events[f.event])
	}
	return d
}

// apply sets the fields of a POST or PATCH, or none if one is invalid.
func (c *core) apply(w *webhook, sent document) error {
	next := *w
	next.events = map[heads.EventType]bool{}
	for _, f := range eventFlags {
		next.events[f.event] = w.events[f.event]
		if raw, ok := sent[f.name]; ok {
			on, ok := decode(raw).(bool)
			if !ok {
				return refuse(http.StatusBadRequest, "%s must be true or false", f.name)
			}
			next.events[f.event] = on
		}
	}
	if raw, ok := sent["webhookUrl"]; ok {
		target, _ := decode(raw).(string)
		if err := c.checkOutbound(target); err != nil {
			return refuse(http.StatusBadRequest, "webhookUrl %v", err)
		}
		next.url = target
	}
	if raw, ok := sent["headId"]; ok {
		id, ok := decode(raw).(string)
		if !ok || id == "" {
			return refuse(http.StatusBadRequest, "headId must be the UUID of a head")
		}
		h, err := c.st.head(id)
		if err != nil {
			return err
		}
		if id != w.headID {
			next.early = !h.is("enableEvents")
		}
		next.headID, next.orgID = id, h.str("orgId")
	}
	next.updatedAt = now()
	*w = next
	return nil
}

// checkOutbound returns an error for a URL that the service does not call.
func (c *core) checkOutbound(target string) error {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Hostname() == "":
		return fmt.Errorf("must be an absolute HTTPS URL")
	case u.Scheme == "https", u.Scheme == "http" && c.cfg.loopbackHTTP && loopback.Is(u.Hostname()):
		return nil
	case u.Scheme == "http" && loopback.Is(u.Hostname()):
		return fmt.Errorf("must use HTTPS (WithLoopbackHTTP allows plain http to this machine)")
	default:
		return fmt.Errorf("must use HTTPS")
	}
}

// createWebhook adds a registration, even if there is one with the same URL.
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
	w, err := c.addWebhook(sent)
	if err != nil {
		return reply{}, err
	}
	c.warnIfEarly(w)
	if c.cfg.responses == ResponsesRecord {
		return jsonReply(http.StatusCreated, w.document().encode()), nil
	}
	return jsonReply(http.StatusCreated, newDocument(map[string]any{"sharedKey": w.sharedKey}).encode()), nil
}

func (c *core) addWebhook(sent document) (*webhook, error) {
	w := &webhook{createdAt: now(), queue: &queue{}}
	if err := c.apply(w, sent); err != nil {
		return nil, err
	}
	w.id, w.sharedKey = c.st.ids.webhookID(), c.st.ids.hex(32)
	c.st.webhooks[w.id] = w
	return w, nil
}

// AddWebhook registers a URL for the given events, under the same rules as the
// operation. It returns the registration's id and shared key.
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
	w, err := e.addWebhook(sent)
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
	if _, err := c.st.head(headID[0]); err != nil {
		return reply{}, err
	}
	var list [][]byte
	for _, w := range c.st.webhooksOf(headID[0]) {
		list = append(list, w.document().encode())
	}
	return jsonReply(http.StatusOK, slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))), nil
}

func (c *core) getWebhook(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.st.webhook(r)
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
	w, err := c.st.webhook(r)
	if err != nil {
		return reply{}, err
	}
	before := w.headID
	if err := c.apply(w, sent); err != nil {
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
	w, err := c.st.webhook(r)
	if err != nil {
		return reply{}, err
	}
	delete(c.st.webhooks, w.id)
	for _, j := range w.queue.held {
		c.give(c.st, j, 0, ErrRemoved)
	}
	w.queue.held = nil
	return c.undocumented(w.document()), nil
}

// getEnableEvents is not in the contract.
func (c *core) getEnableEvents(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.st.head(r.PathValue("headId"))
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

// webhook returns the registration whose id is in the path.
func (st *state) webhook(r *http.Request) (*webhook, error) {
	given := r.PathValue("webhookId")
	id, _ := strconv.ParseInt(given, 10, 64) // not a number: an id that no registration has
	if w, ok := st.webhooks[id]; ok {
		return w, nil
	}
	return nil, refuse(http.StatusNotFound, "there is no webhook %q", given)
}

// webhooksOf returns the registrations of a head, oldest first.
func (st *state) webhooksOf(headID string) []*webhook {
	var list []*webhook
	for _, w := range st.webhooks {
		if w.headID == headID {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b *webhook) int { return cmp.Compare(a.id, b.id) })
	return list
}
