package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
)

var (
	// errNoAddress is the failure of a head that an earlier run has switched, if its
	// access URL is not known.
	errNoAddress = errors.New("fleet: the head is in the wanted mode, but its new access URL is not known; use WithAccessURLs (or set HEADS_STREAM_URL and HEADS_CHAT_URL) and run it again")

	// errNotSeen is the failure of a head that does not show a switch accepted in an
	// earlier run. The switch is not sent again.
	errNotSeen = errors.New("fleet: an earlier run had the switch accepted, but the head does not show it yet; run it again later, or use another journal to send the switch again")

	// errJournal is wrapped by the failure of a head whose switch could not be recorded.
	errJournal = errors.New("fleet: the mode was not switched, since the switch could not be recorded")
)

// switching returns the work that switches the head to the other mode: convert, or
// the wait for a switch that was already accepted. Such a switch is never sent again.
func (h *headRun) switching(convert func(context.Context) error) func(context.Context) error {
	if h.isAwaited() {
		return h.await
	}
	return convert
}

// toStreaming writes the old access URL to disk and then converts the head.
func (h *headRun) toStreaming(ctx context.Context) error {
	if err := h.record(); err != nil {
		return err
	}
	o := h.convertOptions()
	o.OnStep = func(step heads.ConversionStep) {
		if step.Accepted {
			h.setAccepted(true)
		}
		h.step(h.spec.ID, step)
	}
	done, err := h.client.Heads.ConvertToStreaming(ctx, h.spec.ID, o)
	return h.switched(done, err)
}

// toLegacy writes the old access URL to disk and then converts the head back.
func (h *headRun) toLegacy(ctx context.Context) error {
	if err := h.record(); err != nil {
		return err
	}
	done, err := h.client.Heads.ConvertToLegacy(ctx, h.spec.ID)
	var failure *heads.ConversionError
	steps := []heads.ConversionStep{}
	if done != nil {
		steps = done.Steps
	} else if errors.As(err, &failure) {
		steps = failure.Done
	}
	for _, step := range steps {
		h.step(h.spec.ID, step)
	}
	return h.switched(done, err)
}

// record writes the old access URL to disk. After an error, no further head is
// started.
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

// switched records the result of a conversion. If the new access URL is not known,
// that is reported after the other steps, which do not need it.
func (h *headRun) switched(done *heads.Conversion, err error) error {
	var failure *heads.ConversionError
	if accepted := errors.As(err, &failure) && failure.Accepted; accepted {
		h.setAccepted(failure.Reason == heads.ReasonUnknownOutcome)
	}
	switch {
	case err == nil:
		h.setAccepted(false)
		h.result.Before, h.result.After = h.before(), done.After
		return nil
	case !errors.As(err, &failure):
		return err
	case failure.Reason == heads.ReasonAddress:
		h.result.Before = h.before()
		h.noAddress = err
		return nil
	}
	if failure.Reason == heads.ReasonUnknownOutcome {
		h.result.Before = h.before()
	}
	for _, step := range failure.Done {
		if step.Name == heads.StepVoice && !step.Skipped && !failure.RolledBack {
			h.result.Changes = append(h.result.Changes, voiceChange(h.spec.Voice, h.head))
		}
	}
	return err
}

// isAwaited reports whether the switch was accepted in an earlier run and no read
// has shown the head in its new mode since.
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
	address, _ := heads.ParseAccessURL(h.head.PublicURL.Reveal()) // a fault blocks every switch
	return address
}

// expectedAfter returns the access URL that the head will have, if the client knows
// its base.
func (h *headRun) expectedAfter() heads.AccessURL {
	switched := *h.head
	switched.VideoStreaming = *h.spec.Streaming
	after, err := h.client.AccessURL(&switched)
	if err != nil || after.Base == h.before().Base {
		return heads.AccessURL{}
	}
	return after
}

// findMove searches the journal for the switch of the head to its current mode.
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
