package headstest_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestDeliveryIsASignedPost(t *testing.T) {
	rc := &receiver{answer: func(_ int, r *http.Request, _ []byte) (*http.Response, error) {
		assert.Equal(t, []string{"POST", "https://hook.example.test/x", "application/json", ""},
			[]string{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization")})
		return status(204), nil
	}}
	play(t, rc, nil, func(s *scene) {
		s.converse("message")
		got := s.all()
		require.Len(t, got, 1)
		assert.Equal(t, hexHMAC(got[0].body, s.key), got[0].signature)
		require.Len(t, s.Deliveries(), 1)
		d := s.Deliveries()[0]
		require.NoError(t, s.Redeliver(d))
		s.settle()
		again := s.all()[1]
		assert.Equal(t, []any{got[0].body, got[0].signature}, []any{again.body, again.signature}, "a redelivery has the same bytes")
		assert.Equal(t, []any{got[0].signature, s.hook, "https://hook.example.test/x"}, []any{d.Header.Get("X-Signature-256"), d.WebhookID, d.URL})
		assert.Equal(t, []any{1, 204, nil, true, time.Duration(0)}, []any{d.Attempt, d.Status, d.Err, d.Final, d.RetryIn})
	})
}

func TestEveryWebhookSignsWithItsOwnKey(t *testing.T) {
	play(t, &receiver{}, nil, func(s *scene) {
		_, other := addWebhook(t, s, s.head, "https://other.example.test", allEvents...)
		keys := map[string]string{"hook.example.test": s.key, "other.example.test": other}
		require.NotEqual(t, s.key, other)
		s.converse("message")
		require.Len(t, s.all(), 2)
		for _, r := range s.all() {
			assert.Equal(t, hexHMAC(r.body, keys[r.host]), r.signature)
			delete(keys, r.host)
		}
	})
}

func TestSignatureMayBeBase64(t *testing.T) {
	play(t, &receiver{}, []headstest.Option{headstest.WithSignatureEncoding(headstest.SignatureBase64)}, func(s *scene) {
		s.converse("message")
		sum := need(hex.DecodeString(hexHMAC(s.all()[0].body, s.key)))(t)
		assert.Equal(t, base64.StdEncoding.EncodeToString(sum), s.all()[0].signature)
	})
}

func TestFailedDeliveryIsRedeliveredThreeTimesWithGrowingWaits(t *testing.T) {
	refused := errors.New("refused")
	for _, row := range []struct {
		name   string
		answer answering
		status int
		err    error
		takes  time.Duration
	}{
		{"500", always(500), 500, nil, 0},
		{"503", always(503), 503, nil, 0},
		{"400", always(400), 400, nil, 0},
		{"401", always(401), 401, nil, 0},
		{"redirect", func(int, *http.Request, []byte) (*http.Response, error) {
			resp := status(307)
			resp.Header.Set("Location", "https://elsewhere.example.test/")
			return resp, nil
		}, 307, nil, 0},
		{"no connection", func(int, *http.Request, []byte) (*http.Response, error) { return nil, refused }, 0, refused, 0},
		{"no answer in 5 s", silent, 0, context.DeadlineExceeded, 5 * time.Second},
		{"answer that drips", func(_ int, r *http.Request, _ []byte) (*http.Response, error) {
			resp := status(200)
			resp.Body = io.NopCloser(drip{r.Context()})
			return resp, nil
		}, 200, context.DeadlineExceeded, 5 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, &receiver{answer: row.answer}, nil, func(s *scene) {
				start := time.Now()
				s.converse("message")
				got, journal := s.all(), s.Deliveries()
				require.Len(t, got, 4)
				require.Len(t, journal, 4)
				at := time.Duration(0)
				for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 0} {
					assert.Equal(t, at, got[i].at.Sub(start), "attempt %d", i+1)
					assert.Equal(t, "hook.example.test", got[i].host)
					assert.Equal(t, got[0].body, got[i].body, "every attempt is the same, byte for byte")
					assert.Equal(t, got[0].signature, got[i].signature)
					d := journal[i]
					assert.Equal(t, []any{i + 1, row.status, wait, row.takes, i == 3}, []any{d.Attempt, d.Status, d.RetryIn, d.Duration, d.Final})
					assert.ErrorIs(t, d.Err, row.err)
					at += row.takes + wait
				}
			})
		})
	}
}

type drip struct{ ctx context.Context } //nolint:containedctx // of the request

func (d drip) Read([]byte) (int, error) {
	<-d.ctx.Done()
	return 0, d.ctx.Err()
}

func TestAnsweredEventIsNotRedelivered(t *testing.T) {
	for failures := range 5 {
		play(t, &receiver{answer: failing(failures)}, nil, func(s *scene) {
			s.converse("message close")
			attempts := min(failures+1, 4) // the event after one that is given up is delivered
			want := append(slices.Repeat([]string{"start_conversation"}, attempts), "end_conversation")
			assert.Equal(t, want, s.types())
			assert.True(t, s.Deliveries()[attempts-1].Final)
		})
	}
}

