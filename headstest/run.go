package headstest

import (
	"context"
	"math/rand/v2"
	"strconv"
)

// maxSessions is how many sessions the control API keeps. It drops the oldest
// first.
const maxSessions = 4096

// run has everything that Reset replaces: the records, what has happened, and the faults.
// It is used under the emulator's lock.
type run struct {
	*state
	ctx            context.Context //nolint:containedctx // ends with Reset and Close
	end            context.CancelFunc
	requests       journal[Request]
	deliveries     journal[Delivery]
	log            journal[logEntry]
	sessions       []*session       // oldest first
	queues         map[int64]*queue // by the id of the webhook
	undelivered    map[string]int   // by session, the deliveries that have not ended
	epoch          string           // differs for each run, so a reader of the stream notices a Reset
	faults         faultList[Fault]
	lastFault      int        // counts the faults of both kinds
	random         *rand.Rand // for faults with a share
	deliveryFaults faultList[DeliveryFault]
}

func newRun(ctx context.Context, cfg *config) *run {
	rn := &run{
		state:       newState(cfg),
		requests:    journal[Request]{limit: cfg.journalSize},
		deliveries:  journal[Delivery]{limit: cfg.journalSize},
		log:         journal[logEntry]{limit: cfg.journalSize},
		queues:      map[int64]*queue{},
		undelivered: map[string]int{},
		epoch:       strconv.FormatUint(rand.Uint64(), 36),
		random:      rand.New(newSource(cfg.seed, faultStream)),
	}
	rn.ctx, rn.end = context.WithCancel(ctx)
	return rn
}

// queue returns the queue of a webhook.
func (rn *run) queue(webhookID int64) *queue {
	q, ok := rn.queues[webhookID]
	if !ok {
		q = &queue{}
		rn.queues[webhookID] = q
	}
	return q
}

// addSession keeps the newest sessions for the control API.
func (rn *run) addSession(s *session) {
	rn.sessions = append(rn.sessions, s)
	if len(rn.sessions) > maxSessions {
		rn.sessions[0] = nil // the array is kept until append moves it
		rn.sessions = rn.sessions[1:]
	}
}

// ended counts down the deliveries of a session that have not ended.
func (rn *run) ended(sessionID string) {
	if rn.undelivered[sessionID]--; rn.undelivered[sessionID] <= 0 {
		delete(rn.undelivered, sessionID)
	}
}
