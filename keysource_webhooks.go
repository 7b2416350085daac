package heads

import (
	"context"
	"errors"
)

// KeySource returns a source for NewEventHandler that asks the service for the
// shared keys of a head (GET /head-events) and remembers them.
//
// It asks once for several deliveries at the same time and remembers heads
// without a registration as well. When no key matches, it asks again, so that a
// new key works without a restart; a head's mismatches ask at most three times
// a minute. Its memory is bounded however many head ids strangers send, and an
// id that is not a UUID never reaches the service.
//
// While the service can't be asked, the keys of known heads stay in use after
// they have expired (WithStaleKeys). Questions about heads that are not known
// pass a limit of 5 a second after a burst of 20, and are not retried, since
// anyone can cause them. A delivery whose keys can't be asked for is answered
// 503, so that it is sent again.
//
// The keys of all registrations of a head count, whatever their URL: who
// receives its events at another URL could sign for this handler too. Where
// that matters, give the keys with HeadKeys.
//
// NewEventHandler refuses what an option refused.
func (s *WebhooksService) KeySource(opts ...KeySourceOption) KeySource {
	return newCachedKeySource(s.sharedKeys, opts...)
}

// sharedKeys returns the keys of the head's registrations. A head that the
// service does not know has none.
func (s *WebhooksService) sharedKeys(ctx context.Context, headID string, retry bool) ([]string, error) {
	hooks, err := s.list(ctx, headID, retry)
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
