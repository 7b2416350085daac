package headstest

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
)

// state is what Reset replaces. It is used under the emulator's lock.
type state struct {
	ctx            context.Context //nolint:containedctx // ends with Reset and Close
	end            context.CancelFunc
	ids            *ids
	organisation   document
	visuals        map[string]*visual
	heads          map[string]document
	encoded        map[string][]byte // the answers of GET for heads that were read since their last change
	webhooks       map[int64]*webhook
	requests       journal[Request]
	deliveries     journal[Delivery]
	log            journal[happening]
	sessions       []*Session     // oldest first
	undelivered    map[string]int // by session, the deliveries that have not ended
	epoch          string         // differs for each state, so a reader of the stream notices a Reset
	faults         []*fault
	chance         *rand.Rand // for faults with a share
	deliveryFaults []*deliveryFault
}

func newState(ctx context.Context, cfg *config) *state {
	st := &state{
		ids:      newIDs(cfg.seed, idStream),
		visuals:  map[string]*visual{},
		heads:    map[string]document{},
		encoded:  map[string][]byte{},
		webhooks: map[int64]*webhook{},

		undelivered: map[string]int{},
		requests:    journal[Request]{limit: cfg.journalSize},
		deliveries:  journal[Delivery]{limit: cfg.journalSize},
		log:         journal[happening]{limit: cfg.journalSize},
		epoch:       strconv.FormatUint(rand.Uint64(), 36),
		chance:      rand.New(newSource(cfg.seed, chanceStream)),
	}
	st.ctx, st.end = context.WithCancel(ctx)
	st.organisation = newDocument(map[string]any{
		"id": st.ids.uuid(), "createdAt": now(), "updatedAt": now(), "apiKey": st.ids.hex(16),
		"name": "MyOrg", "publicId": st.ids.orgPublicID(), "alias": "my-org",
		"subscriptionType": "business", "slots": 10, "streaming": true, "isActive": true,
	})
	return st
}

func or[T comparable](given, otherwise T) T {
	var none T
	if given == none {
		return otherwise
	}
	return given
}

// savedRecords are the records of a state at one moment.
type savedRecords struct {
	ids      ids
	visuals  map[string]*visual
	heads    map[string]document
	webhooks map[int64]*webhook
}

func (st *state) records() savedRecords {
	saved := savedRecords{st.ids.clone(), maps.Clone(st.visuals), map[string]document{}, maps.Clone(st.webhooks)}
	for id, h := range st.heads {
		saved.heads[id] = maps.Clone(h)
	}
	return saved
}

func (st *state) restore(saved savedRecords) {
	clear(st.encoded)
	st.ids, st.visuals, st.heads, st.webhooks = &saved.ids, saved.visuals, saved.heads, saved.webhooks
}
