package headstest

import (
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

func (c *core) addWebhook(sent document) (*webhook, error) {
	w := &webhook{createdAt: now(), queue: &queue{}}
	if err := c.apply(w, sent); err != nil {
		return nil, err
	}
	w.id, w.sharedKey = c.st.ids.webhookID(), c.st.ids.hex(32)
	c.st.webhooks[w.id] = w
	return w, nil
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
