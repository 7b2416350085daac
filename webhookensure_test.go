package heads_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const hookURL = "https://hooks.example.com/in/path-canary?tenant=query-canary"

const (
	deliveryOn = "PUT /head/HEAD/enable-events?enableEvents=true"
	listHooks  = "GET /head-events?headId=HEAD"
	createHook = "POST /head-events"
)

// ensure calls Ensure as another program would.
func (w *world) ensure(t *testing.T, o heads.EnsureOptions, events ...heads.EventType) (*heads.Ensured, error) {
	t.Helper()
	return w.client().Webhooks.Ensure(t.Context(), w.spec(events...), o)
}

func TestEnsureByOneClientTwentyTimesAtOnceCreatesOnce(t *testing.T) {
	for name, fault := range map[string]headstest.Fault{
		"answered":                  {},
		"answer of the create lost": {Cut: headstest.CutAfter},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.everyReadIsSlow()
			fault.Method, fault.Times = http.MethodPost, 1
			w.Inject(fault)
			client := w.client()
			var hooks [20]*heads.Ensured
			heads.InParallel(20, func(i int) {
				hook, err := client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{})
				if assert.NoError(t, err) {
					hooks[i] = hook
				}
			})
			assert.Equal(t, map[string]int{http.MethodPut: 20, http.MethodGet: 21, http.MethodPost: 1}, w.tally())
			left := w.registered(t)
			require.Len(t, left, 1)
			for _, hook := range hooks {
				require.NotNil(t, hook)
				assert.Equal(t, left[0], hook.Webhook)
			}
		})
	}
}

func TestEnsureByTwentyClientsAtOnceLeavesOne(t *testing.T) {
	for _, tt := range []struct {
		name             string
		removeDuplicates bool
		opts             []headstest.Option
	}{
		{name: "each takes back its own"},
		{name: "each removes those of the others too", removeDuplicates: true},
		{name: "answered with the whole record", opts: []headstest.Option{headstest.WithResponses(headstest.ResponsesRecord)}},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t, tt.opts...)
			w.everyReadIsSlow()
			var hooks [20]*heads.Ensured
			heads.InParallel(20, func(i int) {
				hook, err := w.ensure(t, heads.EnsureOptions{RemoveDuplicates: tt.removeDuplicates})
				if assert.NoError(t, err) {
					hooks[i] = hook
				}
			})
			assert.Equal(t, 20, w.tally()[http.MethodPost], "all have raced")
			left := w.registered(t)
			require.Len(t, left, 1)
			for _, hook := range hooks {
				require.NotNil(t, hook)
				assert.Equal(t, left[0].ID, hook.ID)
				assert.Equal(t, left[0].SharedKey.Reveal(), hook.SharedKey.Reveal())
			}
			again := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
			assert.Empty(t, again.Duplicates)
		})
	}
}

func TestEnsureFindsWhatALostCreateHasMade(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault headstest.Fault
		posts int
	}{
		{"connection cut", headstest.Fault{Cut: headstest.CutAfter}, 1},
		{"answer broken off", headstest.Fault{CutBody: true}, 1},
		{"no answer in time", headstest.Fault{Cut: headstest.CutAfter, Latency: time.Minute}, 1},
		{"500", headstest.Fault{Status: 500, After: true}, 1},
		{"502", headstest.Fault{Status: 502, After: true}, 1},
		{"504 with an error text", headstest.Fault{Status: 504, After: true, Body: `{"message":"upstream"}`}, 1},
		{"503 that asks for a repeat", headstest.Fault{Status: 503, After: true, RetryAfter: time.Second}, 2},
		{"no sharedKey", headstest.Fault{Body: `{"id":1}`}, 1},
		{"empty sharedKey", headstest.Fault{Body: `{"sharedKey":""}`}, 1},
		{"not JSON", headstest.Fault{Body: `created`}, 1},
		{"another JSON type", headstest.Fault{Body: `true`}, 1},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.fault.Method, tt.fault.Times = http.MethodPost, 1
			w.Inject(tt.fault)
			hook := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
			assert.Equal(t, tt.posts, w.tally()[http.MethodPost])
			left := w.registered(t)
			require.Len(t, left, 1)
			assert.Equal(t, left[0], hook.Webhook)
			assert.NotEmpty(t, hook.SharedKey.Reveal())

			again := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
			assert.Equal(t, hook.Webhook, again.Webhook)
			assert.False(t, again.Created)
		})
	}
}

