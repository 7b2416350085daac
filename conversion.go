package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// After a change the head is read until it shows it: at once, then after
	// waits that double from firstReadWait up to maxReadWait. A change whose
	// answer was lost is given fewer reads.
	acceptedReads = 9
	lostReads     = 4
	firstReadWait = 250 * time.Millisecond
	maxReadWait   = 5 * time.Second

	// settleTimeout limits each thing that is still done after the caller's
	// context has ended: finding out how far it got, putting the old voice back.
	settleTimeout = 30 * time.Second
)

var errNoNewAddress = errors.New("the mode was switched, but neither the answer nor the head shows the new address; give WithAccessURLs its base (or set HEADS_STREAM_URL and HEADS_CHAT_URL) and run it again")

// conversion is one conversion under way.
type conversion struct {
	heads  *HeadsService
	ctx    context.Context
	o      ConvertOptions
	done   Conversion
	revert *Voice // the voice to put back when enabling fails

	voiceSent bool // the head may have the new voice, or have had it
}

func newConversion(s *HeadsService, ctx context.Context, headID string, o ConvertOptions) *conversion {
	return &conversion{heads: s, ctx: ctx, o: o, done: Conversion{HeadID: headID}}
}

// lock keeps another conversion of the head from undoing half of this one.
func (c *conversion) lock(operation string) (unlock func(), err error) {
	return c.heads.c.lock(c.ctx, operation, "mode "+strings.ToLower(c.done.HeadID))
}

func (c *conversion) toStreaming(plan *ConversionPlan) (*Conversion, error) {
	c.done.Before = plan.Before
	check, voice, enable, address := plan.Steps[0], plan.Steps[1], plan.Steps[2], plan.Steps[3]
	c.step(check)
	if plan.AlreadyStreaming {
		c.done.AlreadyStreaming = true
		c.step(voice)
		c.step(enable)
		return c.stays(plan.head, address)
	}
	if !voice.Skipped {
		if err := c.setVoice(plan.CurrentVoice, plan.Voice); err != nil {
			return nil, c.failReverting(StepVoice, err)
		}
	}
	c.step(voice)
	answer, head, err := c.switchMode(true)
	if err != nil {
		return nil, c.failReverting(StepEnable, err)
	}
	c.step(enable)
	return c.finish(answer, head)
}

func (c *conversion) toLegacy(head *Head) (*Conversion, error) {
	if !head.VideoStreaming {
		c.step(ConversionStep{StepCheck, false, "the head is in legacy mode already"})
		c.step(ConversionStep{StepDisable, true, "nothing to do"})
		return c.stays(head, ConversionStep{StepAddress, true, "stays " + c.done.Before.String()})
	}
	c.step(ConversionStep{StepCheck, false, "the head streams, and its visual allows the way back"})
	answer, after, err := c.switchMode(false)
	if err != nil {
		return nil, c.fail(StepDisable, err)
	}
	c.step(ConversionStep{StepDisable, false, "switched to legacy mode"})
	return c.finish(answer, after)
}

// step notes a step as done and tells the caller.
func (c *conversion) step(step ConversionStep) {
	c.done.Steps = append(c.done.Steps, step)
	if c.o.OnStep != nil {
		c.o.OnStep(step)
	}
}

// setVoice sets the new voice. It returns nil only if the head is known to have
// it. As long as the head may have it, revert is set.
func (c *conversion) setVoice(old, voice Voice) error {
	_, err := c.heads.Update(c.ctx, c.voiceUpdate(voice))
	if err != nil && !unsettled(err) {
		return err
	}
	c.revert, c.voiceSent = &old, true
	if err == nil {
		return nil
	}
	head, readErr := c.readAfterwards(speaksWith(voice))
	switch {
	case readErr != nil:
		return fmt.Errorf("%w; whether the voice was set could not be read: %w", err, readErr)
	case head == nil:
		c.revert, c.voiceSent = nil, false
		return fmt.Errorf("%w; the head, read afterwards, did not have the new voice", err)
	case c.ctx.Err() != nil:
		return err // the voice was set, but the caller has left
	}
	return nil
}

