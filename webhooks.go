package heads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/keycache"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/panics"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
)

// WebhooksService registers the URLs that receive the events of heads.
type WebhooksService struct{ service }

// Webhook is one registration: a URL that receives the events of a head.
// Printing it shows neither the shared key nor the path and query of the URL.
type Webhook struct {
	ID                  int64  `json:"id"`
	CreatedAt           Time   `json:"createdAt"`
	UpdatedAt           Time   `json:"updatedAt"`
	OrgID               string `json:"orgId"`
	HeadID              string `json:"headId"`
	URL                 string `json:"webhookUrl"`
	SharedKey           Secret `json:"sharedKey"` // signs the events
	StartConversation   bool   `json:"startConversation"`
	EndConversation     bool   `json:"endConversation"`
	TimeoutConversation bool   `json:"timeoutConversation"`
	InactivityWarning   bool   `json:"inactivityWarning"`
}

// WebhookSpec describes the registration that Create and Ensure make.
type WebhookSpec struct {
	HeadID string
	URL    string      // https; http only to a loopback host
	Events []EventType // at least one; all others are off
}

// WebhookUpdate is a partial update of a registration. It sends the fields whose
// setter was called, and nothing else.
//
// A WebhookUpdate is safe for concurrent use as long as no setter is called.
type WebhookUpdate struct {
	headID *string
	url    *Secret            // it may hold a token
	flags  map[EventType]bool // never changed, since a copy of the update may share it
	none   bool               // Events was called without types, and no event was turned on after it
}

var (
	opWebhooksCreate      = transport.NewOperation("Webhooks.Create", http.MethodPost, "/head-events")
	opWebhooksList        = transport.NewOperation("Webhooks.List", http.MethodGet, "/head-events")
	opWebhooksGet         = transport.NewOperation("Webhooks.Get", http.MethodGet, "/head-events/{webhookId}")
	opWebhooksUpdate      = transport.NewOperation("Webhooks.Update", http.MethodPatch, "/head-events/{webhookId}")
	opWebhooksDelete      = transport.NewOperation("Webhooks.Delete", http.MethodDelete, "/head-events/{webhookId}")
	opWebhooksSetDelivery = transport.NewOperation("Webhooks.SetDelivery", http.MethodPut, "/head/{headId}/enable-events")
)

// Create registers a URL. A second registration of the same URL does not replace
// the first, so events arrive twice; Ensure avoids that. The head delivers
// nothing until SetDelivery has turned delivery on.
//
// POST /head-events. The contract promises only the shared key in the answer. It
// is always set in the result; ID is 0 if the service did not send it. Create
// returns an InvalidError for a spec without events, with unknown events, or
// with a URL that is not https. A request that got no answer is not retried, and
// may have been carried out.
func (s *WebhooksService) Create(ctx context.Context, spec WebhookSpec) (*Webhook, error) {
	if err := spec.validate(opWebhooksCreate.Name); err != nil {
		return nil, err
	}
	body := spec.webhook().writable().document()
	created, err := do[createdWebhook](ctx, s.core, opWebhooksCreate, payload{body: body, of: spec.HeadID})
	if err != nil {
		return nil, err
	}
	hook := created.complete(spec)
	s.learn(hook)
	return hook, nil
}

// List returns all registrations of a head, in the service's order.
//
// GET /head-events?headId=…. A list with a record that does not name this head
// is a DecodeError. A list that is null is empty.
func (s *WebhooksService) List(ctx context.Context, headID string) ([]Webhook, error) {
	asked := time.Now()
	hooks, err := s.list(ctx, headID, true)
	if err == nil {
		s.learnAll(headID, hooks, asked)
	}
	return hooks, err
}

// list is List; without retry it sends one request at most.
func (s *WebhooksService) list(ctx context.Context, headID string, retry bool) ([]Webhook, error) {
	if err := checkHeadID(opWebhooksList.Name, headID); err != nil {
		return nil, err
	}
	type options struct {
		HeadID string `url:"headId"`
	}
	hooks, err := do[webhookList](ctx, s.core, opWebhooksList, payload{query: queryOf(options{headID}), of: headID, once: !retry})
	if err != nil {
		return nil, err
	}
	return *hooks, nil
}

// Get reads one registration.
//
// GET /head-events/{webhookId}. Get returns an InvalidError for an id below 1.
// An answer without this id is a DecodeError.
func (s *WebhooksService) Get(ctx context.Context, webhookID int64) (*Webhook, error) {
	if err := checkWebhookID(opWebhooksGet.Name, webhookID); err != nil {
		return nil, err
	}
	hook, err := do[Webhook](ctx, s.core, opWebhooksGet, webhookPayload(webhookID))
	if err == nil {
		s.learn(hook)
	}
	return hook, err
}

