package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// headRun is the work on one head.
type headRun struct {
	*run
	spec    *Spec
	result  *Result
	planned *Result // the result in Options.Planned, or nil

	head      *heads.Head // as it was read
	steps     []step      // the changes to make, in this order
	blocker   error       // why the state can't be reached
	noAddress error       // set if the head is in the right mode and its new access URL is not known
}

// step is one of the changes to a head, made with one operation.
type step struct {
	changes []Change
	exact   any // the changes with full values and ids, for the digest
	do      func(context.Context) error
}

// work plans and changes one head, unless the run was stopped. ctx ends later than the caller's
// context, so a started head is finished.
func (h *headRun) work(ctx context.Context) {
	result := h.result
	result.HeadID, result.Label, result.Outcome = h.spec.ID, h.spec.Label, OutcomeSkipped
	if h.isStopped() {
		return
	}
	started := time.Now()
	if err := h.do(ctx); err != nil {
		result.Outcome, result.Err, result.Reason = OutcomeFailed, err, reasonOf(err)
	}
	if h.apply { // the results of Plan have no times
		result.Started, result.Duration = started, time.Since(started)
	}
	h.ended(*result)
}

// do reads the head and, in Apply, changes it. It returns the error of the head.
func (h *headRun) do(ctx context.Context) error {
	if err := h.plan(ctx); err != nil {
		return err
	}
	if h.result.Label == "" {
		h.result.Label = h.head.Name
	}
	if h.blocker != nil {
		h.result.Outcome, h.result.Err, h.result.Reason = OutcomeBlocked, h.blocker, reasonOf(h.blocker)
		return nil //nolint:nilerr // the result has it
	}
	if !h.switches() {
		h.findMove()
	}
	if len(h.steps) == 0 {
		h.result.Outcome = OutcomeUnchanged
		return h.noAddress
	}
	var err error
	if h.result.digest, err = h.digest(); err != nil {
		return err
	}
	switch {
	case !h.apply:
		h.expect()
		return nil
	case h.planned != nil && !h.planned.digest.Equal(h.result.digest):
		h.expect()
		h.result.Err, h.result.Reason = errPlanChanged, heads.ReasonTemporary
		return nil
	}
	for _, step := range h.steps {
		if err := step.do(ctx); err != nil {
			return err
		}
		h.result.Changes = append(h.result.Changes, step.changes...)
	}
	h.result.Outcome = OutcomeChanged
	return h.noAddress
}

// digest identifies the changes to make.
func (h *headRun) digest() (heads.Raw, error) {
	exact := []any{h.spec.ID}
	for _, step := range h.steps {
		exact = append(exact, step.exact)
	}
	document, err := rawjson.Encode(exact)
	sum := sha256.Sum256(document)
	return heads.NewRaw(sum[:]), err
}

// expect fills in the result for changes that are not made.
func (h *headRun) expect() {
	h.result.Outcome = OutcomePending
	for _, step := range h.steps {
		h.result.Changes = append(h.result.Changes, step.changes...)
	}
	if h.switches() {
		h.result.Before = h.before()
		h.result.After = h.expectedAfter()
	}
}

// plan reads the head and determines the steps and blockers.
func (h *headRun) plan(ctx context.Context) error {
	for _, part := range []func(context.Context) error{h.planModeAndVoice, h.planDelivery, h.planWebhooks, h.planTools} {
		if err := part(ctx); err != nil || h.blocker != nil {
			return err
		}
	}
	return nil
}

// planModeAndVoice reads the head and adds the steps for its fields, voice and mode.
func (h *headRun) planModeAndVoice(ctx context.Context) error {
	if wanted := h.spec.Streaming; wanted != nil && *wanted {
		return h.planStreaming(ctx)
	}
	var err error
	if h.head, err = h.client.Heads.Get(ctx, h.spec.ID); err != nil {
		return err
	}
	if h.switches() {
		return h.planLegacy(ctx)
	}
	voice := !sameVoice(h.spec.Voice, h.head)
	if voice && h.head.VideoStreaming {
		// Whether the new provider can stream is a rule of PlanStreaming.
		plan, err := h.client.Heads.PlanStreaming(ctx, h.spec.ID, h.convertOptions())
		if err != nil {
			return err
		}
		if !plan.Ready() {
			h.blocker = errors.Join(plan.Blockers...)
			return nil
		}
	}
	return h.addFields(voice)
}