func TestAnswerJustInTimeIsAccepted(t *testing.T) {
	rc := &receiver{answer: func(int, *http.Request, []byte) (*http.Response, error) {
		<-time.After(5*time.Second - 1) // of the bubble's clock
		return status(200), nil
	}}
	play(t, rc, nil, func(s *scene) {
		s.converse("message")
		assert.Len(t, s.all(), 1)
	})
}

func TestRetryScheduleAndTimeoutAreSettable(t *testing.T) {
	opts := []headstest.Option{headstest.WithRetrySchedule(time.Minute), headstest.WithDeliveryTimeout(time.Second)}
	play(t, &receiver{answer: silent}, opts, func(s *scene) {
		s.converse("message")
		require.Len(t, s.all(), 2)
		assert.Equal(t, 61*time.Second, s.all()[1].at.Sub(s.all()[0].at))
	})
	play(t, &receiver{answer: always(500)}, []headstest.Option{headstest.WithRetrySchedule()}, func(s *scene) {
		s.converse("message")
		assert.Len(t, s.all(), 1)
	})
}

func TestEventsArriveInOrderThroughFailures(t *testing.T) {
	rc := &receiver{answer: func(n int, _ *http.Request, _ []byte) (*http.Response, error) {
		return status([]int{200, 500, 500}[n%3]), nil
	}}
	play(t, rc, nil, func(s *scene) {
		s.converse("message inactive timeout")
		var want []string
		for _, event := range allEvents {
			want = append(want, string(event), string(event), string(event))
		}
		assert.Equal(t, want, s.types())
	})
}

func TestSlowWebhookDelaysNoOther(t *testing.T) {
	rc := &receiver{answer: func(_ int, r *http.Request, _ []byte) (*http.Response, error) {
		return status(map[string]int{"hook.example.test": 500, "other.example.test": 200}[r.URL.Host]), nil
	}}
	play(t, rc, nil, func(s *scene) {
		other, _ := addWebhook(t, s, s.head, "https://other.example.test", allEvents...)
		start := time.Now()
		require.NoError(t, perform(s.StartSession(s.head), "message inactive close"))
		_, err := s.WaitDelivery(s.t.Context(), func(d headstest.Delivery) bool {
			return d.WebhookID == other && d.Event.Type == heads.EventEndConversation
		})
		require.NoError(t, err)
		assert.Zero(t, time.Since(start))
	})
}

func TestRemovedWebhookGetsNothingMore(t *testing.T) {
	play(t, &receiver{answer: always(500)}, nil, func(s *scene) {
		require.NoError(t, perform(s.StartSession(s.head), "message close"))
		synctest.Wait()
		require.Len(t, s.all(), 1)
		s.ok("DELETE", fmt.Sprint("/head-events/", s.hook), "")
		s.settle()
		assert.Len(t, s.all(), 1)
		journal := s.Deliveries()
		require.Len(t, journal, 3)
		assert.Equal(t, []any{1, true, heads.EventStartConversation}, []any{journal[1].Attempt, journal[1].Final, journal[1].Event.Type})
		assert.Equal(t, []any{0, true, heads.EventEndConversation}, []any{journal[2].Attempt, journal[2].Final, journal[2].Event.Type})
		assert.ErrorIs(t, journal[1].Err, headstest.ErrRemoved)
		assert.ErrorIs(t, s.Redeliver(journal[0]), headstest.ErrRemoved)
	})
}

func TestCloseEndsRunningDeliveries(t *testing.T) {
	for name, answer := range map[string]answering{"in an attempt": silent, "in a wait": always(500)} {
		t.Run(name, func(t *testing.T) {
			play(t, &receiver{answer: answer}, nil, func(s *scene) {
				session := s.StartSession(s.head)
				require.NoError(t, perform(session, "message inactive"))
				synctest.Wait()
				start := time.Now()
				s.Emulator.Close()
				assert.Zero(t, time.Since(start))
				journal := s.Deliveries()
				assert.True(t, journal[len(journal)-1].Final)
				assert.Error(t, journal[len(journal)-1].Err)
				require.NoError(t, session.Close())
				journal = s.Deliveries()
				last := journal[len(journal)-1]
				assert.Equal(t, []any{0, true, heads.EventEndConversation}, []any{last.Attempt, last.Final, last.Event.Type})
				assert.ErrorIs(t, last.Err, headstest.ErrClosed)
				s.settle()
				assert.Len(t, s.all(), 1, "nothing is delivered afterwards")
				final := slices.DeleteFunc(s.Deliveries(), func(d headstest.Delivery) bool { return !d.Final })
				assert.Len(t, final, 3, "every event has its end in the journal")
				_, err := s.WaitDelivery(s.t.Context(), func(headstest.Delivery) bool { return false })
				assert.ErrorIs(t, err, headstest.ErrClosed)
			})
		})
	}
}

func TestResetEndsRunningDeliveries(t *testing.T) {
	play(t, &receiver{answer: always(500)}, nil, func(s *scene) {
		require.NoError(t, perform(s.StartSession(s.head), "message close"))
		synctest.Wait()
		s.Reset()
		s.settle()
		assert.Len(t, s.all(), 1)
		assert.Empty(t, s.Deliveries())
	})
}

