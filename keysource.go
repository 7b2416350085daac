package heads

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/keycache"
)

// KeySource returns the shared keys that an event of a head may be signed with.
//
// Keys is called before anything of the delivery has been verified. For an unknown
// head it returns no keys and no error, and the sender gets the answer to a wrong
// signature. An error means that the keys can't be found at the moment: the
// delivery is answered 503, so that the service redelivers the event. Keys may be
// called by several goroutines at once.
type KeySource interface {
	Keys(ctx context.Context, hint KeyHint) ([]string, error)
}

// KeyHint is what is known of a delivery before it is verified. The sender chose
// all of it.
type KeyHint struct {
	HeadID   string        // the head that the event claims to be of
	Request  *http.Request // for sources that need the URL; its body has been read
	Mismatch bool          // the keys returned before did not match; newer ones may
}

// SharedKeys returns a source that has the same keys for every head: the key of
// the one registration behind a URL, and a second one while it is being
// replaced. Empty keys are ignored, since they verify nothing. If there is no
// other key, NewEventHandler returns an InvalidError.
//
// Where several heads send to one URL, use HeadKeys: with SharedKeys the key of
// one head signs for all.
func SharedKeys(keys ...string) KeySource {
	keys = usableKeys(keys)
	return staticKeys{
		find: func(string) []string { return keys },
		err:  refuseKeys(len(keys) == 0),
	}
}

// HeadKeys returns a source that knows the keys of each head by its id, for many
// heads behind one URL. The map is copied. Ids are case-sensitive. Empty ids and
// keys are ignored; if there is no other key, NewEventHandler returns an
// InvalidError.
func HeadKeys(keysByHead map[string][]string) KeySource {
	byHead := make(map[string][]string, len(keysByHead))
	usable := 0
	for id, keys := range keysByHead {
		if id != "" {
			byHead[id] = usableKeys(keys)
			usable += len(byHead[id])
		}
	}
	return staticKeys{
		find: func(headID string) []string { return byHead[headID] },
		err:  refuseKeys(usable == 0),
	}
}

// newEventHandler is the operation of the InvalidErrors.
const newEventHandler = "NewEventHandler"

func refuseKeys(none bool) error {
	if none {
		return invalid(newEventHandler, "keys", "hold no usable shared key, so every delivery would be refused", "give a key that is not empty, of a head whose id is not empty")
	}
	return nil
}

// staticKeys has its keys in a closure, which package fmt does not print.
type staticKeys struct {
	find func(headID string) []string
	err  error // for NewEventHandler
}

// Keys returns the keys of the head. They never change, so a mismatch returns the same
// keys.
func (s staticKeys) Keys(_ context.Context, hint KeyHint) ([]string, error) {
	return s.find(hint.HeadID), nil
}

// KeySource returns a source for NewEventHandler that asks the service for the
// shared keys of a head (GET /head-events) and remembers them.
//
// It asks once for several deliveries at the same time and remembers heads
// without a registration as well. When no key matches, it asks again, so that a
// new key works without a restart; a head's mismatches ask at most three times
// a minute. Its memory is bounded however many unknown head ids arrive, and an
// id that is not a UUID never reaches the service.
//
// All sources of a client share what they know, and what its Ensure, Create, Get
// and List have read. At most 16 questions, about different heads, run at a time.
// Delete does not remove a key before it expires, since events that were signed with
// it may still arrive.
//
// While the service can't be asked, the keys of known heads are used even after
// they have expired (WithStaleKeys). Anyone can cause questions about unknown
// heads, so these are not retried, and those that find no keys are limited to 5 a
// second after a burst of 20. An event of an unknown head waits for that limit. If it
// takes too long, the delivery is answered 503, so that the service
// redelivers the event. Before it has asked, the source can't distinguish a new
// head from an invented one: name the heads that you expect with WithHeads.
//
// The source accepts the keys of all registrations of a head, also of those with
// another URL. A receiver at another URL could therefore sign for this handler
// too. Where that matters, use HeadKeys.
//
// NewEventHandler returns the InvalidErrors of the options.
func (s *WebhooksService) KeySource(opts ...KeySourceOption) KeySource {
	return newCachedKeys(s.keyCache(), opts...)
}

