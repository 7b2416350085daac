package heads

import (
	"context"
	"errors"
)

// KeySource returns a source for NewEventHandler that asks the service for the
// shared keys of a head (GET /head-events) and remembers them.
//
// It asks once for several deliveries at the same time, remembers heads without
// a registration as well, and, when no key matches, asks again, at most once a
// minute for a head, so that a new key works without a restart. Its memory is
// bounded however many head ids strangers make up, and an id that is not a UUID
// never reaches the service.
//
// The keys of all registrations of a head count, whatever their URL: who
// receives its events at another URL could sign for this handler too. Where
// that matters, give the keys with HeadKeys.
//
// While the service can't be asked, deliveries are answered 503, so that they
// come again. NewEventHandler refuses what an option refused.
func (s *WebhooksService) KeySource(opts ...KeySourceOption) KeySource {
	return newCachedKeySource(s.sharedKeys, opts...)
}

// sharedKeys returns the keys of the head's registrations. A head that the
// service does not know has none.
func (s *WebhooksService) sharedKeys(ctx context.Context, headID string) ([]string, error) {
	hooks, err := s.List(ctx, headID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, hook := range hooks { // of this head, as List has proven
		keys = append(keys, hook.SharedKey.Reveal())
	}
	return keys, nil
}
