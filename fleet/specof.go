package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/registration"
)

// SpecOf reads a head and returns its state as a Spec. Applying the Spec changes nothing. Its label
// is the name of the head.
//
// GET /head/{id}, GET /head-events. The spec has the full URLs of webhooks and tools, which may
// contain secrets. Numbers and objects in Set are json.RawMessage, with the digits and the order of
// keys that the service sent. publicUrl and voiceflowApiKey are not in the spec. Omitted lists what
// a Spec can't represent: registrations without an event, a pluginOperationalModeConfig with a
// secret, values that Apply would refuse, and all tools if one of them is invalid, since Apply
// removes tools that are missing in a spec with tools.
func SpecOf(ctx context.Context, c *heads.Client, headID string) (*Spec, error) {
	if ctx == nil || c == nil || c.Heads == nil {
		return nil, invalid("fleet.SpecOf", "client and context", "must not be nil", "use heads.New and context.Background()", useNew)
	}
	head, err := c.Heads.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	hooks, err := c.Webhooks.List(ctx, headID)
	if err != nil {
		return nil, err
	}
	s := &specReader{Spec{ID: head.ID, Label: head.Name, Streaming: &head.VideoStreaming, Delivery: &head.EnableEvents}}
	if err := s.takeFields(head); err != nil {
		return nil, err
	}
	s.takeVoice(head)
	s.takeWebhooks(hooks)
	s.takeTools(head)
	return &s.Spec, nil
}

// specReader fills in the spec of a head.
type specReader struct{ Spec }

func (s *specReader) omit(what, reason string) {
	s.Omitted = append(s.Omitted, what+": "+reason)
}

// takeFields copies the writable fields of the head.
func (s *specReader) takeFields(head *heads.Head) error {
	document := head.Raw.Bytes()
	s.Set = map[string]any{}
	for _, name := range heads.WritableFields() {
		value, ok := rawjson.Value(document, name)
		if !ok || name == "voiceflowApiKey" || keysOfTheirOwn[name] != "" {
			continue
		}
		field, err := heads.HeadUpdateFromJSON(rawjson.With([]byte(`{}`), name, value))
		if err != nil { // it has a type that no update can send
			s.omit(name, faultText(err))
			continue
		}
		if len(field.Fields()) == 0 {
			continue // no update can set this
		}
		switch fault := field.Validate(); {
		case name == "pluginOperationalModeConfig" && holdsSecret(document, value):
			s.omit(name, "it holds a secret")
		case fault != nil:
			s.omit(name, faultText(fault))
		default:
			if s.Set[name], err = setValue(name, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// setValue returns the value of the only field of an update, with its digits and the order of its
// keys.
func setValue(name string, field *heads.HeadUpdate) (v any, err error) {
	value, _ := rawjson.Value(field.Document().Bytes(), name)
	if kind := rawjson.Kind(value); kind == "number" || kind == "object" && name != "promptConfig" {
		return json.RawMessage(value), nil
	}
	return v, json.Unmarshal(value, &v)
}

// holdsSecret reports whether a value of a document changes when its secrets are masked.
func holdsSecret(document, value json.RawMessage) bool {
	return !sameJSON(value, mask.JSON(value, mask.SecretsOf(document)...))
}

func (s *specReader) takeVoice(head *heads.Head) {
	voice := &heads.Voice{Provider: head.TTSProvider, ID: head.TTSVoice}
	if *voice == (heads.Voice{}) {
		return
	}
	if fault := heads.NewHeadUpdate().Voice(voice.Provider, voice.ID).Validate(); fault != nil {
		s.omit("voice", faultText(fault))
		return
	}
	s.Voice = voice
}

// takeWebhooks copies the oldest registration of each URL.
func (s *specReader) takeWebhooks(hooks []heads.Webhook) {
	byAge(hooks)
	seen := map[string]bool{}
	for _, w := range hooks {
		key := registration.URLKey(w.URL)
		if seen[key] {
			continue
		}
		seen[key] = true
		if fault := (heads.WebhookSpec{HeadID: s.ID, URL: w.URL, Events: w.Events()}).Validate(); fault != nil {
			s.omit(fmt.Sprintf("webhook %d", w.ID), faultText(fault))
			continue
		}
		s.Webhooks = append(s.Webhooks, WebhookSpec{URL: w.URL, Events: normalEvents(w.Events())})
	}
}

// takeTools copies all tools, or none if one is invalid.
func (s *specReader) takeTools(head *heads.Head) {
	if head.ConversationSettings == nil || len(head.ConversationSettings.Tools) == 0 {
		return
	}
	tools := head.ConversationSettings.Tools
	check := specFaults{}
	check.checkTools(tools)
	if len(check.faults) == 0 {
		s.Tools = &tools
		return
	}
	s.omit("tools", "all are left out, since one is broken: "+faultText(check.faults[0]))
}

// faultText returns the text of a fault in a value of a head.
func faultText(err error) string {
	var texts []string
	for _, fault := range invalidErrors(err) {
		text := strings.TrimSpace(fault.Field) + " " + fault.Problem
		if fault.Remedy != "" {
			text += "; " + fault.Remedy
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