// switchMode switches the mode and reads the head until it says so. It returns
// the answer to the switch, if there was one, and the head.
func (c *conversion) switchMode(streaming bool) (*Response, *Head, error) {
	answer, err := c.heads.SetVideoStreaming(c.ctx, c.done.HeadID, streaming)
	if err != nil {
		if unsettled(err) {
			head, settled := c.settleMode(err, streaming)
			return nil, head, settled
		}
		return nil, nil, err
	}
	c.revert = nil // accepted: what follows is reading
	head, err := c.readUntil(c.ctx, acceptedReads, switched(streaming))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the switch was accepted, but the head does not say so yet: %w", err)
	case head == nil:
		return nil, nil, fmt.Errorf("the switch was accepted, but after %d reads the head does not say so; run it again later", acceptedReads)
	}
	return answer, head, nil
}

// settleMode finds out whether a switch took place whose answer was lost.
func (c *conversion) settleMode(lost error, streaming bool) (*Head, error) {
	head, err := c.readAfterwards(switched(streaming))
	switch {
	case err != nil:
		c.revert = nil // if the head streams now, it must keep a voice that can
		return nil, fmt.Errorf("%w; whether the mode was switched could not be read, run it again to find out: %w", lost, err)
	case head == nil:
		return nil, fmt.Errorf("%w; the head, read afterwards, did not show the switch", lost)
	}
	return head, nil
}

// readAfterwards reads the head, even if the caller has left, to find out
// whether a change took place.
func (c *conversion) readAfterwards(wanted func(*Head) bool) (*Head, error) {
	ctx, cancel := c.settling()
	defer cancel()
	return c.readUntil(ctx, lostReads, wanted)
}

// readUntil reads the head until it is as wanted. It returns nil if it is not
// so after all reads.
func (c *conversion) readUntil(ctx context.Context, reads int, wanted func(*Head) bool) (*Head, error) {
	wait := firstReadWait
	for i := range reads {
		if i > 0 {
			if err := sleep(ctx, wait); err != nil {
				return nil, err
			}
			wait = min(2*wait, maxReadWait)
		}
		head, err := c.heads.Get(ctx, c.done.HeadID)
		if err != nil {
			return nil, err
		}
		if wanted(head) {
			return head, nil
		}
	}
	return nil, nil
}

// switched says whether a head is in the wanted mode. A head that streams has
// no splitter.
func switched(streaming bool) func(*Head) bool {
	return func(h *Head) bool { return h.VideoStreaming == streaming && !(streaming && h.Splitter) }
}

// speaksWith says whether a head has a voice.
func speaksWith(voice Voice) func(*Head) bool {
	return func(h *Head) bool { return h.TTSVoice == voice.ID && strings.EqualFold(h.TTSProvider, voice.Provider) }
}

// unsettled says whether a change that failed may have been made all the same.
// A refusal counts if it came to a repeat: an attempt before it, whose answer
// was lost, may have made the change, and only the second time was refused.
func unsettled(err error) bool {
	var refused *Error
	return mayHaveHappened(err) || errors.As(err, &refused) && refused.Attempts > 1
}

// finish finds out the new address: the one in the answer to the switch, else
// the one of the head, else the old one moved to the configured base.
func (c *conversion) finish(answer *Response, head *Head) (*Conversion, error) {
	after, err := c.newAddress(answer, head)
	if err != nil {
		return &c.done, c.fail(StepAddress, err)
	}
	c.done.After = after
	c.step(ConversionStep{StepAddress, false, "now " + after.String()})
	return &c.done, nil
}

