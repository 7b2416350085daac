package heads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/keycache"
	"github.com/headsapi/heads-go/internal/keycache/keycachetest"
)

func TestSharedKeysServeEveryHead(t *testing.T) {
	source := SharedKeys("", testKeyA, "", testKeyB)
	for _, headID := range []string{testHeadA, testHeadB, ""} {
		keys := Must(source.Keys(t.Context(), KeyHint{HeadID: headID}))(t)
		assert.Equal(t, []string{testKeyA, testKeyB}, keys)
	}
}

func TestHeadKeysBelongToTheirHead(t *testing.T) {
	source := HeadKeys(map[string][]string{testHeadA: {testKeyA, "second"}, testHeadB: {testKeyB}, "": {"of nobody"}})
	for headID, want := range map[string][]string{
		testHeadA: {testKeyA, "second"},
		testHeadB: {testKeyB},
		"":        nil,
		"unknown": nil,
	} {
		keys := Must(source.Keys(t.Context(), KeyHint{HeadID: headID}))(t)
		assert.Equal(t, want, keys, headID)
	}
}

func TestStaticSourcesCopyTheirKeys(t *testing.T) {
	given := []string{testKeyA}
	byHead := map[string][]string{testHeadA: given}
	sources := []KeySource{SharedKeys(given...), HeadKeys(byHead)}
	given[0] = "changed"
	byHead[testHeadA] = nil
	for _, source := range sources {
		keys := Must(source.Keys(context.Background(), KeyHint{HeadID: testHeadA}))(t)
		assert.Equal(t, []string{testKeyA}, keys)
		assert.Equal(t, len(keys), cap(keys), "nothing can be appended in place")
	}
}

func newFakeKeyService() *keycachetest.Service {
	return &keycachetest.Service{Keys: map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}}
}

func askKeys(t *testing.T, source KeySource, headID string, mismatch bool) []string {
	t.Helper()
	keys := Must(source.Keys(t.Context(), KeyHint{HeadID: headID, Mismatch: mismatch}))(t)
	return keys
}

func TestKeySourceRemembersMissesNoLongerThanTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeys(newKeyCache(service.List), WithKeyTTL(10*time.Second))
		service.Set(testHeadA, "")
		assert.Empty(t, askKeys(t, source, testHeadA, false), "a registration without a key has none")
		service.Set(testHeadA, testKeyA)
		<-time.After(10 * time.Second)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestPanicInARequestForKeysIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		source := newCachedKeys(newKeyCache(func(context.Context, string, bool) ([]string, error) {
			calls++
			if calls == 1 {
				panic("token source is broken")
			}
			return []string{testKeyA}, nil
		}))
		assert.ErrorContains(t, ErrorOf(source.Keys(t.Context(), KeyHint{HeadID: testHeadA})), "token source is broken")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestOnlyUUIDsReachTheService(t *testing.T) {
	service := newFakeKeyService()
	source := newCachedKeys(newKeyCache(service.List))
	for name, headID := range map[string]string{
		"empty": "", "public id": "li-28379", "path": "../../head/update", "query": testHeadA[:30] + "&x=y1",
		"one digit more": testHeadA + "0", "with a line end": testHeadA + "\n", "64 KiB": strings.Repeat("a", 65000),
	} {
		assert.Empty(t, askKeys(t, source, headID, false), name)
	}
	assert.Zero(t, service.Count())
}

// An attacker can write a known id in 2^30 ways, which must not cause as many
// requests to the service.
func TestLetterCaseOfAHeadIDMakesNoDifference(t *testing.T) {
	service := newFakeKeyService()
	source := newCachedKeys(newKeyCache(service.List))
	for _, headID := range []string{strings.ToUpper(testHeadA), testHeadA, strings.ToUpper(testHeadA[:9]) + testHeadA[9:]} {
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, headID, false))
	}
	assert.Equal(t, []string{testHeadA}, service.Asked)
}

func TestKeysWithoutRetriesAreOneRequest(t *testing.T) {
	for name, row := range map[string]struct {
		retry    bool
		requests int
	}{
		"a known head":    {true, 4},
		"an unknown head": {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			transport := newScript(answer(503, `{}`))
			require.Error(t, ErrorOf(newTestClient(t, memoryURL, transport).Webhooks.sharedKeys(t.Context(), testHeadA, row.retry)))
			assert.Equal(t, row.requests, transport.sent())
		})
	}
}

