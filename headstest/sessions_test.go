package headstest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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

func mustUnmarshal(b []byte, v any) {
	if err := json.Unmarshal(b, v); err != nil {
		panic(err)
	}
}

// perform does the steps, such as "message inactive", in one session.
func perform(s *headstest.Session, steps string) error {
	for _, step := range strings.Fields(steps) {
		var err error
		switch step {
		case "message":
			err = s.UserMessage("hello")
		case "inactive":
			err = s.Inactive()
		case "timeout":
			err = s.Timeout()
		case "close":
			err = s.Close()
		default:
			panic(step)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func TestSessionsCauseTheContractsEvents(t *testing.T) {
	rows := []struct {
		steps string
		want  []string
	}{
		{"message", []string{"start_conversation"}},
		{"message message message", []string{"start_conversation"}},
		{"inactive", []string{"inactivity_warning"}},
		{"message inactive inactive", []string{"start_conversation", "inactivity_warning", "inactivity_warning"}},
		{"message timeout", []string{"start_conversation", "timeout_conversation", "end_conversation"}},
		{"close", []string{"end_conversation"}},
		{"message inactive message close", []string{"start_conversation", "inactivity_warning", "end_conversation"}},
	}
	for _, row := range rows {
		t.Run(row.steps, func(t *testing.T) {
			play(t, &receiver{}, nil, func(s *scene) {
				s.converse(row.steps)
				assert.Equal(t, row.want, s.types())
			})
		})
	}
}

func TestClosedSessionsTakeNoStep(t *testing.T) {
	for _, before := range []string{"close", "timeout"} {
		for _, step := range []string{"message", "inactive", "timeout", "close"} {
			t.Run(step+" after "+before, func(t *testing.T) {
				play(t, &receiver{}, nil, func(s *scene) {
					session := s.StartSession(s.head)
					require.NoError(t, perform(session, before))
					s.settle()
					types := s.types()
					assert.ErrorContains(t, perform(session, step), "closed")
					s.settle()
					assert.Equal(t, types, s.types(), "no further event")
				})
			})
		}
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
			t.Run(fmt.Sprint(enabled, flags), func(t *testing.T) {
				rc := &receiver{}
				play(t, rc, nil, func(s *scene) {
					head := s.AddHead(headstest.Head{EnableEvents: enabled})
					addWebhook(t, s, head, "https://other.example.test", flags...)
					require.NoError(t, perform(s.StartSession(head), "message inactive timeout"))
					s.settle()
					want := []string{}
					for _, occurred := range []heads.EventType{"start_conversation", "inactivity_warning", "timeout_conversation", "end_conversation"} {
						for _, flag := range flags {
							if enabled && flag == occurred {
								want = append(want, string(occurred))
							}
						}
					}
					assert.Equal(t, want, s.types())
				})
			})
		}
	}
}

func TestEventsBeforeDeliveryIsEnabledAreNotDelivered(t *testing.T) {
	rc := &receiver{}
	play(t, rc, nil, func(s *scene) {
		put := func(on bool) {
			req, err := http.NewRequest("PUT", fmt.Sprintf("http://x/head/%s/enable-events?enableEvents=%t", s.head, on), nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+s.BearerToken())
			resp, err := s.Transport().RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
		}
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
	layouts := map[string][]headstest.Option{
		"2006-01-02 15:04:05":      nil,
		"2006-01-02T15:04:05.000Z": {headstest.WithTimestampLayout("2006-01-02T15:04:05.000Z")},
	}
	for layout, opts := range layouts {
		t.Run(layout, func(t *testing.T) {
			play(t, &receiver{}, opts, func(s *scene) {
				head := s.AddHead(headstest.Head{EnableEvents: true, Fields: map[string]any{"publicId": "li-1", "orgPublicId": "Org-1"}})
				addWebhook(t, s, head, "https://other.example.test", heads.EventStartConversation)
				session := s.StartSession(head)
				occurred := time.Now()
				require.NoError(t, session.UserMessage("x"))
				s.settle()
				want := fmt.Sprintf(`{"timestamp":%q,"head_id":%q,"session_id":%q,"public_head_id":"li-1","public_org_id":"Org-1","event_type":"start_conversation"}`,
					occurred.UTC().Format(layout), head, session.ID())
				assert.JSONEq(t, want, string(s.all()[0].body))
				d := s.Deliveries()[0]
				assert.Equal(t, s.all()[0].body, d.Body)
				assert.Equal(t, heads.EventStartConversation, d.Event.Type)
				assert.Equal(t, occurred.UTC().Format(layout), d.Event.Timestamp.Text)
				assert.Equal(t, []string{head, session.ID(), "li-1", "Org-1"}, []string{d.Event.HeadID, d.Event.SessionID, d.Event.PublicHeadID, d.Event.PublicOrgID})
			})
		})
	}
}

func TestUndeliveredCountsTheDeliveriesThatHaveNotEnded(t *testing.T) {
	answers := []int{500, 500, 200}
	rc := &receiver{answer: func(n int, _ *http.Request, _ []byte) (*http.Response, error) {
		return status(answers[min(n, len(answers))-1]), nil
	}}
	play(t, rc, nil, func(s *scene) {
		one, other := s.StartSession(s.head), s.StartSession(s.head)
		assert.Zero(t, one.Undelivered(), "nothing has happened")
		require.NoError(t, one.UserMessage("x"))
		require.NoError(t, one.Inactive())
		require.NoError(t, other.UserMessage("x"))
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
		require.NoError(t, s.Client().Webhooks.Delete(s.t.Context(), s.hook))
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
		for range 5 {
			require.NoError(t, session.Inactive())
		}
		assert.LessOrEqual(t, session.Undelivered(), 2, "what exceeds the backlog has ended")
		s.Close()
		assert.Zero(t, session.Undelivered(), "closed")
	})
}

// 20,000 sessions at once, each with three events: every event is delivered once and
// in its order, and the journal is bounded.
func TestThousandsOfSessionsWithAConsole(t *testing.T) {
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
			var event struct {
				ID string `json:"session_id"`
			}
			mustUnmarshal(r.body, &event)
			require.Equal(t, want[next[event.ID]], r.eventType)
			next[event.ID]++
		}
		assert.Len(t, next, sessions)
		assert.Len(t, s.all(), 3*sessions)
		assert.Len(t, s.Deliveries(), kept)
		req := httptest.NewRequest("GET", "/_emulator/sessions", nil)
		req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		var list []struct{ ID string }
		mustUnmarshal(rec.Body.Bytes(), &list)
		assert.Len(t, list, kept, "the control API lists the newest")
	})
}
