package headstest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
)

// perform does the steps, such as "message inactive", in one session.
func perform(s *headstest.Session, steps string) error {
	for _, step := range strings.Fields(steps) {
		message := func() error { return s.UserMessage("hello") }
		do := map[string]func() error{"message": message, "inactive": s.Inactive, "timeout": s.Timeout, "close": s.Close}[step]
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func TestSessionsCauseTheContractsEvents(t *testing.T) {
	for steps, want := range map[string][]string{
		"message":                        {"start_conversation"},
		"message message message":        {"start_conversation"},
		"inactive":                       {"inactivity_warning"},
		"message inactive inactive":      {"start_conversation", "inactivity_warning", "inactivity_warning"},
		"message timeout":                {"start_conversation", "timeout_conversation", "end_conversation"},
		"close":                          {"end_conversation"},
		"message inactive message close": {"start_conversation", "inactivity_warning", "end_conversation"},
	} {
		play(t, &receiver{}, nil, func(s *scene) {
			s.converse(steps)
			assert.Equal(t, want, s.types(), steps)
		})
	}
}

func TestClosedSessionsTakeNoStep(t *testing.T) {
	for _, before := range []string{"close", "timeout"} {
		play(t, &receiver{}, nil, func(s *scene) {
			session := s.StartSession(s.head)
			require.NoError(t, perform(session, before))
			s.settle()
			types := s.types()
			for _, step := range []string{"message", "inactive", "timeout", "close"} {
				assert.ErrorContains(t, perform(session, step), "closed")
			}
			s.settle()
			assert.Equal(t, types, s.types(), "no further event after %s", before)
		})
	}
}

func TestSessionNeedsAHeadThatIsThere(t *testing.T) {
	e := newEmulator(t)
	asleep := e.AddHead(headstest.Head{Fields: map[string]any{"isActive": false}})
	reset := e.StartSession(e.AddHead(headstest.Head{}))
	for _, step := range []string{"message", "inactive", "timeout", "close"} {
		assert.ErrorContains(t, perform(e.StartSession("nobody"), step), `no head "nobody"`)
	}
	for _, step := range []string{"message", "inactive", "timeout"} {
		assert.ErrorContains(t, perform(e.StartSession(asleep), step), "not active")
	}
	e.Reset()
	assert.ErrorContains(t, reset.UserMessage("x"), "reset")
}

func TestSwitchOfModeMakesTheOldAccessURLInaccessible(t *testing.T) {
	a, id := withHead(t)
	before := a.StartSession(id)
	require.NoError(t, before.UserMessage("x"))
	a.ok("PUT", streaming(id, true), "")
	for _, step := range []string{"message", "inactive", "timeout"} {
		assert.ErrorContains(t, perform(before, step), "no longer accessible")
	}
	require.NoError(t, before.Close(), "the connection closes all the same")
	require.NoError(t, a.StartSession(id).UserMessage("x"))
}

func TestDeliveryNeedsBothSwitchesWhenTheEventOccurs(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		for _, flags := range [][]heads.EventType{nil, {heads.EventStartConversation}, {heads.EventEndConversation}, allEvents} {
			play(t, &receiver{}, nil, func(s *scene) {
				head := s.AddHead(headstest.Head{EnableEvents: enabled})
				addWebhook(t, s, head, "https://other.example.test", flags...)
				require.NoError(t, perform(s.StartSession(head), "message inactive timeout"))
				s.settle()
				want := []string{}
				for _, flag := range flags {
					if enabled {
						want = append(want, string(flag))
					}
				}
				assert.Equal(t, want, s.types())
			})
		}
	}
}

func TestEventsBeforeDeliveryIsEnabledAreNotDelivered(t *testing.T) {
	play(t, &receiver{}, nil, func(s *scene) {
		put := func(on bool) { s.ok("PUT", fmt.Sprintf("/head/%s/enable-events?enableEvents=%t", s.head, on), "") }
		session := s.StartSession(s.head)
		put(false)
		require.NoError(t, session.UserMessage("x"))
		put(true)
		require.NoError(t, session.Inactive())
		put(false)
		require.NoError(t, session.Close())
		s.settle()
		assert.Equal(t, []string{"inactivity_warning"}, s.types())
	})
}

func TestEventHoldsTheContractsFields(t *testing.T) {
	for layout, opts := range map[string][]headstest.Option{
		"2006-01-02 15:04:05":      nil,
		"2006-01-02T15:04:05.000Z": {headstest.WithTimestampLayout("2006-01-02T15:04:05.000Z")},
	} {
		play(t, &receiver{}, opts, func(s *scene) {
			head := s.AddHead(headstest.Head{EnableEvents: true, Fields: map[string]any{"publicId": "li-1", "orgPublicId": "Org-1"}})
			addWebhook(t, s, head, "https://other.example.test", heads.EventStartConversation)
			session, occurred := s.StartSession(head), time.Now().UTC().Format(layout)
			require.NoError(t, session.UserMessage("x"))
			s.settle()
			d := s.Deliveries()[0]
			assert.Equal(t, s.all()[0].body, d.Body)
			assert.JSONEq(t, fmt.Sprintf(`{"timestamp":%q,"head_id":%q,"session_id":%q,"public_head_id":"li-1","public_org_id":"Org-1","event_type":"start_conversation"}`,
				occurred, head, session.ID()), string(d.Body))
			assert.Equal(t, []any{heads.EventStartConversation, occurred, head, session.ID(), "li-1", "Org-1"},
				[]any{d.Event.Type, d.Event.Timestamp.Text, d.Event.HeadID, d.Event.SessionID, d.Event.PublicHeadID, d.Event.PublicOrgID})
		})
	}
}

func TestUndeliveredCountsTheDeliveriesThatHaveNotEnded(t *testing.T) {
	slow := func(n int, r *http.Request, body []byte) (*http.Response, error) {
		<-time.After(time.Millisecond) // no delivery ends while it is counted
		return failing(2)(n, r, body)
	}
	play(t, &receiver{answer: slow}, nil, func(s *scene) {
		one, other := s.StartSession(s.head), s.StartSession(s.head)
		assert.Zero(t, one.Undelivered(), "nothing has happened")
		require.NoError(t, perform(one, "message inactive"))
		require.NoError(t, perform(other, "message"))
		assert.Equal(t, []int{2, 1}, []int{one.Undelivered(), other.Undelivered()})
		<-time.After(2 * time.Second) // the second of three attempts was refused
		synctest.Wait()
		assert.Equal(t, []int{2, 1}, []int{one.Undelivered(), other.Undelivered()})
		<-time.After(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []int{0, 0}, []int{one.Undelivered(), other.Undelivered()})
		assert.Len(t, s.Deliveries(), 5)
		require.NoError(t, s.Redeliver(s.Deliveries()[0]))
		assert.Equal(t, 1, one.Undelivered(), "a redelivery is a delivery of its own")
		s.settle()
		assert.Zero(t, one.Undelivered())
	})
}

func TestUndeliveredEndsWhateverHappensToAnEvent(t *testing.T) {
	play(t, &receiver{answer: always(500)}, nil, func(s *scene) {
		session := s.StartSession(s.head)
		s.InjectDelivery(headstest.DeliveryFault{Times: 1, Drop: true})
		require.NoError(t, session.Inactive())
		assert.Zero(t, session.Undelivered(), "dropped")
		s.InjectDelivery(headstest.DeliveryFault{Times: 1, Duplicate: true})
		require.NoError(t, session.Inactive())
		assert.Equal(t, 2, session.Undelivered(), "sent twice")
		s.settle()
		assert.Zero(t, session.Undelivered(), "given up")
		s.InjectDelivery(headstest.DeliveryFault{Times: 1, Reorder: true})
		require.NoError(t, session.Inactive())
		s.settle()
		assert.Equal(t, 1, session.Undelivered(), "held until the next event")
		s.ok("DELETE", fmt.Sprint("/head-events/", s.hook), "")
		assert.Zero(t, session.Undelivered(), "its registration was removed")
		last := s.Deliveries()[len(s.Deliveries())-1]
		assert.ErrorIs(t, last.Err, headstest.ErrRemoved)
		assert.True(t, last.Final)

		addWebhook(t, s, s.head, "https://other.example.test", allEvents...)
		require.NoError(t, session.Inactive())
		assert.Equal(t, 1, session.Undelivered())
		s.Reset()
		assert.Zero(t, session.Undelivered(), "reset")
	})
	play(t, &receiver{answer: always(500)}, []headstest.Option{headstest.WithBacklog(1)}, func(s *scene) {
		session := s.StartSession(s.head)
		require.NoError(t, perform(session, strings.Repeat("inactive ", 5)))
		assert.LessOrEqual(t, session.Undelivered(), 2, "what exceeds the backlog has ended")
		s.Emulator.Close()
		assert.Zero(t, session.Undelivered(), "closed")
	})
}

// 20,000 sessions at once, each with three events: every event is delivered once and
// in its order, and the journal is bounded.
func TestThousandsOfSessionsAtOnce(t *testing.T) {
	const kept = 4096
	sessions := exhaustive.Count(6_000, 20_000)
	play(t, &receiver{}, []headstest.Option{headstest.WithConsole()}, func(s *scene) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range sessions / 20 {
					assert.NoError(t, perform(s.StartSession(s.head), "message inactive close"))
				}
			})
		}
		wg.Wait()
		s.settle()
		next := map[string]int{}
		want := []string{"start_conversation", "inactivity_warning", "end_conversation"}
		for _, r := range s.all() {
			id := object(t, string(r.body))["session_id"].(string)
			require.Equal(t, want[next[id]], r.eventType)
			next[id]++
		}
		assert.Len(t, next, sessions)
		assert.Len(t, s.all(), 3*sessions)
		assert.Len(t, s.Deliveries(), kept)
	})
}

func TestOldestSessionsAreForgotten(t *testing.T) {
	const kept = 4096
	a, id := withConsole(t).with(headstest.Head{})
	first := a.StartSession(id).ID()
	for range kept {
		a.StartSession(id)
	}
	assert.Len(t, read[[]any](a, "sessions"), kept)
	a.control("POST", "sessions/"+first+"/close", "").refused(t, 404, "no session")
}