// Validate returns why the spec can't be sent, all faults together, each an
// InvalidError: a head id that is not a UUID, a URL that is not https, no event or
// an unknown one. Plain http is allowed to a loopback host.
func (s WebhookSpec) Validate() error { return s.validate("WebhookSpec.Validate") }

// Update changes the fields that u sets, and nothing else.
//
// PATCH /head-events/{webhookId}. Update returns an InvalidError for an update
// that sets nothing, an unknown event type, or a URL that is not https. The
// contract does not describe the answer.
func (s *WebhooksService) Update(ctx context.Context, webhookID int64, u *WebhookUpdate) error {
	_, err := s.update(ctx, webhookID, u)
	return err
}

// update is Update, and returns the answer.
func (s *WebhooksService) update(ctx context.Context, webhookID int64, u *WebhookUpdate) (*Response, error) {
	var faults faultList
	faults.add(checkWebhookID(opWebhooksUpdate.Name, webhookID))
	faults.add(u.validate(opWebhooksUpdate.Name))
	if err := faults.join(); err != nil {
		return nil, err
	}
	p := webhookPayload(webhookID)
	p.body = u.document()
	if u.headID != nil {
		defer s.expect(*u.headID) // also if the answer is lost
	}
	return doPlain(ctx, s.core, opWebhooksUpdate, p)
}

