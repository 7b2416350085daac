package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/registration"
)

// webhookWork is the work to do on the registrations of a head.
type webhookWork struct {
	ensure  []heads.WebhookSpec
	remove  []int64
	changes []Change
	exact   []any // of each change: id, URL and events before, URL and events after
}

// byAge sorts registrations, the oldest first. Of several with one URL, the oldest is used.
func byAge(registered []heads.Webhook) {
	registration.SortByAge(registered, func(w heads.Webhook) (time.Time, int64) { return w.CreatedAt.Time, w.ID })
}

// webhookChanges compares the registrations of a spec with those of a head.
func webhookChanges(spec Spec, registered []heads.Webhook) (work webhookWork) {
	byAge(registered)
	used := map[int64]bool{}
	for _, wanted := range spec.Webhooks {
		i := slices.IndexFunc(registered, func(w heads.Webhook) bool { return registration.URLKey(w.URL) == registration.URLKey(wanted.URL) })
		events := normalEvents(wanted.Events)
		if i >= 0 {
			used[registered[i].ID] = true
			if slices.Equal(normalEvents(registered[i].Events()), events) {
				continue
			}
		}
		from, before := "", heads.Webhook{}
		if i >= 0 {
			before = registered[i]
			from = joinEvents(normalEvents(before.Events()))
		}
		work.exact = append(work.exact, []any{before.ID, before.URL, from, wanted.URL, events})
		work.changes = append(work.changes, newChange(webhookField(wanted.URL), from, joinEvents(events)))
		work.ensure = append(work.ensure, heads.WebhookSpec{HeadID: spec.ID, URL: wanted.URL, Events: events})
	}
	if !spec.PruneWebhooks {
		return work
	}
	for _, w := range registered {
		if !used[w.ID] {
			work.remove = append(work.remove, w.ID)
			work.exact = append(work.exact, []any{w.ID, w.URL, normalEvents(w.Events())})
			events := joinEvents(normalEvents(w.Events()))
			if events == "" {
				events = "no event"
			}
			work.changes = append(work.changes, newChange(webhookField(w.URL), events, ""))
		}
	}
	return work
}

// webhookField returns the name of a registration in a Change: its URL without parts that may be
// secret.
func webhookField(url string) string {
	return "webhook " + mask.CallbackURL(url, "")
}

// do creates and updates registrations before it deletes others, so that the head always has a
// receiver.
func (w webhookWork) do(ctx context.Context, c *heads.Client, headID string) error {
	for _, spec := range w.ensure {
		if _, err := c.Webhooks.Ensure(ctx, spec, heads.EnsureOptions{KeepDelivery: true}); err != nil {
			return err
		}
	}
	for _, id := range w.remove {
		if err := c.Webhooks.Delete(ctx, id); err != nil && !errors.Is(err, heads.ErrNotFound) {
			return err
		}
	}
	if len(w.remove) == 0 {
		return nil
	}
	left, err := c.Webhooks.List(ctx, headID)
	if err != nil {
		return err
	}
	for _, hook := range left {
		if slices.Contains(w.remove, hook.ID) {
			return notShown(fmt.Sprintf("webhook %d was deleted, but it is still listed", hook.ID))
		}
	}
	return nil
}