func TestWaitDeliveryFindsEarlierAndLaterDeliveries(t *testing.T) {
	play(t, &receiver{answer: failing(1)}, nil, func(s *scene) {
		require.NoError(t, s.StartSession(s.head).UserMessage("x"))
		d, err := s.WaitDelivery(s.t.Context(), func(d headstest.Delivery) bool { return d.Final })
		require.NoError(t, err)
		assert.Equal(t, 2, d.Attempt)
		ended, cancel := context.WithCancel(s.t.Context())
		cancel()
		d, err = s.WaitDelivery(ended, nil)
		require.NoError(t, err, "what is there needs no waiting")
		assert.Equal(t, 1, d.Attempt)
		short, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		_, err = s.WaitDelivery(short, func(headstest.Delivery) bool { return false })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestWaitDeliveryWaitsThroughAReset(t *testing.T) {
	play(t, &receiver{}, nil, func(s *scene) {
		s.converse("message inactive")
		done := make(chan heads.EventType)
		go func() {
			d, err := s.WaitDelivery(s.t.Context(), func(d headstest.Delivery) bool { return d.Event.Type == heads.EventEndConversation })
			assert.NoError(t, err)
			done <- d.Event.Type
		}()
		synctest.Wait()
		s.Reset()
		head := s.AddHead(headstest.Head{EnableEvents: true})
		addWebhook(t, s, head, "https://hook.example.test", heads.EventEndConversation)
		require.NoError(t, s.StartSession(head).Close())
		assert.Equal(t, heads.EventEndConversation, <-done)
	})
}

func TestJournalOfDeliveriesIsBounded(t *testing.T) {
	play(t, &receiver{}, []headstest.Option{headstest.WithJournalSize(3)}, func(s *scene) {
		session := s.StartSession(s.head)
		require.NoError(t, perform(session, strings.Repeat("inactive ", 10)+"close"))
		s.settle()
		assert.Len(t, s.all(), 11)
		require.Len(t, s.Deliveries(), 3)
		assert.Equal(t, heads.EventEndConversation, s.Deliveries()[2].Event.Type)
		time.AfterFunc(time.Second, func() { assert.NoError(t, s.StartSession(s.head).UserMessage("x")) })
		d := need(s.WaitDelivery(s.t.Context(), func(d headstest.Delivery) bool { return d.Event.Type == heads.EventStartConversation }))(t)
		assert.True(t, d.Final)
	})
}

func TestBacklogIsBounded(t *testing.T) {
	play(t, &receiver{answer: always(500)}, []headstest.Option{headstest.WithBacklog(2)}, func(s *scene) {
		session := s.StartSession(s.head)
		require.NoError(t, session.UserMessage("x"))
		synctest.Wait() // until the first one is running
		require.NoError(t, perform(session, "inactive inactive close"))
		d := need(s.WaitDelivery(s.t.Context(), func(d headstest.Delivery) bool { return d.Event.Type == heads.EventEndConversation }))(t)
		assert.ErrorIs(t, d.Err, headstest.ErrBacklog)
		assert.True(t, d.Final)
	})
}

func TestReceiversAnswerIsInTheJournal(t *testing.T) {
	rc := &receiver{answer: func(int, *http.Request, []byte) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<20)))}, nil
	}}
	play(t, rc, nil, func(s *scene) {
		s.converse("message")
		assert.Equal(t, strings.Repeat("x", 4096), string(s.Deliveries()[0].Reply))
	})
}

func TestDeliveryOverTLS(t *testing.T) {
	got := make(chan *http.Request, 8)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	d, _ := deliverTo(t, srv.URL+"/hook", headstest.WithDeliveryClient(srv.Client()))
	assert.Equal(t, 307, d.Status)
	require.Len(t, got, 1, "the redirect is not followed")
	assert.Equal(t, "/hook", (<-got).URL.Path)
}

// net/http parses Location before it calls CheckRedirect, and its error quotes it.
func TestMalformedRedirectShowsNoURL(t *testing.T) {
	var log lockedBuilder
	d, _ := deliverTo(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://[bad/?key=canary")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}), log.option())
	assert.ErrorContains(t, d.Err, "a redirect to a malformed URL")
	assert.NotContains(t, d.Err.Error()+log.String(), "canary")
}

func TestUntrustedReceiverIsAnError(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	d, _ := deliverTo(t, srv.URL+"/canary")
	assert.ErrorContains(t, d.Err, "certificate")
	assert.NotContains(t, d.Err.Error(), "canary", "an address may hold a secret")
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	url := serving(t, func(http.ResponseWriter, *http.Request) {})
	before := runtime.NumGoroutine()
	for range 20 {
		srv := headstest.NewServer(headstest.WithLoopbackHTTP())
		id := srv.AddHead(headstest.Head{EnableEvents: true})
		addWebhook(t, srv, id, url, allEvents...)
		require.NoError(t, perform(srv.StartSession(id), "message"))
		_, err := srv.WaitDelivery(t.Context(), nil)
		require.NoError(t, err)
		srv.Close()
		srv.Close()
	}
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 5*time.Second, 5*time.Millisecond)
}