func (c *conversion) newAddress(answer *Response, head *Head) (AccessURL, error) {
	if answer != nil {
		if found, ok := c.findAddress(answer.Body); ok {
			return found, nil
		}
	}
	if found, ok := c.accept(head.PublicURL.Reveal()); ok {
		return found, nil
	}
	base := c.heads.c.accessBase(head.VideoStreaming, "")
	if base == "" {
		c.heads.c.core.oldAddresses.Store(strings.ToLower(c.done.HeadID), c.done.Before)
		return AccessURL{}, errNoNewAddress
	}
	moved := c.done.Before
	moved.Base = base
	return moved, nil
}

// stays ends a conversion that had nothing to do.
func (c *conversion) stays(head *Head, step ConversionStep) (*Conversion, error) {
	address, err := c.heads.c.AccessURL(head)
	if err == nil && c.isOld(address) {
		err = errNoNewAddress
	}
	if err != nil {
		return &c.done, c.fail(StepAddress, err)
	}
	c.done.After = address
	c.step(step)
	return &c.done, nil
}

// isOld says whether an earlier conversion by this client found the address to
// be the one from before its switch.
func (c *conversion) isOld(address AccessURL) bool {
	old, ok := c.heads.c.core.oldAddresses.Load(strings.ToLower(c.done.HeadID))
	return ok && old == address
}

// findAddress looks for the address in an answer of whatever shape: a text, or
// any string of a JSON document.
func (c *conversion) findAddress(body []byte) (AccessURL, bool) {
	if found, ok := c.accept(strings.TrimSpace(string(body))); ok {
		return found, true
	}
	for document := json.NewDecoder(bytes.NewReader(body)); ; {
		token, err := document.Token()
		if err != nil {
			return AccessURL{}, false
		}
		text, _ := token.(string)
		if found, ok := c.accept(text); ok {
			return found, true
		}
	}
}

// accept takes an address if it is another one of the same head.
func (c *conversion) accept(text string) (AccessURL, bool) {
	found, err := ParseAccessURL(text)
	old := c.done.Before
	return found, err == nil && found.OrgPublicID == old.OrgPublicID && found.HeadPublicID == old.HeadPublicID && found.Base != old.Base
}

// fail is the error of a step after which nothing is to be put back.
func (c *conversion) fail(step StepName, err error) error {
	return &ConversionError{HeadID: c.done.HeadID, Step: step, Done: c.done.Steps, Err: err}
}

// failReverting puts the old voice back, where the new one may be in force, and
// says in the error how that went.
func (c *conversion) failReverting(step StepName, err error) error {
	failure := &ConversionError{HeadID: c.done.HeadID, Step: step, Done: c.done.Steps, Err: err, voiceSent: c.voiceSent}
	if c.revert != nil && !c.o.NoRollback {
		failure.RollbackErr = c.putBack(*c.revert)
		failure.RolledBack = failure.RollbackErr == nil
	}
	return failure
}

// putBack sets the old voice again. It looks first: a head that streams by
// now, because somebody else switched it or because the switch took its time,
// must not be given a voice that may not be able to.
func (c *conversion) putBack(old Voice) error {
	if c.streamsNow() {
		return errors.New("the head streams now, so it keeps the voice")
	}
	ctx, cancel := c.settling()
	defer cancel()
	_, err := c.heads.Update(ctx, c.voiceUpdate(old))
	if err == nil || !unsettled(err) {
		return err
	}
	if head, readErr := c.readAfterwards(speaksWith(old)); readErr == nil && head != nil {
		return nil
	}
	return err
}

// streamsNow says whether the head is known to stream.
func (c *conversion) streamsNow() bool {
	ctx, cancel := c.settling()
	defer cancel()
	head, err := c.heads.Get(ctx, c.done.HeadID)
	return err == nil && head.VideoStreaming
}

func (c *conversion) voiceUpdate(v Voice) *HeadUpdate {
	return NewHeadUpdate(c.done.HeadID).Voice(v.Provider, v.ID)
}

// settling is a context for what has to be done even if the caller's has ended.
func (c *conversion) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx), settleTimeout)
}

// sleep waits, or returns the context's error as soon as that ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