func TestEnsureReturnsTheErrorOfALostCreateThatMadeNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault headstest.Fault
		want  error
	}{
		{"connection cut", headstest.Fault{Cut: headstest.CutBefore}, io.EOF},
		{"500", headstest.Fault{Status: 500}, heads.ErrServer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.fault.Method, tt.fault.Times = http.MethodPost, 1
			w.Inject(tt.fault)
			hook, err := w.ensure(t, heads.EnsureOptions{})
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, "heads: Webhooks.Create")
			assert.Nil(t, hook)
			assert.Equal(t, []string{deliveryOn, listHooks, createHook, listHooks}, w.wire())
			assert.Empty(t, w.registered(t))
		})
	}
}

func TestEnsureReturnsARefusalOfTheCreate(t *testing.T) {
	for _, status := range []int{307, 400, 401, 403, 404, 409, 422} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			w := newWorld(t)
			w.Inject(headstest.Fault{Method: http.MethodPost, Status: status, Body: `{"message":"not here"}`})
			hook, err := w.ensure(t, heads.EnsureOptions{})
			refused := heads.As[*heads.Error](t, err)
			assert.Equal(t, status, refused.StatusCode)
			assert.Equal(t, "not here", refused.Message)
			assert.Nil(t, hook)
			assert.Equal(t, []string{deliveryOn, listHooks, createHook}, w.wire())
			assert.Empty(t, w.registered(t))
		})
	}
}

func TestEnsureReportsAnUnknownOutcomeIfTheListFailsToo(t *testing.T) {
	w := newWorld(t)
	w.Inject(headstest.Fault{Method: http.MethodPost, Cut: headstest.CutAfter, Times: 1})
	w.Inject(headstest.Fault{Method: http.MethodGet, Times: 1}) // the first list is answered
	repair := w.Inject(headstest.Fault{Method: http.MethodGet, Status: 502})
	hook, err := w.ensure(t, heads.EnsureOptions{})
	assert.Nil(t, hook)
	require.ErrorContains(t, err, "heads: Webhooks.Ensure: the webhook may have been registered; run it again, which finds it")
	require.ErrorIs(t, err, io.EOF, "of the create")
	require.ErrorIs(t, err, heads.ErrServer, "of the list")

	repair()
	hook = heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
	assert.Equal(t, []heads.Webhook{hook.Webhook}, w.registered(t))
}