// Modify reads a registration and calls change with it. If something changed, it
// writes every writable field back, which is right whether the service merges or
// replaces. It returns the changed registration.
//
// GET /head-events/{webhookId}, PATCH /head-events/{webhookId}. Modify returns
// an InvalidError for a change of a read-only field (id, createdAt, updatedAt,
// orgId, sharedKey), a URL that is not https, and a head id that is not a UUID.
// An error of change is returned as it is, and nothing is sent.
//
// If the answer to the write has an unknown shape, Modify reads the registration
// again. It returns an error unless the registration shows the change.
//
// One client runs one Modify or Ensure of a registration at a time. So change must
// not modify the same registration: it would wait for itself until the context
// ends.
func (s *WebhooksService) Modify(ctx context.Context, webhookID int64, change func(*Webhook) error) (*Webhook, error) {
	const operation = "Webhooks.Modify"
	if change == nil {
		return nil, invalid(operation, "change", "is nil", "give a function that changes the webhook")
	}
	unlock, err := s.core.lock(ctx, operation, webhookLock(webhookID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := s.Get(ctx, webhookID)
	if err != nil {
		return nil, err
	}
	after := *before
	if err := change(&after); err != nil {
		return nil, err
	}
	if err := before.sameReadOnly(operation, &after); err != nil {
		return nil, err
	}
	if after.sameWritable(before) {
		return &after, nil
	}
	answer, err := s.update(ctx, webhookID, after.writable())
	s.core.webhooksModified.Add(1) // not before it: Ensure reads again what it listed earlier
	if err != nil {
		return nil, err
	}
	read := func() (*Webhook, error) { return s.Get(ctx, webhookID) }
	if err := confirm(operation, answer, strconv.FormatInt(webhookID, 10), read, after.sameWritable); err != nil {
		return nil, err
	}
	return &after, nil
}

// Delete removes a registration for good. A 404 that follows an attempt
// without an answer, or with a 5xx, is success.
//
// DELETE /head-events/{webhookId}. If the answer is an HTML page, as a proxy
// sends it, Delete reads the registration and returns an error if it is still
// there.
func (s *WebhooksService) Delete(ctx context.Context, webhookID int64) error {
	if err := checkWebhookID(opWebhooksDelete.Name, webhookID); err != nil {
		return err
	}
	answer, err := doPlain(ctx, s.core, opWebhooksDelete, webhookPayload(webhookID))
	if err != nil || answer.StatusCode == http.StatusNotFound || !answer.isPage() {
		return err
	}
	gone := func() (bool, error) {
		_, err := s.Get(ctx, webhookID)
		if errors.Is(err, ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	return confirm(opWebhooksDelete.Name, answer, strconv.FormatInt(webhookID, 10), gone, func(gone bool) bool { return gone })
}

// SetDelivery turns the delivery of events for a head on or off. Registrations
// are kept.
//
// PUT /head/{headId}/enable-events.
func (s *WebhooksService) SetDelivery(ctx context.Context, headID string, enabled bool) error {
	_, err := s.setDelivery(ctx, headID, enabled)
	return err
}

// setDelivery is SetDelivery, and returns the answer.
func (s *WebhooksService) setDelivery(ctx context.Context, headID string, enabled bool) (*Response, error) {
	if err := checkHeadID(opWebhooksSetDelivery.Name, headID); err != nil {
		return nil, err
	}
	type options struct {
		EnableEvents bool `url:"enableEvents"`
	}
	return doPlain(ctx, s.core, opWebhooksSetDelivery, payload{param: headID, query: queryOf(options{enabled})})
}

// NewWebhookUpdate returns an update that sets nothing yet.
func NewWebhookUpdate() *WebhookUpdate { return &WebhookUpdate{} }

// HeadID moves the registration to another head.
func (u *WebhookUpdate) HeadID(v string) *WebhookUpdate {
	u.headID = &v
	return u
}

// URL sets the URL that receives the events.
func (u *WebhookUpdate) URL(v string) *WebhookUpdate {
	url := NewSecret(v)
	u.url = &url
	return u
}

// Events sets all four flags: on for the given types, off for all others.
// Without types the update is refused, unless Event turns one on afterwards. Use
// SetDelivery to turn delivery off.
func (u *WebhookUpdate) Events(types ...EventType) *WebhookUpdate {
	for _, flag := range eventFlags {
		u.Event(flag.event, false)
	}
	for _, t := range types {
		u.Event(t, true)
	}
	u.none = len(types) == 0
	return u
}

// Event sets one flag. The others don't change.
func (u *WebhookUpdate) Event(t EventType, on bool) *WebhookUpdate {
	flags := map[EventType]bool{}
	maps.Copy(flags, u.flags)
	flags[t.normal()] = on
	u.flags = flags
	u.none = u.none && !on
	return u
}

// Events returns the event types that the registration receives.
func (w *Webhook) Events() []EventType {
	var types []EventType
	for _, flag := range eventFlags {
		if *flag.of(w) {
			types = append(types, flag.event)
		}
	}
	return types
}

// Format shows id, head, host and events.
func (w Webhook) Format(f fmt.State, _ rune) { writeText(f, w.describe()) }

// LogValue returns id, head, host and events.
func (w Webhook) LogValue() slog.Value { return slog.GroupValue(w.attrs()...) }

func (w *Webhook) attrs() []slog.Attr {
	return append([]slog.Attr{slog.Int64("id", w.ID)}, WebhookSpec{w.HeadID, w.URL, w.Events()}.attrs()...)
}

func (w Webhook) describe() string {
	return fmt.Sprintf("heads.Webhook{%d, head: %s, host: %s, events: %s}", w.ID, label(w.HeadID), mask.Host(w.URL, maxLabel), joinEvents(w.Events()))
}

// Format shows head, host and events.
func (s WebhookSpec) Format(f fmt.State, _ rune) { writeText(f, s.describe()) }

// LogValue returns head, host and events.
func (s WebhookSpec) LogValue() slog.Value { return slog.GroupValue(s.attrs()...) }

func (s WebhookSpec) attrs() []slog.Attr {
	return []slog.Attr{slog.String("head_id", label(s.HeadID)), slog.String("host", mask.Host(s.URL, maxLabel)), slog.String("events", joinEvents(s.Events))}
}

func (s WebhookSpec) describe() string {
	return fmt.Sprintf("heads.WebhookSpec{head: %s, host: %s, events: %s}", label(s.HeadID), mask.Host(s.URL, maxLabel), joinEvents(s.Events))
}

func (w *Webhook) checkID(id string) error {
	found := ""
	if w.ID != 0 {
		found = strconv.FormatInt(w.ID, 10)
	}
	return sameID("webhook", found, id)
}

// UnmarshalJSON reads a registration as the service sends it or as it was stored.
// Names are exact, and a field that occurs twice is an error.
func (w *Webhook) UnmarshalJSON(document []byte) error { return unmarshal(document, w.decode) }

func (w *Webhook) decode(document []byte) error {
	return decodeObject(document, w, exactjson.Rules{})
}

// webhookList is the answer to List.
type webhookList []Webhook

// decode reads null as an empty list.
func (l *webhookList) decode(document []byte) error {
	document = bytes.TrimSpace(document)
	if !rawjson.IsNull(document) && rawjson.Kind(document) != "array" {
		return exactjson.Mismatch("", document, reflect.TypeFor[webhookList]())
	}
	*l = webhookList{}
	for record := range rawjson.Elements(document) {
		var w Webhook
		if err := w.UnmarshalJSON(record); err != nil {
			return err
		}
		*l = append(*l, w)
	}
	return nil
}

// checkID compares the head of every record with the id of a head.
func (l *webhookList) checkID(headID string) error {
	for _, w := range *l {
		if !strings.EqualFold(w.HeadID, headID) {
			return answerFault("a record in it does not belong to the head that was asked for")
		}
	}
	return nil
}

// eventFlags ties each event type to its flag in a registration.
var eventFlags = []struct {
	event EventType
	name  string // in JSON
	of    func(*Webhook) *bool
}{
	{EventStartConversation, "startConversation", func(w *Webhook) *bool { return &w.StartConversation }},
	{EventEndConversation, "endConversation", func(w *Webhook) *bool { return &w.EndConversation }},
	{EventTimeoutConversation, "timeoutConversation", func(w *Webhook) *bool { return &w.TimeoutConversation }},
	{EventInactivityWarning, "inactivityWarning", func(w *Webhook) *bool { return &w.InactivityWarning }},
}

// document returns the fields that are set as a JSON object.
func (u *WebhookUpdate) document() json.RawMessage {
	doc := []byte("{}")
	if u.headID != nil {
		doc = rawjson.With(doc, "headId", rawjson.String(*u.headID))
	}
	if u.url != nil {
		doc = rawjson.With(doc, "webhookUrl", rawjson.String(u.url.Reveal()))
	}
	for _, flag := range eventFlags {
		if on, ok := u.flags[flag.event]; ok {
			doc = rawjson.With(doc, flag.name, strconv.AppendBool(nil, on))
		}
	}
	return doc
}

// writable returns an update with every writable field of the registration.
func (w *Webhook) writable() *WebhookUpdate {
	return NewWebhookUpdate().HeadID(w.HeadID).URL(w.URL).Events(w.Events()...)
}

// sameWritable reports whether an update would make no difference.
func (w *Webhook) sameWritable(o *Webhook) bool {
	return strings.EqualFold(w.HeadID, o.HeadID) && w.URL == o.URL && slices.Equal(w.Events(), o.Events())
}

// sameReadOnly returns a fault for each field that an update can't change and
// that differs.
func (w *Webhook) sameReadOnly(operation string, after *Webhook) error {
	var faults faultList
	check := func(field string, same bool) {
		if !same {
			faults.add(faultOf(operation, field, readOnly))
		}
	}
	check("id", w.ID == after.ID)
	check("createdAt", w.CreatedAt == after.CreatedAt)
	check("updatedAt", w.UpdatedAt == after.UpdatedAt)
	check("orgId", w.OrgID == after.OrgID)
	check("sharedKey", w.SharedKey == after.SharedKey)
	return faults.join()
}

func knownEvent(t EventType) bool { return slices.Contains(eventTypes(), t) }

// eventTypes returns the types that a registration has a flag for.
func eventTypes() []EventType {
	types := make([]EventType, len(eventFlags))
	for i, flag := range eventFlags {
		types[i] = flag.event
	}
	return types
}

// normal returns the type in lower case, as in events.
func (t EventType) normal() EventType { return EventType(strings.ToLower(string(t))) }

func (s WebhookSpec) validate(operation string) error {
	var faults faultList
	faults.add(checkHeadID(operation, s.HeadID))
	faults.add(checkCallbackURL(operation, "webhookUrl", s.URL))
	if len(s.Events) == 0 {
		faults.add(invalid(operation, "events", "are empty, so nothing would ever be delivered", fmt.Sprintf("name at least one of %s", joinEvents(eventTypes()))))
	}
	for _, t := range s.Events {
		faults.add(checkEventType(operation, t))
	}
	return faults.join()
}

func checkEventType(operation string, t EventType) error {
	if knownEvent(t.normal()) {
		return nil
	}
	return invalid(operation, "events", fmt.Sprintf("hold %s, which is unknown", quote(string(t))), fmt.Sprintf("use %s", joinEvents(eventTypes())))
}

// age is what registration.SortByAge wants to know.
func (w Webhook) age() (created time.Time, id int64) { return w.CreatedAt.Time, w.ID }

func joinEvents(types []EventType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = label(string(t))
	}
	return strings.Join(texts, ", ")
}

func (u *WebhookUpdate) validate(operation string) error {
	if u == nil {
		return invalid(operation, "update", "is nil", "make one with NewWebhookUpdate", useNewWebhookUpdate)
	}
	var faults faultList
	if u.headID == nil && u.url == nil && len(u.flags) == 0 {
		faults.add(invalid(operation, "update", "sets nothing", "set what should change"))
	}
	if u.none {
		faults.add(invalid(operation, "events", "are empty, so nothing would ever be delivered", "name at least one, or use Webhooks.SetDelivery to turn delivery off", useSetDelivery))
	}
	if u.headID != nil {
		faults.add(checkHeadID(operation, *u.headID))
	}
	if u.url != nil {
		faults.add(checkCallbackURL(operation, "webhookUrl", u.url.Reveal()))
	}
	for t := range u.flags {
		faults.add(checkEventType(operation, t))
	}
	return faults.join()
}

// createdWebhook is the answer to a create, of which the contract promises only
// sharedKey.
type createdWebhook struct {
	Webhook
	document []byte
}

func (w *createdWebhook) decode(document []byte) error {
	w.document = bytes.Clone(document)
	open := func(path string) bool { return path != "sharedKey" }
	return decodeObject(document, &w.Webhook, exactjson.Rules{Open: open})
}

// checkID compares the head of the record, if it names one, with the id of a head.
func (w *createdWebhook) checkID(headID string) error {
	switch {
	case w.SharedKey.IsZero():
		return answerFault("the webhook was created, but the answer holds no sharedKey; the list of the head's webhooks has it")
	case w.HeadID != "" && !strings.EqualFold(w.HeadID, headID):
		return answerFault("it is the registration of another head than the one that was asked for")
	}
	return nil
}

// complete returns the registration. What the answer does not hold is taken from
// the spec.
func (w *createdWebhook) complete(spec WebhookSpec) *Webhook {
	hook, wanted := w.Webhook, spec.webhook()
	hook.HeadID = cmp.Or(hook.HeadID, wanted.HeadID)
	hook.URL = cmp.Or(hook.URL, wanted.URL)
	for _, flag := range eventFlags {
		if said, _ := rawjson.Value(w.document, flag.name); rawjson.Kind(said) != "boolean" {
			*flag.of(&hook) = *flag.of(wanted)
		}
	}
	return &hook
}

// webhook returns the registration that the spec describes.
func (s WebhookSpec) webhook() *Webhook {
	w := &Webhook{HeadID: s.HeadID, URL: s.URL}
	w.setEvents(s.Events...)
	return w
}

// setEvents sets the flags: on for the given types, off for all others.
func (w *Webhook) setEvents(types ...EventType) {
	for _, flag := range eventFlags {
		*flag.of(w) = slices.ContainsFunc(types, func(t EventType) bool { return t.normal() == flag.event })
	}
}

// webhookLock returns the lock key of a registration.
func webhookLock(webhookID int64) lockKey {
	return lockKey{"webhook", strconv.FormatInt(webhookID, 10)}
}

func webhookPayload(webhookID int64) payload {
	return payload{param: strconv.FormatInt(webhookID, 10)}
}

// keyCache returns what the client knows of shared keys.
func (s *WebhooksService) keyCache() *keycache.Cache {
	if s.core == nil {
		return newKeyCache(s.sharedKeys) // its requests return what is wrong with the client
	}
	// Not by New, so that a program without webhooks links none of this.
	s.core.newKeys.Do(func() { s.core.keys = newKeyCache(s.sharedKeys) })
	return s.core.keys
}

// newKeyCache returns a cache that asks list for the keys of a head.
func newKeyCache(list keycache.List) *keycache.Cache {
	return keycache.New(func(ctx context.Context, headID string, retry bool) (keys []string, err error) {
		// The user's token source and transport run here, on a goroutine of the cache.
		err = panics.Try(func() (err error) {
			keys, err = list(ctx, headID, retry)
			return err
		})
		return usableKeys(keys), err
	})
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
	return keysOf(hooks), nil
}

// keysOf returns the keys of registrations that are all of one head, as List has
// checked.
func keysOf(hooks []Webhook) (keys []string) {
	for _, hook := range hooks {
		keys = append(keys, hook.SharedKey.Reveal())
	}
	return keys
}

// learn stores the key of a registration for the sources of the client.
func (s *WebhooksService) learn(hook *Webhook) {
	if check.IsUUID(hook.HeadID) {
		s.keyCache().Learn(strings.ToLower(hook.HeadID), hook.SharedKey.Reveal())
	}
}

// learnAll stores the keys of all registrations of a head. The service was asked for them
// at that time.
func (s *WebhooksService) learnAll(headID string, hooks []Webhook, asked time.Time) {
	s.keyCache().LearnAll(strings.ToLower(headID), usableKeys(keysOf(hooks)), asked)
}

// expect makes the sources ask about a head that had no registration and may have one
// now.
func (s *WebhooksService) expect(headID string) {
	s.keyCache().Forget(strings.ToLower(headID))
}