// planLegacy is planModeAndVoice for a streaming head whose spec has no streaming.
func (h *headRun) planLegacy(ctx context.Context) (err error) {
	if h.blocker, err = h.legacyBlocker(ctx); err != nil || h.blocker != nil {
		return err
	}
	if err := h.addFields(false); err != nil {
		return err
	}
	h.addSwitch()
	return nil
}

// planStreaming is planModeAndVoice for a spec with streaming.
func (h *headRun) planStreaming(ctx context.Context) error {
	plan, err := h.client.Heads.PlanStreaming(ctx, h.spec.ID, h.convertOptions())
	if err != nil {
		return err
	}
	h.head = plan.Head
	if !plan.Ready() {
		h.blocker = errors.Join(plan.Blockers...)
		return nil
	}
	voice := !sameVoice(h.spec.Voice, h.head)
	if err := h.addFields(voice && plan.AlreadyStreaming); err != nil || plan.AlreadyStreaming {
		return err
	}
	h.addSwitch()
	return nil
}

// addSwitch adds the step for the mode. A new voice is part of it: it is set before a switch to
// streaming, and after a switch to legacy mode, since only then the head accepts a voice that can't
// stream.
func (h *headRun) addSwitch() {
	changes := []Change{switchChange("streaming", *h.spec.Streaming)}
	if !sameVoice(h.spec.Voice, h.head) {
		changes = append(changes, voiceChange(h.spec.Voice, h.head))
	}
	if *h.spec.Streaming {
		slices.Reverse(changes)
	}
	h.steps = append(h.steps, step{changes, h.exactSwitch(), h.switchMode})
}

// exactSwitch describes a switch exactly: both modes, the access URL that stops working, and both
// voices.
func (h *headRun) exactSwitch() any {
	return []any{"streaming", h.head.VideoStreaming, *h.spec.Streaming, h.head.PublicURL.Reveal(), h.head.TTSProvider, h.head.TTSVoice, h.spec.Voice}
}

func (h *headRun) convertOptions() heads.ConvertOptions {
	o := h.o.Convert
	o.Voice = h.spec.Voice
	o.OnStep = func(step heads.ConversionStep) { h.step(h.spec.ID, step) }
	return o
}

// switches reports whether the mode of the head must be switched.
func (h *headRun) switches() bool {
	return h.spec.Streaming != nil && *h.spec.Streaming != h.head.VideoStreaming
}

// legacyBlocker returns the reason why ConvertToLegacy would refuse the head, or the error of a
// request. It is checked in advance, since Plan must report it and no field may be changed before.
func (h *headRun) legacyBlocker(ctx context.Context) (blocker, err error) {
	if _, err := heads.ParseAccessURL(h.head.PublicURL.Reveal()); err != nil {
		return err, nil
	}
	if h.head.HeadVisualID == "" {
		return fmt.Errorf("fleet: head %s has no visual that can be read (headVisualId), so its mode is not known: %w", h.spec.ID, heads.ErrVisualMode), nil
	}
	visual, err := h.client.HeadVisuals.Get(ctx, h.head.HeadVisualID)
	switch {
	case errors.Is(err, heads.ErrNotFound):
		return fmt.Errorf("fleet: visual %s of the head was not found, so its mode is not known: %w: %w", h.head.HeadVisualID, heads.ErrVisualMode, err), nil
	case err != nil:
		return nil, err
	case visual.Mode == heads.VisualModeDefault, visual.Mode == "" && h.o.Convert.AllowUnknownMode:
		return nil, nil
	}
	return fmt.Errorf("fleet: visual %s is in mode %q, only %q can be converted back: %w", visual.ID, visual.Mode, heads.VisualModeDefault, heads.ErrVisualMode), nil
}

