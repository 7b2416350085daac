package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// switchMode switches the head to the other mode. If an earlier run had the switch accepted,
// switchMode waits for it and does not send it again.
func (h *headRun) switchMode(ctx context.Context) error {
	if !h.isAwaited() {
		return h.convert(ctx)
	}
	if err := h.await(ctx); err != nil || *h.spec.Streaming || sameVoice(h.spec.Voice, h.head) {
		return err
	}
	_, err := h.client.Heads.ConvertToLegacy(ctx, h.spec.ID, h.convertOptions()) // sets the voice
	return h.withoutAddress(err)
}

// withoutAddress returns the error of a conversion. An unknown access URL is no reason to skip the
// other steps: withoutAddress stores that error in noAddress, to be returned after them, and
// returns nil.
func (h *headRun) withoutAddress(err error) error {
	var failure *heads.ConversionError
	if errors.As(err, &failure) && failure.Reason == heads.ReasonAddress {
		h.noAddress = err
		return nil
	}
	return err
}

// convert records the old access URL in the journal and then converts the head.
func (h *headRun) convert(ctx context.Context) error {
	if err := h.record(); err != nil {
		return err
	}
	convert := h.client.Heads.ConvertToLegacy
	if *h.spec.Streaming {
		convert = h.client.Heads.ConvertToStreaming
	}
	o := h.convertOptions()
	o.OnStep = func(step heads.ConversionStep) {
		if step.Accepted {
			h.setAccepted(true)
		}
		h.step(h.spec.ID, step)
	}
	return h.switched(convert(ctx, h.spec.ID, o))
}

// record writes the old access URL to the journal. After an error, no further head is started.
func (h *headRun) record() error {
	err := h.o.Journal.add(journalRecord{
		HeadID: h.spec.ID, Label: h.result.Label, Streaming: *h.spec.Streaming, Old: keyless(h.before()), At: time.Now().UTC(),
	})
	if err != nil {
		h.stop(err)
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	return nil
}

// switched records the result of a conversion.
func (h *headRun) switched(done *heads.Conversion, err error) error {
	var failure *heads.ConversionError
	if err == nil {
		h.setAccepted(false)
		h.result.Before, h.result.After = h.before(), done.After
		return nil
	}
	if !errors.As(err, &failure) {
		return err
	}
	confirmed := slices.ContainsFunc(failure.Done, func(s heads.ConversionStep) bool { return s.Name == heads.StepDisable || s.Name == heads.StepEnable })
	unknown := failure.Reason == heads.ReasonUnknownOutcome && !confirmed
	if failure.Accepted {
		h.setAccepted(unknown)
	}
	if confirmed || unknown {
		h.result.Before = h.before()
	}
	if err = h.withoutAddress(err); err == nil {
		return nil
	}
	for _, step := range failure.Done {
		switch {
		case step.Name == heads.StepVoice && !step.Skipped && !failure.RolledBack:
			h.result.Changes = append(h.result.Changes, voiceChange(h.spec.Voice, h.head))
		case step.Name == heads.StepDisable:
			h.result.Changes = append(h.result.Changes, switchChange("streaming", false))
		}
	}
	return err
}

// isAwaited reports whether the switch was accepted in an earlier run and no read has shown the
// head in its new mode since.
func (h *headRun) isAwaited() bool {
	r, ok := h.o.Journal.find(h.spec.ID, *h.spec.Streaming)
	return ok && r.Accepted
}

func (h *headRun) setAccepted(accepted bool) {
	if err := h.o.Journal.setAccepted(h.spec.ID, *h.spec.Streaming, accepted); err != nil {
		h.stop(err)
	}
}

// await reads the head until it shows a switch that was accepted in an earlier run.
func (h *headRun) await(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(h.o.Convert.ConfirmTimeout, defaultConfirmTimeout))
	defer cancel()
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		head, err := h.client.Heads.Get(limited, h.spec.ID)
		if err == nil && head.VideoStreaming == *h.spec.Streaming {
			h.head = head
			h.findMove()
			return nil
		}
		if err != nil && !heads.Temporary(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-limited.Done():
			return errNotSeen
		}
	}
}

// before returns the access URL that the head had when it was read.
func (h *headRun) before() heads.AccessURL {
	address, _ := heads.ParseAccessURL(h.head.PublicURL.Reveal()) // plan blocks a switch without a valid one
	return address
}

// expectedAfter returns the access URL of the head after the switch, or a zero one if the client
// does not know its base.
func (h *headRun) expectedAfter() heads.AccessURL {
	switched := *h.head
	switched.VideoStreaming = *h.spec.Streaming
	after, err := h.client.AccessURL(&switched)
	if err != nil || after.Base == h.before().Base {
		return heads.AccessURL{}
	}
	return after
}

// findMove searches the journal for the switch to the head's current mode.
func (h *headRun) findMove() {
	if h.spec.Streaming == nil {
		return
	}
	record, ok := h.o.Journal.find(h.spec.ID, *h.spec.Streaming)
	if !ok {
		h.result.unrecorded = h.o.Journal != nil && *h.spec.Streaming
		return
	}
	if h.apply {
		h.setAccepted(false)
	}
	old := record.Old
	now, err := h.client.AccessURL(h.head)
	if err != nil || keyless(now) == old {
		h.noAddress = errNoAddress
		return
	}
	h.result.earlier = &Move{HeadID: h.result.HeadID, Label: h.result.Label, Old: old.withKey(now.APIKey), New: now}
}
