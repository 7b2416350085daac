package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headsapi/heads-go/internal/registration"
)

const opEnsure = "Webhooks.Ensure"

// EnsureOptions change what Ensure does besides the registration.
type EnsureOptions struct {
	RemoveDuplicates bool // delete further registrations of the same URL
	KeepDelivery     bool // don't change the delivery of events
}

// Ensured is a registration that Ensure has found, changed or created. Packages fmt and log/slog
// show its Webhook.
type Ensured struct {
	Webhook      // as it is now
	Created bool `json:"created"` // by this call

	// Duplicates holds the ids of further registrations of the URL that were not
	// removed. Each of them receives every event too, signed with its own key.
	Duplicates []int64 `json:"duplicates"`
}

// UnmarshalJSON reads what package json has written of an Ensured.
func (e *Ensured) UnmarshalJSON(document []byte) error {
	if err := e.Webhook.UnmarshalJSON(document); err != nil {
		return err
	}
	return json.Unmarshal(document, &struct {
		Created    *bool    `json:"created"`
		Duplicates *[]int64 `json:"duplicates"`
	}{&e.Created, &e.Duplicates})
}

// Ensure makes sure that the registration that spec describes exists, exactly
// once. It may be called at any time, at every start of a program, by many at
// once. It turns delivery on, unless KeepDelivery is set, and lists the
// registrations of the URL. If there is none, it creates one; if the events
// differ, it updates them. Registrations of other URLs are not changed.
//
// PUT /head/{headId}/enable-events, GET /head-events, then POST /head-events or
// PATCH /head-events/{webhookId} where needed. URLs are compared as URLs: the
// host is case-insensitive, and a default port and a slash at the end are
// ignored.
//
// If there are several registrations of the URL, Ensure uses the oldest.
// Duplicates of the result holds the ids of the others. They are deleted only if
// RemoveDuplicates is set; if that fails, Ensure returns the result and an error.
// If another program creates a registration at the same moment, Ensure deletes its
// own. If the answer to a create is lost, Ensure lists the registrations again, and
// never creates a second one.
//
// One client runs one Ensure or Modify of a registration at a time.
// Ensure returns the same InvalidErrors as Create.
func (s *WebhooksService) Ensure(ctx context.Context, spec WebhookSpec, o EnsureOptions) (*Ensured, error) {
	if err := spec.validate(opEnsure); err != nil {
		return nil, err
	}
	unlock, err := s.core.lock(ctx, opEnsure, headLock("webhooks", spec.HeadID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !o.KeepDelivery {
		if err := s.deliver(ctx, spec.HeadID); err != nil {
			return nil, err
		}
	}
	e := ensuring{WebhooksService: s, spec: spec, o: o}
	return e.findOrCreate(ctx)
}

// deliver turns delivery on.
func (s *WebhooksService) deliver(ctx context.Context, headID string) error {
	answer, err := s.setDelivery(ctx, headID, true)
	if err != nil {
		return err
	}
	read := func() (*Head, error) { return (&HeadsService{s.service}).Get(ctx, headID) }
	return confirm(opEnsure, answer, headID, read, func(h *Head) bool { return h.EnableEvents })
}

// ensuring is one call of Ensure.
type ensuring struct {
	*WebhooksService
	spec     WebhookSpec
	o        EnsureOptions
	created  bool
	modified int64 // how many writes of Modify came before the registrations were listed
}

// findOrCreate finds, updates or creates the registration.
func (e *ensuring) findOrCreate(ctx context.Context) (*Ensured, error) {
	same, err := e.sameURL(ctx)
	if err != nil {
		return nil, err
	}
	if len(same) == 0 {
		return e.createOnce(ctx)
	}
	return e.adopt(ctx, same)
}

// sameURL lists the registrations of the spec's URL, the oldest first.
func (e *ensuring) sameURL(ctx context.Context) ([]Webhook, error) {
	e.modified = e.core.webhooksModified.Load()
	hooks, err := e.List(ctx, e.spec.HeadID)
	if err != nil {
		return nil, err
	}
	wanted := registration.URLKey(e.spec.URL)
	same := slices.DeleteFunc(hooks, func(w Webhook) bool { return registration.URLKey(w.URL) != wanted })
	registration.SortByAge(same, Webhook.age)
	return same, nil
}

// createOnce creates the registration and lists again: the answer may have been
// lost, and another program may have been faster.
func (e *ensuring) createOnce(ctx context.Context) (*Ensured, error) {
	created, createErr := e.Create(ctx, e.spec)
	if createErr != nil && !mayHaveHappened(createErr) {
		return nil, createErr
	}
	same, listErr := e.sameURL(ctx)
	switch {
	case createErr != nil && listErr != nil:
		return nil, fmt.Errorf("heads: Webhooks.Ensure: the webhook may have been registered; run it again, which finds it: %w", errors.Join(createErr, listErr))
	case len(same) == 0 && createErr != nil:
		return nil, createErr
	case len(same) == 0: // not listed yet, or not to be listed
		return &Ensured{Webhook: *created, Created: true}, nil
	}
	e.created = true // by this call, or by one whose answer was lost
	if created != nil {
		mine := func(w Webhook) bool { return w.SharedKey == created.SharedKey }
		if i := slices.IndexFunc(same, mine); i > 0 {
			if err := ignoreNotFound(e.Delete(ctx, same[i].ID)); err != nil {
				return nil, fmt.Errorf("heads: Webhooks.Ensure: webhook %d was created beside %d and could not be deleted again: %w", same[i].ID, same[0].ID, err)
			}
			same, e.created = slices.Delete(same, i, i+1), false
		}
	}
	return e.adopt(ctx, same)
}

// adopt updates the oldest registration to the spec, and deletes or reports the others.
func (e *ensuring) adopt(ctx context.Context, same []Webhook) (*Ensured, error) {
	hook := &same[0]
	if !slices.Equal(hook.Events(), e.spec.webhook().Events()) {
		adjusted, err := e.adjust(ctx, *hook)
		if err != nil {
			return nil, err
		}
		if adjusted == nil {
			return e.findOrCreate(ctx)
		}
		hook = adjusted
	}
	var faults faultList
	ensured := &Ensured{Webhook: *hook, Created: e.created}
	for _, other := range same[1:] {
		if !e.o.RemoveDuplicates {
			ensured.Duplicates = append(ensured.Duplicates, other.ID)
		} else if err := e.removeDuplicate(ctx, other); err != nil {
			ensured.Duplicates = append(ensured.Duplicates, other.ID)
			faults.add(err)
		}
	}
	return ensured, faults.join()
}

// adjust updates a registration to the spec. It returns nil if Modify has moved
// the registration since it was listed.
func (e *ensuring) adjust(ctx context.Context, listed Webhook) (*Webhook, error) {
	hook, unlock, err := e.lockWebhook(ctx, listed)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !e.isMeant(hook) {
		return nil, nil
	}
	wanted := e.spec.webhook()
	answer, err := e.update(ctx, hook.ID, wanted.writable())
	if err != nil {
		return nil, err
	}
	read := func() (*Webhook, error) { return e.Get(ctx, hook.ID) }
	if err := confirm(opEnsure, answer, strconv.FormatInt(hook.ID, 10), read, wanted.sameWritable); err != nil {
		return nil, err
	}
	hook.URL = wanted.URL
	hook.setEvents(e.spec.Events...)
	return hook, nil
}

// removeDuplicate deletes a registration, unless Modify has moved it since it
// was listed.
func (e *ensuring) removeDuplicate(ctx context.Context, listed Webhook) error {
	hook, unlock, err := e.lockWebhook(ctx, listed)
	if err != nil {
		return ignoreNotFound(err)
	}
	defer unlock()
	if !e.isMeant(hook) {
		return nil
	}
	return ignoreNotFound(e.Delete(ctx, hook.ID))
}

// lockWebhook prevents Modify from changing a registration. It returns the registration as
// it was listed, or reads it again if Modify has written one since.
func (e *ensuring) lockWebhook(ctx context.Context, listed Webhook) (*Webhook, func(), error) {
	unlock, err := e.core.lock(ctx, opEnsure, webhookLock(listed.ID))
	if err != nil {
		return nil, nil, err
	}
	if e.core.webhooksModified.Load() == e.modified {
		return &listed, unlock, nil
	}
	hook, err := e.Get(ctx, listed.ID)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return hook, unlock, nil
}

// isMeant reports whether a registration has the spec's head and URL.
func (e *ensuring) isMeant(hook *Webhook) bool {
	return strings.EqualFold(hook.HeadID, e.spec.HeadID) && registration.URLKey(hook.URL) == registration.URLKey(e.spec.URL)
}

// ignoreNotFound returns nil for ErrNotFound: another program may have deleted
// the same registration.
func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