// An expired token is renewed. Otherwise the first event after a start would never
// find its keys.
func TestKeysWithoutRetriesRenewTheToken(t *testing.T) {
	transport := newScript(answer(401, `{}`), answer(200, `[{"id":1,"headId":"`+testHeadA+`","sharedKey":"one"}]`))
	tokens := 0
	client := Must(New(memoryURL, "", WithHTTPClient(&http.Client{Transport: transport}),
		WithTokenSource(func(context.Context, string) (string, error) {
			tokens++
			return fmt.Sprint("token-", tokens), nil
		})))(t)
	keys := Must(client.Webhooks.sharedKeys(t.Context(), testHeadA, false))(t)
	assert.Equal(t, []string{"one"}, keys)
}

func TestKnownHeadsKeepExpiredKeysWhileTheRefreshFails(t *testing.T) {
	for name, row := range map[string]struct {
		opts []KeySourceOption
		kept time.Duration
	}{
		"by default": {nil, time.Hour},
		"shorter":    {[]KeySourceOption{WithStaleKeys(20 * time.Second)}, 20 * time.Second},
		"none":       {[]KeySourceOption{WithStaleKeys(0)}, 0},
	} {
		Bubble(t, name, func(t *testing.T) {
			service := newFakeKeyService()
			source := newCachedKeys(newKeyCache(service.List), row.opts...)
			askKeys(t, source, testHeadA, false)
			down := errors.New("down")
			service.Fail(down)
			<-time.After(keycache.DefaultTTL)
			for range row.kept / time.Second {
				assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
				<-time.After(time.Second)
			}
			for range 2 { // the second time right after a refresh that failed
				assert.ErrorIs(t, ErrorOf(source.Keys(t.Context(), KeyHint{HeadID: testHeadA})), down)
			}
			service.Fail(nil)
			assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		})
	}
}

func TestKeySourceAsksForTheKeysOfTheHead(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		body   string
		keys   []string
		fails  bool
	}{
		"its registrations": {200, `[{"id":1,"headId":"` + testHeadA + `","sharedKey":"one"},{"id":2,"headId":"` + strings.ToUpper(testHeadA) + `","sharedKey":"two"}]`,
			[]string{"one", "two"}, false},
		"a registration without a head": {200, `[{"id":1,"sharedKey":"one"}]`, nil, true},
		"that of another head":          {200, `[{"id":1,"headId":"` + testHeadB + `","sharedKey":"one"}]`, nil, true},
		"none":                          {200, `[]`, nil, false},
		"an unknown head":               {404, `{}`, nil, false},
		"a failure":                     {500, `{}`, nil, true},
		"no permission":                 {403, `{}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := serveWire(t, row.status, row.body)
			keys, err := server.client(t).Webhooks.KeySource().Keys(t.Context(), KeyHint{HeadID: testHeadA})
			assert.Equal(t, row.fails, err != nil, err)
			assert.Equal(t, row.keys, keys)
			assert.Equal(t, "GET /api/v3/head-events?headId="+testHeadA+" HTTP/1.1", (<-server.requests).line)
		})
	}
}

func TestKeySourceOptionsRefuseBadValues(t *testing.T) {
	service := newFakeKeyService()
	for name, opt := range map[string]KeySourceOption{
		"WithKeyTTL":    WithKeyTTL(0),
		"WithStaleKeys": WithStaleKeys(-1),
		"WithHeads":     WithHeads(testHeadA, "li-28379"),
		"option":        nil,
	} {
		source := newCachedKeys(newKeyCache(service.List), WithHeads(testHeadB), opt)
		invalid := As[*InvalidError](t, ErrorOf(source.Keys(t.Context(), KeyHint{HeadID: testHeadA})))
		assert.Equal(t, "Webhooks.KeySource", invalid.Operation)
		assert.Equal(t, name, invalid.Field)
		_, err := NewEventHandler(source, func(context.Context, *Event) error { return nil })
		assert.ErrorIs(t, err, ErrInvalid, "the handler finds it at once")
	}
	assert.Zero(t, service.Count())
}