// The key in the answer is returned even if the second list fails.
func TestEnsureReturnsWhatItCreatedWhenTheSecondListFails(t *testing.T) {
	for name, fault := range map[string]headstest.Fault{
		"list fails":     {Status: 502},
		"not listed yet": {Body: `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fault.Method = http.MethodGet
			w.Inject(headstest.Fault{Method: http.MethodGet, Times: 1}) // the first list is answered
			repair := w.Inject(fault)
			hook := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
			repair()
			left := w.registered(t)
			require.Len(t, left, 1)
			assert.Equal(t, left[0].SharedKey.Reveal(), hook.SharedKey.Reveal())
			assert.Equal(t, left[0].Events(), hook.Events())
			assert.Equal(t, left[0].URL, hook.URL)
		})
	}
}

func TestEnsureTurnsDeliveryOnFirst(t *testing.T) {
	refuse := func(method string) func(*testing.T, *world) {
		return func(_ *testing.T, w *world) { w.Inject(headstest.Fault{Method: method, Status: 403}) }
	}
	registered := func(event heads.EventType) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { w.add(t, hookURL, event) }
	}
	for name, row := range map[string]struct {
		prepare func(*testing.T, *world)
		o       heads.EnsureOptions
		wire    []string
		err     error
		created bool
	}{
		"nothing registered":          {nil, heads.EnsureOptions{}, []string{deliveryOn, listHooks, createHook, listHooks}, nil, true},
		"delivery left as it is":      {nil, heads.EnsureOptions{KeepDelivery: true}, []string{listHooks, createHook, listHooks}, nil, true},
		"registered":                  {registered(heads.EventStartConversation), heads.EnsureOptions{}, []string{deliveryOn, listHooks}, nil, false},
		"registered for other events": {registered(heads.EventEndConversation), heads.EnsureOptions{}, []string{deliveryOn, listHooks, writeHook}, nil, false},
		"refused":                     {refuse(http.MethodPut), heads.EnsureOptions{}, []string{deliveryOn}, heads.ErrForbidden, false},
		"list refused":                {refuse(http.MethodGet), heads.EnsureOptions{}, []string{deliveryOn, listHooks}, heads.ErrForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if row.prepare != nil {
				row.prepare(t, w)
			}
			hook, err := w.ensure(t, row.o)
			require.ErrorIs(t, err, row.err)
			assert.Equal(t, row.wire, w.wire())
			if row.err == nil {
				assert.Equal(t, row.created, hook.Created)
				assert.NotEmpty(t, hook.SharedKey.Reveal())
				head := heads.Must(w.client().Heads.Get(t.Context(), w.head))(t)
				assert.Equal(t, !row.o.KeepDelivery, head.EnableEvents)
			}
		})
	}
}

// internal/registration states which URLs are the same.
func TestEnsureComparesURLs(t *testing.T) {
	for registered, same := range map[string]bool{"https://A.example.com:443/in/": true, "https://a.example.com/in?a=1": false} {
		w := newWorld(t)
		old := w.add(t, registered, heads.EventStartConversation)
		spec := w.spec()
		spec.URL = "https://a.example.com/in"
		hook := heads.Must(w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{}))(t)
		assert.Equal(t, same, hook.ID == old.ID)
		if same {
			assert.Equal(t, []string{deliveryOn, listHooks}, w.wire(), "the spelling alone changes nothing")
		} else {
			assert.Len(t, w.registered(t), 2)
		}
	}
}

func TestEnsurePatchesEveryWritableFieldWhenEventsDiffer(t *testing.T) {
	for _, tt := range []struct {
		name             string
		registered, spec []heads.EventType
		body             string // flags of the PATCH; "" for none
	}{
		{"one more", []heads.EventType{"start_conversation"}, []heads.EventType{"start_conversation", "end_conversation"},
			`"startConversation":true,"endConversation":true,"timeoutConversation":false,"inactivityWarning":false`},
		{"one less", []heads.EventType{"timeout_conversation", "inactivity_warning"}, []heads.EventType{"inactivity_warning"},
			`"startConversation":false,"endConversation":false,"timeoutConversation":false,"inactivityWarning":true`},
		{"none registered", nil, []heads.EventType{"timeout_conversation"},
			`"startConversation":false,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false`},
		{"another order", []heads.EventType{"start_conversation", "end_conversation"}, []heads.EventType{"end_conversation", "start_conversation"}, ""},
		{"named twice", []heads.EventType{"start_conversation"}, []heads.EventType{"start_conversation", "start_conversation"}, ""},
		{"in upper case", []heads.EventType{"start_conversation"}, []heads.EventType{"START_CONVERSATION"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			old := w.add(t, hookURL, tt.registered...)
			hook := heads.Must(w.ensure(t, heads.EnsureOptions{}, tt.spec...))(t)
			sent := w.since()
			if tt.body == "" {
				assert.Len(t, sent, 2, "delivery and list")
			} else {
				require.Len(t, sent, 3)
				assert.Equal(t, fmt.Sprintf(`{"headId":%q,"webhookUrl":%q,%s}`, w.head, hookURL, tt.body), string(sent[2].Body))
			}
			left := w.registered(t)
			require.Len(t, left, 1)
			assert.Equal(t, old.ID, hook.ID)
			assert.Equal(t, old.SharedKey.Reveal(), hook.SharedKey.Reveal())
			assert.Equal(t, left[0].Events(), hook.Events())
			assert.Equal(t, left[0].URL, hook.URL)
		})
	}
}

// A registration of another program may hold values that Update would refuse.
func TestEnsurePatchesTheURLOfTheSpec(t *testing.T) {
	w := newWorld(t)
	old := w.add(t, "https://Hooks.example.com:443/in/#top", heads.EventEndConversation)
	spec := w.spec()
	spec.URL = "https://hooks.example.com/in"
	hook := heads.Must(w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{}))(t)
	assert.Equal(t, old.ID, hook.ID)
	assert.Equal(t, spec.URL, hook.URL)
	assert.Equal(t, spec.URL, w.registered(t)[0].URL)
}

func TestEnsureReturnsARefusalOfThePatch(t *testing.T) {
	w := newWorld(t)
	w.add(t, hookURL, heads.EventEndConversation)
	w.add(t, hookURL, heads.EventEndConversation)
	w.Inject(headstest.Fault{Method: http.MethodPatch, Status: 422})
	hook, err := w.ensure(t, heads.EnsureOptions{RemoveDuplicates: true})
	require.ErrorIs(t, err, heads.ErrUnprocessable)
	assert.Nil(t, hook)
	assert.Len(t, w.registered(t), 2, "nothing is removed beside one that is not right yet")
}

func TestEnsureLeavesOtherRegistrationsAlone(t *testing.T) {
	w := newWorld(t)
	w.add(t, "https://hooks.example.com/other", heads.EventEndConversation)
	otherHead := w.AddHead(headstest.Head{})
	_, _, err := w.AddWebhook(otherHead, hookURL, heads.EventEndConversation)
	require.NoError(t, err)
	list := func(headID string) []heads.Webhook {
		hooks := heads.Must(w.client().Webhooks.List(t.Context(), headID))(t)
		return hooks
	}
	before := append(list(w.head), list(otherHead)...)

	spec := w.spec()
	for _, events := range [][]heads.EventType{{heads.EventStartConversation}, {heads.EventInactivityWarning}} {
		spec.Events = events
		hook := heads.Must(w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: true}))(t)
		assert.Empty(t, hook.Duplicates)
		assert.Equal(t, before, append(list(w.head)[:1], list(otherHead)...))
		assert.Len(t, list(w.head), 2)
	}
}

func TestEnsureKeepsTheOldest(t *testing.T) {
	const early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00.5Z"
	type row struct {
		id        int
		createdAt string
	}
	for _, tt := range []struct {
		name       string
		list       []row
		want       int64
		duplicates []int64
	}{
		{"by time", []row{{3, late}, {9, early}}, 9, []int64{3}},
		{"by time in the form with a space", []row{{3, "2026-01-02 00:00:00"}, {9, "2026-01-01 23:59:59"}}, 9, []int64{3}},
		{"by time across zones", []row{{3, "2026-01-01T00:30:00Z"}, {9, "2026-01-01T01:00:00+01:00"}}, 9, []int64{3}},
		{"by id at the same time", []row{{9, early}, {3, early}, {5, early}}, 3, []int64{5, 9}},
		{"by id without times", []row{{9, ""}, {3, ""}}, 3, []int64{9}},
		{"by id where one time can't be read", []row{{1, late}, {3, "soon"}, {2, early}}, 1, []int64{2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			var list []string
			for _, r := range tt.list {
				list = append(list, fmt.Sprintf(`{"id":%d,"createdAt":%q,"headId":%q,"webhookUrl":%q,"sharedKey":"key of %[1]d","startConversation":true}`,
					r.id, r.createdAt, w.head, hookURL))
			}
			w.Inject(headstest.Fault{Method: http.MethodGet, Body: "[" + strings.Join(list, ",") + "]"})
			hook := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
			assert.Equal(t, tt.want, hook.ID)
			assert.Equal(t, fmt.Sprintf("key of %d", tt.want), hook.SharedKey.Reveal())
			assert.Equal(t, tt.duplicates, hook.Duplicates)
			assert.Equal(t, []string{deliveryOn, listHooks}, w.wire())
		})
	}
}

func TestEnsureReportsDuplicatesAndDeletesNone(t *testing.T) {
	w := newWorld(t)
	first := w.add(t, hookURL, heads.EventEndConversation)
	second := w.add(t, hookURL, heads.EventEndConversation)
	third := w.add(t, strings.Replace(hookURL, "hooks", "HOOKS", 1), heads.EventStartConversation)
	hook := heads.Must(w.ensure(t, heads.EnsureOptions{}))(t)
	assert.Equal(t, first.ID, hook.ID)
	assert.Equal(t, []int64{second.ID, third.ID}, hook.Duplicates)
	assert.Equal(t, []string{deliveryOn, listHooks, "PATCH /head-events/1"}, w.wire())
	left := w.registered(t)
	require.Len(t, left, 3)
	assert.Equal(t, []heads.EventType{heads.EventEndConversation}, left[1].Events(), "a duplicate is not patched")
}

func TestEnsureRemovesDuplicatesWhenAskedTo(t *testing.T) {
	world := func(t *testing.T) (*world, heads.WebhookSpec) {
		w := newWorld(t)
		w.add(t, hookURL, heads.EventStartConversation)
		w.add(t, hookURL, heads.EventStartConversation)
		w.add(t, "https://hooks.example.com/other", heads.EventStartConversation)
		w.add(t, hookURL, heads.EventStartConversation)
		spec := w.spec()
		return w, spec
	}
	t.Run("all at once", func(t *testing.T) {
		w, spec := world(t)
		hook := heads.Must(w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: true}))(t)
		assert.EqualValues(t, 1, hook.ID)
		assert.Empty(t, hook.Duplicates)
		assert.Equal(t, []string{deliveryOn, listHooks, "DELETE /head-events/2", "DELETE /head-events/4"}, w.wire())
		assert.Len(t, w.registered(t), 2)
	})
	t.Run("gone already", func(t *testing.T) {
		w, spec := world(t)
		w.Inject(headstest.Fault{Method: http.MethodDelete, Status: 404, Times: 1})
		hook := heads.Must(w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: true}))(t)
		assert.Empty(t, hook.Duplicates)
	})
	t.Run("one can't be removed", func(t *testing.T) {
		w, spec := world(t)
		w.Inject(headstest.Fault{Method: http.MethodDelete, Status: 403, Times: 1})
		hook, err := w.client().Webhooks.Ensure(t.Context(), spec, heads.EnsureOptions{RemoveDuplicates: true})
		require.ErrorIs(t, err, heads.ErrForbidden)
		require.ErrorContains(t, err, "/head-events/2")
		require.NotNil(t, hook, "the registration is returned")
		assert.EqualValues(t, 1, hook.ID)
		assert.Equal(t, []int64{2}, hook.Duplicates)
		assert.Len(t, w.registered(t), 3, "the other one was removed")
	})
}

func TestEnsureDeletesItsOwnBesideAnother(t *testing.T) {
	// overtaken is a world in which another program is a moment faster.
	overtaken := func(t *testing.T, events heads.EventType) (w *world, client *heads.Client, other *heads.Webhook) {
		w, other = newWorld(t), new(heads.Webhook)
		return w, w.client(w.onCreate(func() { *other = w.add(t, hookURL, events) }, func() {})), other
	}
	t.Run("the other's is used", func(t *testing.T) {
		w, client, other := overtaken(t, heads.EventStartConversation)
		hook := heads.Must(client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{}))(t)
		assert.Equal(t, other.ID, hook.ID)
		assert.Equal(t, other.SharedKey.Reveal(), hook.SharedKey.Reveal())
		assert.Empty(t, hook.Duplicates)
		assert.Equal(t, []string{deliveryOn, listHooks, createHook, listHooks, "DELETE /head-events/2"}, w.wire())
		assert.Equal(t, []heads.Webhook{hook.Webhook}, w.registered(t))
	})
	t.Run("and patched", func(t *testing.T) {
		w, client, other := overtaken(t, heads.EventInactivityWarning)
		hook := heads.Must(client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{}))(t)
		assert.Equal(t, other.ID, hook.ID)
		left := w.registered(t)
		require.Len(t, left, 1)
		assert.Equal(t, []heads.EventType{heads.EventStartConversation}, left[0].Events())
	})
	t.Run("gone already", func(t *testing.T) {
		w, client, other := overtaken(t, heads.EventStartConversation)
		w.Inject(headstest.Fault{Method: http.MethodDelete, Status: 404})
		hook := heads.Must(client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{}))(t)
		assert.Equal(t, other.ID, hook.ID)
	})
	t.Run("not to be taken back", func(t *testing.T) {
		w, client, _ := overtaken(t, heads.EventStartConversation)
		w.Inject(headstest.Fault{Method: http.MethodDelete, Status: 403})
		_, err := client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{})
		require.ErrorIs(t, err, heads.ErrForbidden)
		require.ErrorContains(t, err, "heads: Webhooks.Ensure: webhook 2 was created beside 1 and could not be deleted again")
	})
}

// A client that created the later of two registrations deletes its own. A later
// registration of another program stays.
func TestEnsureLeavesALaterOneOfAnotherProgram(t *testing.T) {
	w := newWorld(t)
	client := w.client(w.onCreate(func() {}, func() { w.add(t, hookURL, heads.EventStartConversation) }))
	hook := heads.Must(client.Webhooks.Ensure(t.Context(), w.spec(), heads.EnsureOptions{}))(t)
	assert.EqualValues(t, 1, hook.ID)
	assert.Equal(t, []int64{2}, hook.Duplicates)
	assert.Len(t, w.registered(t), 2)
}

func TestEnsureRefusesAnInvalidSpecBeforeAnythingIsSent(t *testing.T) {
	w := newWorld(t)
	hook, err := w.client().Webhooks.Ensure(t.Context(), heads.WebhookSpec{}, heads.EnsureOptions{})
	assert.Nil(t, hook)
	assert.Equal(t, []string{"head id", "webhookUrl", "events"}, refusedFields(t, "Webhooks.Ensure", err))
	assert.Empty(t, w.wire())
	assert.Equal(t, err.Error(), strings.ReplaceAll(heads.WebhookSpec{}.Validate().Error(), "WebhookSpec.Validate", "Webhooks.Ensure"))
	assert.NoError(t, w.spec().Validate())
}

// refusedFields returns the fields of the InvalidErrors in err, in order. All must
// be of the operation.
func refusedFields(t *testing.T, operation string, err error) (fields []string) {
	t.Helper()
	for _, invalid := range heads.InvalidErrors(t, err) {
		assert.Equal(t, operation, invalid.Operation)
		fields = append(fields, invalid.Field)
	}
	return fields
}

func TestEnsureShowsNoSecret(t *testing.T) {
	for name, row := range map[string]struct {
		faults []headstest.Fault
		fails  bool
	}{
		"success":             {},
		"create not readable": {[]headstest.Fault{{Method: http.MethodPost, Body: `{"sharedkey":7,"shared_key":"key-canary"}`}}, false},
		"create and list fail": {[]headstest.Fault{
			{Method: http.MethodPost, Body: `{"sharedKey":["key-canary"]}`}, {Method: http.MethodGet, Times: 1},
			{Method: http.MethodGet, Body: `{"sharedKey":"key-canary"}`},
		}, true},
		"list not readable": {[]headstest.Fault{{Method: http.MethodGet, Body: `[{"id":1,"sharedKey":"key-canary","headId":7}]`}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var repairs []func()
			for _, f := range row.faults {
				repairs = append(repairs, w.Inject(f))
			}
			hook, err := w.ensure(t, heads.EnsureOptions{})
			assert.Equal(t, row.fails, err != nil)
			for _, repair := range repairs {
				repair()
			}
			secrets := []string{w.BearerToken(), "path-canary", "query-canary", "key-canary"}
			for _, left := range w.registered(t) {
				secrets = append(secrets, left.SharedKey.Reveal())
			}
			heads.AssertHides(t, hook, secrets...)
			heads.AssertHides(t, err, secrets...)
		})
	}
}

const readHook, writeHook = "GET /head-events/1", "PATCH /head-events/1"

// newModifyWorld has one registration, number 1, for two events.
func newModifyWorld(t *testing.T, opts ...headstest.Option) *world {
	t.Helper()
	w := newWorld(t, opts...)
	w.add(t, hookURL, heads.EventStartConversation, heads.EventTimeoutConversation)
	return w
}

func TestWebhooksModifySendsEveryWritableField(t *testing.T) {
	const otherHead = "9b2c1d3e-4f50-4a6b-8c7d-0e1f2a3b4c5d"
	for _, tt := range []struct {
		name   string
		change func(*heads.Webhook)
		body   string // with HEAD for the id of the head
	}{
		{"one event on", func(h *heads.Webhook) { h.EndConversation = true },
			`{"headId":"HEAD","webhookUrl":"` + hookURL + `","startConversation":true,"endConversation":true,"timeoutConversation":true,"inactivityWarning":false}`},
		{"one event off", func(h *heads.Webhook) { h.StartConversation = false },
			`{"headId":"HEAD","webhookUrl":"` + hookURL + `","startConversation":false,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false}`},
		{"URL", func(h *heads.Webhook) { h.URL = "https://hooks.example.com/new" },
			`{"headId":"HEAD","webhookUrl":"https://hooks.example.com/new","startConversation":true,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false}`},
		{"everything", func(h *heads.Webhook) {
			h.HeadID, h.URL = otherHead, "https://hooks.example.com/new"
			h.StartConversation, h.EndConversation, h.TimeoutConversation, h.InactivityWarning = false, true, false, true
		}, `{"headId":"` + otherHead + `","webhookUrl":"https://hooks.example.com/new","startConversation":false,"endConversation":true,"timeoutConversation":false,"inactivityWarning":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newModifyWorld(t)
			w.AddHead(headstest.Head{ID: otherHead})
			var before heads.Webhook
			got := heads.Must(w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
				before = *h
				tt.change(h)
				return nil
			}))(t)
			sent := w.since()
			require.Len(t, sent, 2)
			assert.Equal(t, strings.ReplaceAll(tt.body, "HEAD", w.head), string(sent[1].Body))
			tt.change(&before)
			assert.Equal(t, before, *got, "the registration as it was left")
			after := heads.Must(w.client().Webhooks.Get(t.Context(), 1))(t)
			after.UpdatedAt = got.UpdatedAt
			assert.Equal(t, got, after, "and as the service has it")
		})
	}
}

