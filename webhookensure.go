package heads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Ensure brings about what spec says, and may be called again at any time: at
// every start of a program, by many at once. It turns delivery on, looks for
// the registration of the URL, creates it when there is none, and updates it
// when its events differ. Registrations of other URLs are left alone.
//
// PUT /head/{headId}/enable-events, GET /head-events, then POST /head-events or
// PATCH /head-events/{webhookId} where needed. URLs are compared as URLs: case
// of the host, a default port and a slash at the end do not count.
//
// Of several registrations of the URL the oldest is used. The ids of the others
// are in Duplicates of the result; they are deleted only if spec says so, and
// the result comes with an error when that fails. A registration that Ensure
// itself made beside one that somebody else made at the same moment is taken
// back. When the answer to a create is lost, Ensure looks whether it was
// carried out, and never creates again.
//
// What Create refuses is refused here too.
func (s *WebhooksService) Ensure(ctx context.Context, spec WebhookSpec) (*Webhook, error) {
	if err := spec.validate("Webhooks.Ensure"); err != nil {
		return nil, err
	}
	unlock, err := s.c.lock(ctx, "Webhooks.Ensure", headLock("webhooks", spec.HeadID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.deliver(ctx, spec.HeadID); err != nil {
		return nil, err
	}
	same, err := s.sameURL(ctx, spec)
	if err != nil {
		return nil, err
	}
	if len(same) == 0 {
		return s.createOnce(ctx, spec)
	}
	return s.settle(ctx, spec, same)
}

// deliver turns delivery on.
func (s *WebhooksService) deliver(ctx context.Context, headID string) error {
	answer, err := s.SetDelivery(ctx, headID, true)
	if err != nil {
		return err
	}
	read := func() (*Head, error) { return s.c.Heads.Get(ctx, headID) }
	return confirm("Webhooks.Ensure", answer, headID, read, func(h *Head) bool { return h.EnableEvents })
}

// sameURL lists the registrations of the spec's URL, the oldest first.
func (s *WebhooksService) sameURL(ctx context.Context, spec WebhookSpec) ([]Webhook, error) {
	hooks, err := s.List(ctx, spec.HeadID)
	if err != nil {
		return nil, err
	}
	wanted := comparableURL(spec.URL)
	same := slices.DeleteFunc(hooks, func(w Webhook) bool { return comparableURL(w.URL) != wanted })
	sortByAge(same)
	return same, nil
}

// sortByAge puts the oldest first. Ids decide where the times are the same, and
// everywhere if one of the times can't be read.
func sortByAge(hooks []Webhook) {
	undated := slices.ContainsFunc(hooks, func(w Webhook) bool { return w.CreatedAt.IsZero() })
	slices.SortFunc(hooks, func(a, b Webhook) int {
		if undated {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
}

// createOnce creates the registration and looks at what there is afterwards:
// the answer may have been lost, and somebody else may have been faster.
func (s *WebhooksService) createOnce(ctx context.Context, spec WebhookSpec) (*Webhook, error) {
	created, createErr := s.Create(ctx, spec)
	if createErr != nil && !mayHaveHappened(createErr) {
		return nil, createErr
	}
	same, listErr := s.sameURL(ctx, spec)
	switch {
	case createErr != nil && listErr != nil:
		return nil, fmt.Errorf("heads: Webhooks.Ensure: the webhook may have been registered; run Ensure again, which finds it: %w", errors.Join(createErr, listErr))
	case len(same) == 0 && createErr != nil:
		return nil, createErr
	case len(same) == 0: // not listed yet, or not to be listed
		return created, nil
	}
	if created != nil {
		mine := func(w Webhook) bool { return w.SharedKey == created.SharedKey }
		if i := slices.IndexFunc(same, mine); i > 0 {
			if err := s.remove(ctx, same[i].ID); err != nil {
				return nil, fmt.Errorf("heads: Webhooks.Ensure: webhook %d was made beside %d and could not be taken back: %w", same[i].ID, same[0].ID, err)
			}
			same = slices.Delete(same, i, i+1)
		}
	}
	return s.settle(ctx, spec, same)
}

// settle makes the oldest registration what the spec says, and deals with the
// others.
func (s *WebhooksService) settle(ctx context.Context, spec WebhookSpec, same []Webhook) (*Webhook, error) {
	hook := &same[0]
	if asked := spec.asked(); !slices.Equal(hook.Events(), asked.Events()) {
		answer, err := s.Update(ctx, hook.ID, asked.writable())
		if err != nil {
			return nil, err
		}
		read := func() (*Webhook, error) { return s.Get(ctx, hook.ID) }
		if err := confirm("Webhooks.Ensure", answer, strconv.FormatInt(hook.ID, 10), read, asked.sameWritable); err != nil {
			return nil, err
		}
		hook.URL = asked.URL
		for _, f := range eventFlags {
			*f.webhook(hook) = *f.webhook(asked)
		}
	}
	var faults faultList
	for _, other := range same[1:] {
		if !spec.RemoveDuplicates {
			hook.Duplicates = append(hook.Duplicates, other.ID)
		} else if err := s.remove(ctx, other.ID); err != nil {
			hook.Duplicates = append(hook.Duplicates, other.ID)
			faults.add(err)
		}
	}
	return hook, faults.join()
}

// remove deletes a registration that another program may be deleting too.
func (s *WebhooksService) remove(ctx context.Context, webhookID int64) error {
	if err := s.Delete(ctx, webhookID); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// mayHaveHappened says whether the service may have done what a failed call
// asked for: it gave no whole answer, or one that blames the server, or one
// that can't be read.
func mayHaveHappened(err error) bool {
	var lost *transportError
	var unread *DecodeError
	return errors.As(err, &lost) || errors.As(err, &unread) || errors.Is(err, ErrServer)
}

// comparableURL is the same text for addresses that mean the same place. One
// with a user name means none that a spec may hold.
func comparableURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return raw
	}
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "" && u.Scheme == "http":
		port = "80"
	}
	text := u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port) + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return text
}
