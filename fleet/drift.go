package fleet

import (
	"slices"

	heads "github.com/headsapi/heads-go"
)

// Drift compares a head and its registrations with a spec. It returns the changes that Apply would
// make, in the same order. It sends no request. Unlike Plan, it does not check whether the changes
// are possible, so nothing is blocked.
func Drift(head *heads.Head, registered []heads.Webhook, spec Spec) ([]Change, error) {
	fields, err := fieldChanges(head, spec.Set)
	if err != nil {
		return nil, err
	}
	changes := fields.changes
	if !sameVoice(spec.Voice, head) {
		changes = append(changes, voiceChange(spec.Voice, head))
	}
	if spec.Streaming != nil && *spec.Streaming != head.VideoStreaming {
		changes = append(changes, switchChange("streaming", *spec.Streaming))
	}
	if spec.Delivery != nil && *spec.Delivery != head.EnableEvents {
		changes = append(changes, switchChange("delivery", *spec.Delivery))
	}
	if spec.Webhooks != nil {
		changes = append(changes, webhookChanges(spec, slices.Clone(registered)).changes...)
	}
	if spec.Tools == nil {
		return changes, nil
	}
	tools, err := toolChanges(head, *spec.Tools)
	return append(changes, tools.changes...), err
}
