package headstest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/loopback"
)

// madeEarly is the note about an early webhook in the log, the console and the control API.
// The contract does not define the order; the service was seen to behave so.
const madeEarly = "made before delivery was enabled; the real service may not deliver to it"

// apply sets the fields of a POST or PATCH, or none if one is invalid.
func (st *state) apply(w *webhook, sent document) error {
	next := *w
	next.events = map[heads.EventType]bool{}
	for _, f := range eventFlags {
		next.events[f.event] = w.events[f.event]
		if raw, ok := sent[f.name]; ok {
			on, ok := decode(raw).(bool)
			if !ok {
				return stateErrorf(badValue, "%s must be true or false", f.name)
			}
			next.events[f.event] = on
		}
	}
	if raw, ok := sent["webhookUrl"]; ok {
		target, _ := decode(raw).(string)
		if err := st.checkOutbound(target); err != nil {
			return stateErrorf(badValue, "webhookUrl %v", err)
		}
		next.url = target
	}
	if raw, ok := sent["headId"]; ok {
		id, ok := decode(raw).(string)
		if !ok || id == "" {
			return stateErrorf(badValue, "headId must be the UUID of a head")
		}
		h, err := st.head(id)
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
func (st *state) checkOutbound(target string) error {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Hostname() == "":
		return fmt.Errorf("must be an absolute HTTPS URL")
	case u.Scheme == "https", u.Scheme == "http" && st.cfg.loopbackHTTP && loopback.Is(u.Hostname()):
		return nil
	case u.Scheme == "http" && loopback.Is(u.Hostname()):
		return fmt.Errorf("must use HTTPS (WithLoopbackHTTP allows plain http to this machine)")
	default:
		return fmt.Errorf("must use HTTPS")
	}
}

func (st *state) addWebhook(sent document) (*webhook, error) {
	w := &webhook{createdAt: now()}
	if err := st.apply(w, sent); err != nil {
		return nil, err
	}
	w.id, w.sharedKey = st.ids.webhookID(), st.ids.hex(32)
	st.webhooks[w.id] = w
	return w, nil
}

// webhook returns the webhook with an id.
func (st *state) webhook(given string) (*webhook, error) {
	id, _ := strconv.ParseInt(given, 10, 64) // not a number: an id that no webhook has
	if w, ok := st.webhooks[id]; ok {
		return w, nil
	}
	return nil, stateErrorf(noRecord, "there is no webhook %q", given)
}

// webhooksOf returns the webhooks of a head, oldest first.
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
