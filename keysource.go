package heads

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
)

// KeySource says which shared keys an event of a head may be signed with.
//
// Keys is called before anything of the delivery has been verified. It returns
// no keys and no error for a head that it does not know, which the sender can't
// tell from a wrong signature. An error means that it can't know at the moment:
// the sender is asked to try again later. Keys may be called by several
// goroutines at once.
type KeySource interface {
	Keys(ctx context.Context, hint KeyHint) ([]string, error)
}

// KeyHint is what is known of a delivery before it is verified. All of it was
// chosen by the sender.
type KeyHint struct {
	HeadID   string        // the head that the event claims to be of
	Request  *http.Request // for sources that look at the URL; its body has been read
	Mismatch bool          // the keys given before did not match; newer ones may
}

// SharedKeys returns a source that has the same keys for every head: the key of
// the one registration behind a URL, and a second one while it is being
// replaced. Empty keys are left out, since they verify nothing; without any
// other key NewEventHandler returns an InvalidError.
//
// Where several heads send to one URL, use HeadKeys: with SharedKeys the key of
// one head signs for all.
func SharedKeys(keys ...string) KeySource {
	keys = usableKeys(keys)
	return staticKeys{
		name: "SharedKeys",
		find: func(string) []string { return keys },
		err:  refuseKeys(len(keys) == 0),
	}
}

// HeadKeys returns a source that knows the keys of each head by its id, for many
// heads behind one URL. The map is copied. Ids are compared as they are
// written; empty ids and keys are left out, and without any other key
// NewEventHandler returns an InvalidError.
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
		name: "HeadKeys",
		find: func(headID string) []string { return byHead[headID] },
		err:  refuseKeys(usable == 0),
	}
}

func refuseKeys(none bool) error {
	return refuseOption(none, "keys", "hold no usable shared key; an empty key or head id is none, so every delivery would be refused")
}

// usableKeys returns a copy without empty keys, to which nothing can be
// appended in place.
func usableKeys(keys []string) []string {
	return slices.Clip(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == "" }))
}

// staticKeys has its keys in a closure, where no verb of package fmt looks.
type staticKeys struct {
	name string
	find func(headID string) []string
	err  error // for NewEventHandler
}

// Keys returns the keys of the head. They never change, so a mismatch brings
// none that were not there before.
func (s staticKeys) Keys(_ context.Context, hint KeyHint) ([]string, error) {
	return s.find(hint.HeadID), nil
}

func (s staticKeys) String() string             { return s.name + "(" + redacted + ")" }
func (s staticKeys) Format(f fmt.State, _ rune) { writeText(f, s.String()) }
func (s staticKeys) LogValue() slog.Value       { return slog.StringValue(s.String()) }