// KeySourceOption changes how the source of WebhooksService.KeySource works.
type KeySourceOption func(*cachedKeys) error

// WithKeyTTL sets how long the keys of a head are used before they are read
// again; 5 minutes is the default. The key of a deleted registration verifies
// for at most that long, and longer only while the service can't be asked
// (WithStaleKeys). A head without keys is remembered for a minute, or for d if
// that is shorter. A d that is not positive is refused by NewEventHandler.
func WithKeyTTL(d time.Duration) KeySourceOption {
	return func(s *cachedKeys) error {
		if d <= 0 {
			return invalid(keySourceOperation, "WithKeyTTL", fmt.Sprintf("is %v", d), "give a duration above 0")
		}
		s.source.get().TTL = d
		return nil
	}
}

// WithStaleKeys sets how long the keys of a known head are used after they
// have expired, while reading them again fails or takes more than a second; an
// hour is the default. So a receiver continues to accept events during an outage of
// the service. The key of a registration that was deleted in the meantime then
// verifies until the service can be asked again, at most for max longer than
// WithKeyTTL. With 0 no expired key is used. A negative max is refused by
// NewEventHandler.
func WithStaleKeys(max time.Duration) KeySourceOption {
	return func(s *cachedKeys) error {
		if max < 0 {
			return invalid(keySourceOperation, "WithStaleKeys", fmt.Sprintf("%v is negative", max), "use 0 to refuse expired keys")
		}
		s.source.get().Stale = max
		return nil
	}
}

// WithHeads names heads whose events the receiver expects. The source reads their
// keys in the background as soon as it is made, with the client's rate limit and
// retries. After a failure it pauses for 1 s, later for up to a minute, and it ends
// when nothing was answered for 10 minutes. An event of a named head never waits for the
// limit of unknown heads, even if its keys were not read yet. A named head without keys
// is asked about again at most three times a minute.
//
// Ids are UUIDs, as in Head.ID; NewEventHandler refuses all others. WithHeads can be
// given several times.
func WithHeads(ids ...string) KeySourceOption {
	return func(s *cachedKeys) error {
		var faults faultList
		for _, id := range ids {
			if !check.IsUUID(id) {
				f := check.HeadID(id)
				faults.add(invalid(keySourceOperation, "WithHeads", "holds an id that "+f.Problem, f.Remedy))
				continue
			}
			source := s.source.get()
			if source.Named == nil {
				source.Named = make(map[string]struct{})
			}
			source.Named[strings.ToLower(id)] = struct{}{}
		}
		return faults.join()
	}
}

const keySourceOperation = "Webhooks.KeySource"

// cachedKeys is the source that asks and remembers. An err from its options is
// found by NewEventHandler, and returned by every call of Keys.
type cachedKeys struct {
	source sealed[*keycache.Source] // its cache has keys
	err    error
}

// newCachedKeys returns a source of what cache knows, and begins to read the heads of
// WithHeads.
func newCachedKeys(cache *keycache.Cache, opts ...KeySourceOption) cachedKeys {
	source := cache.Source()
	s := cachedKeys{source: seal(&source)}
	var faults faultList
	for _, opt := range opts {
		if opt == nil {
			faults.add(invalid(keySourceOperation, "option", "is nil", "leave it out"))
			continue
		}
		faults.add(opt(&s))
	}
	if s.err = faults.join(); s.err == nil {
		cache.Read(slices.Sorted(maps.Keys(source.Named)))
	}
	return s
}

// Keys returns the keys of the head. A text that is not a UUID is the id of no
// head, and ids are case-insensitive.
func (s cachedKeys) Keys(ctx context.Context, hint KeyHint) ([]string, error) {
	if s.err != nil {
		return nil, s.err
	}
	if !check.IsUUID(hint.HeadID) {
		return nil, nil
	}
	return s.source.get().Get(ctx, strings.ToLower(hint.HeadID), hint.Mismatch)
}