func TestWebhooksModifySendsNothingWhenNothingChanged(t *testing.T) {
	for name, change := range map[string]func(*heads.Webhook){
		"nothing touched":   func(*heads.Webhook) {},
		"same values given": func(h *heads.Webhook) { h.URL, h.StartConversation = hookURL, true },
		"there and back": func(h *heads.Webhook) {
			h.InactivityWarning = true
			h.InactivityWarning = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModifyWorld(t)
			got := heads.Must(w.client().Webhooks.Modify(t.Context(), 1, heads.Edit(change)))(t)
			assert.Equal(t, []string{readHook}, w.wire())
			assert.Equal(t, []heads.Webhook{*got}, w.registered(t))
		})
	}
}

func TestWebhooksModifyRefusesAChangeOfAReadOnlyField(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*heads.Webhook)
		fields []string
	}{
		{"id", func(h *heads.Webhook) { h.ID = 2 }, []string{"id"}},
		{"creation", func(h *heads.Webhook) { h.CreatedAt = heads.Time{Time: time.Unix(0, 0)} }, []string{"createdAt"}},
		{"last change", func(h *heads.Webhook) { h.UpdatedAt.Text = "now" }, []string{"updatedAt"}},
		{"organisation", func(h *heads.Webhook) { h.OrgID = "" }, []string{"orgId"}},
		{"shared key", func(h *heads.Webhook) { h.SharedKey = heads.NewSecret("key-canary") }, []string{"sharedKey"}},
		{"beside a writable one", func(h *heads.Webhook) { h.EndConversation, h.OrgID = true, "" }, []string{"orgId"}},
		{"all at once", func(h *heads.Webhook) { *h = heads.Webhook{HeadID: h.HeadID, URL: h.URL} },
			[]string{"id", "createdAt", "updatedAt", "orgId", "sharedKey"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newModifyWorld(t)
			key := w.registered(t)[0].SharedKey.Reveal()
			got, err := w.client().Webhooks.Modify(t.Context(), 1, heads.Edit(tt.change))
			assert.Nil(t, got)
			assert.Equal(t, tt.fields, refusedFields(t, "Webhooks.Modify", err))
			assert.NotContains(t, err.Error(), key)
			assert.NotContains(t, err.Error(), "key-canary")
			assert.Equal(t, []string{readHook}, w.wire())
		})
	}
}