// addFields adds the step for the fields of the spec. If voice is set, it includes the voice.
func (h *headRun) addFields(voice bool) error {
	work, err := fieldChanges(h.head, h.spec.Set)
	if err != nil {
		return err
	}
	if voice {
		work.changes = append(work.changes, voiceChange(h.spec.Voice, h.head))
	}
	if len(work.changes) > 0 {
		h.steps = append(h.steps, h.fieldStep(work, voice))
	}
	return nil
}

func (h *headRun) fieldStep(work fieldWork, voice bool) step {
	exact := []any{"fields", work.was, work.set}
	if voice {
		exact = append(exact, h.head.TTSProvider, h.head.TTSVoice, h.spec.Voice)
	}
	return step{work.changes, exact, func(ctx context.Context) error {
		update := work.update()
		if voice {
			update.Voice(h.spec.Voice.Provider, h.spec.Voice.ID)
		}
		if err := h.client.Heads.Update(ctx, h.spec.ID, update); err != nil {
			return err
		}
		return h.confirmFields(ctx, work, voice)
	}}
}

// confirmFields reads the head to confirm an update. A value that the service has normalized is
// accepted; a value that has not changed is an error.
func (h *headRun) confirmFields(ctx context.Context, work fieldWork, voice bool) error {
	head, err := h.client.Heads.Get(ctx, h.spec.ID)
	if err != nil {
		return err
	}
	field, err := work.unseen(head)
	if field == "" && voice && head.TTSProvider == h.head.TTSProvider && head.TTSVoice == h.head.TTSVoice {
		field = "voice"
	}
	if err == nil && field != "" {
		err = notShown("the field " + field + " was set, but the head does not show it")
	}
	return err
}

func (h *headRun) planDelivery(context.Context) error {
	if h.spec.Delivery == nil || *h.spec.Delivery == h.head.EnableEvents {
		return nil
	}
	h.steps = append(h.steps, step{[]Change{switchChange("delivery", *h.spec.Delivery)}, []any{"delivery", *h.spec.Delivery}, h.setDelivery})
	return nil
}

// setDelivery turns the delivery of events on or off, and reads the head to confirm it.
func (h *headRun) setDelivery(ctx context.Context) error {
	if err := h.client.Webhooks.SetDelivery(ctx, h.spec.ID, *h.spec.Delivery); err != nil {
		return err
	}
	head, err := h.client.Heads.Get(ctx, h.spec.ID)
	if err == nil && head.EnableEvents != *h.spec.Delivery {
		err = notShown("the delivery of events was set, but the head does not show it")
	}
	return err
}

func (h *headRun) planWebhooks(ctx context.Context) error {
	if h.spec.Webhooks == nil {
		return nil
	}
	registered, err := h.client.Webhooks.List(ctx, h.spec.ID)
	if err != nil {
		return err
	}
	work := webhookChanges(*h.spec, registered)
	if len(work.changes) > 0 {
		h.steps = append(h.steps, step{work.changes, []any{"webhooks", work.exact}, func(ctx context.Context) error { return work.do(ctx, h.client, h.spec.ID) }})
	}
	return nil
}

func (h *headRun) planTools(context.Context) error {
	if h.spec.Tools == nil {
		return nil
	}
	work, err := toolChanges(h.head, *h.spec.Tools)
	if err != nil || len(work.changes) == 0 {
		return err
	}
	if mode := h.operationMode(); work.given != "" && mode != heads.OperationModeOC {
		h.blocker = fmt.Errorf("fleet: head %s is in operation mode %q, in which it could never call tool %q; set operationMode to oc too", h.spec.ID, clip(string(mode)), work.given)
		return nil
	}
	h.steps = append(h.steps, step{work.changes, []any{"tools", work.now, work.tools}, func(ctx context.Context) error {
		_, err := h.client.ConversationSettings.SetTools(ctx, h.spec.ID, work.tools...)
		return err
	}})
	return nil
}

// operationMode returns the operation mode of the head after the update.
func (h *headRun) operationMode() heads.OperationMode {
	switch mode := h.spec.Set["operationMode"].(type) {
	case string:
		return heads.OperationMode(mode)
	case heads.OperationMode:
		return mode
	}
	return h.head.OperationMode
}
