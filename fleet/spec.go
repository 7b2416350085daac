package fleet

import (
	"fmt"
	"log/slog"
	"net/url"

	heads "github.com/headsapi/heads-go"
)

// Spec is the declared state of one head. Absent fields are not changed.
//
// A Spec prints as its id and label, since URLs and fields may contain secrets. Its JSON has
// everything except Omitted.
type Spec struct {
	ID            string         `json:"id" yaml:"id"`                                             // UUID
	Label         string         `json:"label,omitempty" yaml:"label,omitempty"`                   // for people, never sent
	Set           map[string]any `json:"set,omitempty" yaml:"set,omitempty"`                       // writable fields by their JSON names; null where it is allowed
	Voice         *heads.Voice   `json:"voice,omitempty" yaml:"voice,omitempty"`                   // part of the conversion if there is one
	Streaming     *bool          `json:"streaming,omitempty" yaml:"streaming,omitempty"`           // true converts, false converts back
	Delivery      *bool          `json:"delivery,omitempty" yaml:"delivery,omitempty"`             // enableEvents; webhooks alone don't turn it on
	Webhooks      []WebhookSpec  `json:"webhooks,omitzero" yaml:"webhooks,omitzero"`               // registered or updated; nil changes none
	PruneWebhooks bool           `json:"prune_webhooks,omitempty" yaml:"prune_webhooks,omitempty"` // delete all other registrations, duplicates too; nothing if Webhooks is nil
	Tools         *[]heads.Tool  `json:"tools,omitempty" yaml:"tools,omitempty"`                   // all tools of the head; nil changes none

	// Omitted is set by SpecOf. It lists the values of the head that a Spec can't represent, each
	// with the reason. Plan and Apply ignore it.
	Omitted []string `json:"-" yaml:"-"`
}

// WebhookSpec is the declared state of one registration. If several registrations have its URL, the
// oldest is used. A WebhookSpec prints as host and events, since a URL may contain a token.
type WebhookSpec struct {
	URL    string            `json:"url" yaml:"url"`       // https; http only to a loopback host
	Events []heads.EventType `json:"events" yaml:"events"` // at least one; all others are off
}

// Format shows id and label.
func (s Spec) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "fleet.Spec{%s %q}", s.ID, s.Label) }

// LogValue shows id and label.
func (s Spec) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", s.ID), slog.String("label", s.Label))
}

// Format shows host and events.
func (w WebhookSpec) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "fleet.WebhookSpec{host: %s, events: %s}", w.host(), joinEvents(w.Events))
}

// LogValue shows host and events.
func (w WebhookSpec) LogValue() slog.Value {
	return slog.GroupValue(slog.String("host", w.host()), slog.String("events", joinEvents(w.Events)))
}

func (w WebhookSpec) host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