func TestWebhooksModifyRefusesWhatUpdateRefuses(t *testing.T) {
	w := newModifyWorld(t)
	got, err := w.client().Webhooks.Modify(t.Context(), 1, heads.Edit(func(h *heads.Webhook) { h.URL, h.HeadID = "http://hooks.example.com/in", "li-28379" }))
	assert.Nil(t, got)
	assert.Equal(t, []string{"head id", "webhookUrl"}, refusedFields(t, "Webhooks.Update", err))
	assert.Equal(t, []string{readHook}, w.wire())
}

func TestWebhooksModifyReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	w := newModifyWorld(t)
	mine := errors.New("not today")
	got, err := w.client().Webhooks.Modify(t.Context(), 1, func(h *heads.Webhook) error {
		h.EndConversation = true
		return mine
	})
	assert.Nil(t, got)
	assert.Same(t, mine, err, "not wrapped")
	assert.Equal(t, []string{readHook}, w.wire())
}

func TestWebhooksModifyRefusesWhatItCannotRead(t *testing.T) {
	w := newModifyWorld(t)
	called := false
	change := func(*heads.Webhook) error {
		called = true
		return nil
	}
	for _, id := range []int64{0, -1} {
		require.ErrorIs(t, heads.ErrorOf(w.client().Webhooks.Modify(t.Context(), id, change)), heads.ErrInvalid)
	}
	assert.Equal(t, []string{"change"}, refusedFields(t, "Webhooks.Modify", heads.ErrorOf(w.client().Webhooks.Modify(t.Context(), 1, nil))))
	assert.Empty(t, w.wire())

	require.ErrorIs(t, heads.ErrorOf(w.client().Webhooks.Modify(t.Context(), 99, change)), heads.ErrNotFound)
	assert.Equal(t, []string{"GET /head-events/99"}, w.wire())
	assert.False(t, called)
}

func TestWebhooksModifyTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModifyWorld(t)
		w.everyReadIsSlow()
		client := w.client().Webhooks
		changes := []func(*heads.Webhook){
			func(h *heads.Webhook) { h.EndConversation = true },
			func(h *heads.Webhook) { h.InactivityWarning = true },
			func(h *heads.Webhook) { h.URL = "https://hooks.example.com/new" },
		}
		heads.InParallel(len(changes), func(i int) {
			assert.NoError(t, heads.ErrorOf(client.Modify(t.Context(), 1, heads.Edit(changes[i]))))
		})
		hook := w.registered(t)[0]
		assert.True(t, hook.EndConversation && hook.InactivityWarning, "no change is lost")
		assert.Equal(t, "https://hooks.example.com/new", hook.URL)
	})
}

func TestEventsWithoutTypesCanBeFollowedByOne(t *testing.T) {
	w := newModifyWorld(t)
	require.NoError(t, w.client().Webhooks.Update(t.Context(), 1, heads.NewWebhookUpdate().Events().Event(heads.EventEndConversation, true)))
	assert.Equal(t, []heads.EventType{heads.EventEndConversation}, w.registered(t)[0].Events())
	err := w.client().Webhooks.Update(t.Context(), 1, heads.NewWebhookUpdate().Events().Event(heads.EventEndConversation, false))
	assert.ErrorIs(t, err, heads.ErrInvalid)
}

// ensureDuring runs Ensure while Modify, which has read a registration, takes a second to
// change it.
func ensureDuring(t *testing.T, w *world, id int64, change func(*heads.Webhook), o heads.EnsureOptions) {
	t.Helper()
	client, done, inside := w.client().Webhooks, make(chan error), make(chan struct{})
	go func() {
		done <- heads.ErrorOf(client.Modify(t.Context(), id, func(h *heads.Webhook) error {
			close(inside)
			<-time.After(time.Second)
			change(h)
			return nil
		}))
	}()
	<-inside
	go func() { done <- heads.ErrorOf(client.Ensure(t.Context(), w.spec(heads.EventEndConversation), o)) }()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

func TestEnsureAndModifyOfOneRegistrationTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModifyWorld(t)
		ensureDuring(t, w, 1, func(h *heads.Webhook) { h.InactivityWarning = true }, heads.EnsureOptions{})
		assert.Equal(t, []heads.EventType{heads.EventEndConversation}, w.registered(t)[0].Events(), "what Ensure reported as done")
	})
}

func TestEnsureLeavesARegistrationThatModifyHasMoved(t *testing.T) {
	const elsewhere = "https://hooks.example.com/elsewhere"
	for name, duplicate := range map[string]bool{"the one in use": false, "a duplicate": true} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newModifyWorld(t)
			moved := int64(1)
			if duplicate {
				moved = w.add(t, hookURL, heads.EventStartConversation).ID
			}
			ensureDuring(t, w, moved, func(h *heads.Webhook) { h.URL = elsewhere }, heads.EnsureOptions{RemoveDuplicates: duplicate})
			urls := map[string]int{}
			for _, hook := range w.registered(t) {
				urls[hook.URL]++
			}
			assert.Equal(t, map[string]int{elsewhere: 1, hookURL: 1}, urls)
		})
	}
}
