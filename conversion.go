package heads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/timing"
)

const (
	// After a change the head is read until it shows the change: at once, then
	// after waits that double from firstReadWait up to maxReadWait. If the answer
	// to the change was lost, the head is read lostReads times at most.
	lostReads     = 4
	firstReadWait = 250 * time.Millisecond
	maxReadWait   = 5 * time.Second

	// maxReadTime limits one read, so that there is time for another.
	maxReadTime = 8 * time.Second

	// lastReadTime is how long before its timeout the last read begins.
	lastReadTime = 250 * time.Millisecond

	defaultConfirmTimeout = 25 * time.Second
	defaultSettleTimeout  = 10 * time.Second
)

// errForeignAnswer replaces an answer that may be a proxy's own.
var errForeignAnswer error = unknownOutcome{errors.New("the answer to the update of the voice may not be the service's")}

// conversion is one run of a conversion.
type conversion struct {
	heads    *HeadsService
	ctx      context.Context //nolint:containedctx // of the caller
	settling context.Context //nolint:containedctx // ends SettleTimeout after ctx
	o        ConvertOptions
	done     Conversion
	revert   *Voice // the voice to restore when enabling fails

	voiceSent bool // the head may have the new voice, or have had it
	accepted  bool // the switch of the mode
}

func newConversion(s *HeadsService, ctx context.Context, headID string, o ConvertOptions) *conversion {
	o.ConfirmTimeout = cmp.Or(o.ConfirmTimeout, defaultConfirmTimeout)
	o.SettleTimeout = cmp.Or(o.SettleTimeout, defaultSettleTimeout)
	return &conversion{heads: s, ctx: ctx, o: o, done: Conversion{HeadID: headID}}
}

// begin waits until no other conversion of the head by this client is running.
func (c *conversion) begin(operation string) (end func(), err error) {
	unlock, err := c.heads.core.lock(c.ctx, operation, headLock("mode", c.done.HeadID))
	if err != nil {
		return nil, err
	}
	settling, cancel := timing.Outlive(c.ctx, c.o.SettleTimeout)
	c.settling = settling
	return func() { cancel(); unlock() }, nil
}

// toStreaming does the steps of a plan. If OnStep panics, toStreaming rolls back, and the
// panic continues.
func (c *conversion) toStreaming(plan *ConversionPlan) (*Conversion, error) {
	returned := false
	defer func() {
		if !returned {
			c.abandon()
		}
	}()
	conversion, err := c.doSteps(plan)
	returned = true
	return conversion, err
}

func (c *conversion) doSteps(plan *ConversionPlan) (*Conversion, error) {
	c.done.Before, c.done.AlreadyStreaming = plan.Before, plan.AlreadyStreaming
	check, voice, enable, address := plan.Steps[0], plan.Steps[1], plan.Steps[2], plan.Steps[3]
	c.step(check)
	if !voice.Skipped {
		if err := c.setVoice(plan); err != nil {
			return nil, c.failReverting(StepVoice, err)
		}
	}
	c.step(voice)
	var answer *Response
	var head *Head
	var err error
	if plan.AlreadyStreaming {
		head, err = c.confirmStreaming(plan)
	} else {
		answer, head, err = c.switchMode(StepEnable, true)
	}
	if err != nil {
		return nil, c.failReverting(StepEnable, err)
	}
	c.step(enable)
	if plan.AlreadyStreaming {
		return c.finishUnswitched(head, address)
	}
	return c.finish(answer, head)
}

// confirmStreaming confirms a head that already streamed. If nothing was changed
// since, the read of the plan is enough.
func (c *conversion) confirmStreaming(plan *ConversionPlan) (*Head, error) {
	r := reading{step: StepEnable}
	if plan.keepsVoice() {
		r.known = plan.Head
	}
	return c.confirm("the head already streams", true, r)
}

func (c *conversion) toLegacy(head *Head) (*Conversion, error) {
	if !head.VideoStreaming {
		c.step(ConversionStep{Name: StepCheck, Detail: "the head is in legacy mode already"})
		c.step(ConversionStep{Name: StepDisable, Skipped: true, Detail: "nothing to do"})
		if err := c.setLegacyVoice(head); err != nil {
			return nil, c.fail(StepVoice, err)
		}
		return c.finishUnswitched(head, ConversionStep{Name: StepAddress, Skipped: true, Detail: "stays " + c.done.Before.String()})
	}
	c.step(ConversionStep{Name: StepCheck, Detail: "the head streams, and its visual allows the way back"})
	answer, after, err := c.switchMode(StepDisable, false)
	if err != nil {
		return nil, c.fail(StepDisable, err)
	}
	c.step(ConversionStep{Name: StepDisable, Detail: "switched to legacy mode"})
	if err := c.setLegacyVoice(after); err != nil {
		return nil, c.fail(StepVoice, err)
	}
	return c.finish(answer, after)
}

// setLegacyVoice sets the voice that was asked for, if a head in legacy mode does
// not have it yet.
func (c *conversion) setLegacyVoice(head *Head) error {
	switch voice := c.o.Voice; {
	case voice == nil:
		return nil
	case !c.wrongVoice(head):
		c.step(ConversionStep{Name: StepVoice, Skipped: true, Detail: fmt.Sprintf("stays %s of %s", voice.ID, voice.Provider)})
		return nil
	default:
		err := c.sendVoice(c.ctx, *voice)
		if err != nil && unsettled(err) {
			err = c.settleVoice(err, *voice)
		}
		if err == nil {
			c.step(ConversionStep{Name: StepVoice, Detail: fmt.Sprintf("%s of %s becomes %s of %s", head.TTSVoice, head.TTSProvider, voice.ID, voice.Provider)})
		}
		return err
	}
}

// step records a step as done and calls OnStep.
func (c *conversion) step(step ConversionStep) {
	c.done.Steps = append(c.done.Steps, step)
	if c.o.OnStep != nil {
		c.o.OnStep(step)
	}
}

// waiting calls OnStep before a wait.
func (c *conversion) waiting(step StepName, wait time.Duration) {
	if c.o.OnStep != nil {
		c.o.OnStep(ConversionStep{Name: step, Waiting: true, Accepted: c.accepted, Detail: fmt.Sprintf("the head does not show the change yet, reading it again in %v", wait)})
	}
}

// setVoice sets the new voice. It returns nil only if the head has it. As long
// as the head may have it and does not stream, revert is set.
func (c *conversion) setVoice(plan *ConversionPlan) error {
	err := c.sendVoice(c.ctx, plan.Voice)
	if err != nil && !unsettled(err) {
		return err
	}
	c.voiceSent = true
	if !plan.AlreadyStreaming {
		c.revert = &plan.CurrentVoice
	}
	if err != nil {
		return c.settleVoice(err, plan.Voice)
	}
	return nil
}

// sendVoice sends the update of the voice. It returns errForeignAnswer for an answer that a
// proxy may have sent.
func (c *conversion) sendVoice(ctx context.Context, v Voice) error {
	answer, err := c.heads.update(ctx, c.done.HeadID, NewHeadUpdate().Voice(v.Provider, v.ID))
	if err == nil && !answer.isOwn(c.done.HeadID) {
		return errForeignAnswer
	}
	return err
}

// settleVoice finds out whether the voice was set, after the answer was lost.
func (c *conversion) settleVoice(lost error, voice Voice) error {
	_, shown, err := c.readAfterwards(StepVoice, speaksWith(voice))
	switch {
	case err != nil:
		return unknownOutcome{fmt.Errorf("%w; a follow-up read, which would show whether the voice was set, failed: %w", lost, err)}
	case !shown:
		c.revert, c.voiceSent = nil, false
		return fmt.Errorf("%w; a follow-up read shows that the head does not have the new voice", lost)
	case c.ctx.Err() != nil:
		return lost // the voice was set, but the context has ended
	}
	return nil
}

// switchMode switches the mode and reads the head until it shows the change. It
// returns the head, and the answer to the switch if there was one.
func (c *conversion) switchMode(step StepName, streaming bool) (*Response, *Head, error) {
	answer, err := c.heads.setVideoStreaming(c.ctx, c.done.HeadID, streaming)
	if err != nil && !unsettled(err) {
		return nil, nil, err
	}
	read := reading{step: step}
	if err != nil {
		if read.known, err = c.settleMode(step, err, streaming); err != nil {
			return nil, nil, err
		}
	}
	c.revert = nil // switched: from here on it only reads
	answered := "the switch was answered, perhaps by a proxy"
	if c.accepted = answer == nil || c.isOwnSwitch(answer); c.accepted {
		answered = "the switch was accepted"
	}
	head, err := c.confirm(answered, streaming, read)
	c.accepted = c.accepted || err == nil
	return answer, head, err
}

// isOwnSwitch reports whether the answer to a switch can only be the service's own.
func (c *conversion) isOwnSwitch(answer *Response) bool {
	_, found := c.findAddress(answer.Body.bytes())
	return found || answer.isOwn(c.done.HeadID)
}

// settleMode finds out whether the head has switched, after the answer was lost.
// If so, it returns the head.
func (c *conversion) settleMode(step StepName, lost error, streaming bool) (*Head, error) {
	head, shown, err := c.readAfterwards(step, func(h *Head) bool { return h.VideoStreaming == streaming })
	switch {
	case err != nil:
		c.revert = nil // the head may stream now, and then needs the new voice
		return nil, unknownOutcome{fmt.Errorf("%w; a follow-up read, which would show whether the mode was switched, failed; run the conversion again to find out: %w", lost, err)}
	case !shown:
		return nil, fmt.Errorf("%w; a follow-up read shows that the head has not switched", lost)
	}
	return head, nil
}

// unknownOutcome is the error of a change that could not be confirmed.
type unknownOutcome struct{ error }

func (e unknownOutcome) Unwrap() error { return e.error }

// confirm reads the head until it is in the mode. A head that streams must also
// have no splitter, and the voice that was asked for. accepted begins the
// sentence of the error.
func (c *conversion) confirm(accepted string, streaming bool, r reading) (*Head, error) {
	r.shown = func(h *Head) bool { return c.missing(h, streaming) == "" }
	head, shown, err := c.readUntil(c.ctx, r)
	switch {
	case shown:
		return head, nil
	case head == nil:
		return nil, unknownOutcome{fmt.Errorf("%s, but the head could not be read: %w", accepted, err)}
	}
	if head.VideoStreaming && c.wrongVoice(head) {
		c.voiceSent = false
	}
	if err != nil {
		return nil, unknownOutcome{fmt.Errorf("%s, but %s: %w", accepted, c.missing(head, streaming), err)}
	}
	return nil, unknownOutcome{fmt.Errorf("%s, but after %v %s; run the conversion again later", accepted, c.o.ConfirmTimeout, c.missing(head, streaming))}
}

// missing returns what the head does not show yet, or "".
func (c *conversion) missing(h *Head, streaming bool) string {
	switch {
	case h.VideoStreaming != streaming:
		return "the head does not show it yet"
	case streaming && h.Splitter:
		return "the head still shows a splitter, with which no head streams"
	case streaming && c.wrongVoice(h):
		return fmt.Sprintf("the head has voice %s of %s, not %s of %s", quote(h.TTSVoice), quote(h.TTSProvider), quote(c.o.Voice.ID), quote(c.o.Voice.Provider))
	}
	return ""
}

// wrongVoice reports whether a head lacks the voice that was asked for.
func (c *conversion) wrongVoice(h *Head) bool {
	return c.o.Voice != nil && !h.voice().is(*c.o.Voice)
}

// readAfterwards reads the head to find out whether a change was made, even if
// the context of the caller has ended.
func (c *conversion) readAfterwards(step StepName, wanted func(*Head) bool) (*Head, bool, error) {
	return c.readUntil(c.settling, reading{step: step, reads: lostReads, shown: wanted})
}

// reading describes how to read the head until it shows something.
type reading struct {
	step  StepName // for OnStep
	known *Head    // if not nil, used instead of the first read
	reads int      // at most so many; 0 means until ConfirmTimeout
	shown func(*Head) bool
}

// readUntil reads the head for ConfirmTimeout at most. It returns the head from
// the last successful read, whether it shows what is wanted, and the error of
// the last read.
func (c *conversion) readUntil(ctx context.Context, r reading) (head *Head, shown bool, err error) {
	end := time.Now().Add(c.o.ConfirmTimeout)
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	head = r.known
	for n, wait := 1, firstReadWait; ; n, wait = n+1, min(2*wait, maxReadWait) {
		if n > 1 || head == nil {
			err = c.read(limited, &head)
		}
		switch {
		case err == nil && r.shown(head):
			return head, true, nil
		case err != nil && (!Temporary(err) || ctx.Err() != nil):
			return head, false, err
		}
		pause := min(wait, time.Until(end)-lastReadTime)
		if n == r.reads || pause <= 0 {
			return head, false, err
		}
		c.waiting(r.step, pause)
		if err := timing.Sleep(ctx, pause); err != nil {
			return head, false, err
		}
	}
}

// read reads the head once, within maxReadTime.
func (c *conversion) read(ctx context.Context, head **Head) error {
	ctx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	read, err := c.heads.Get(ctx, c.done.HeadID)
	if err == nil {
		*head = read
	}
	return err
}

// speaksWith returns a function that reports whether a head has a voice.
func speaksWith(voice Voice) func(*Head) bool {
	return func(h *Head) bool { return h.voice().is(voice) }
}

// unsettled reports whether a change that failed may have been made. This
// includes a refusal that came to a retry: an attempt before it, whose answer
// was lost, may have made the change.
func unsettled(err error) bool {
	var refused *Error
	return mayHaveHappened(err) || errors.Is(err, errForeignAnswer) || errors.As(err, &refused) && refused.Attempts > 1
}

// finish finds the new access URL: the one in the answer to the switch, else
// that of the head, else the old one moved to the configured base.
func (c *conversion) finish(answer *Response, head *Head) (*Conversion, error) {
	after, err := c.newAddress(answer, head)
	if err != nil {
		return &c.done, c.fail(StepAddress, err)
	}
	c.done.After = after
	c.step(ConversionStep{Name: StepAddress, Detail: "now " + after.String()})
	return &c.done, nil
}

func (c *conversion) newAddress(answer *Response, head *Head) (AccessURL, error) {
	if answer != nil {
		if found, ok := c.findAddress(answer.Body.bytes()); ok {
			return found, nil
		}
	}
	if found, ok := c.accept(head.PublicURL.Reveal()); ok {
		return found, nil
	}
	base := c.heads.core.accessBase(head.VideoStreaming, "")
	if base == "" {
		c.heads.core.oldAddresses.Store(modeOf(head), c.done.Before)
		return AccessURL{}, c.noNewAddress(head)
	}
	moved := c.done.Before
	moved.Base = base
	return moved, nil
}

// finishUnswitched ends a conversion that needed no switch.
func (c *conversion) finishUnswitched(head *Head, step ConversionStep) (*Conversion, error) {
	address, err := c.heads.core.accessURL(head)
	if err == nil && c.isOld(head, address) {
		err = c.noNewAddress(head)
	}
	if err != nil {
		return &c.done, c.fail(StepAddress, err)
	}
	c.done.After = address
	c.step(step)
	return &c.done, nil
}

// noNewAddress is the error of a switch after which the new access URL is not known.
func (c *conversion) noNewAddress(head *Head) error {
	const remedy = "give the base of the access URLs in that mode (HEADS_STREAM_URL, HEADS_CHAT_URL) and run it again"
	shown, err := currentAddress("AccessURL", head)
	switch {
	case err != nil:
		return fmt.Errorf("the mode was switched, but neither the answer nor the head shows the new access URL (%v); %s", err, remedy)
	case shown.Base == c.done.Before.Base:
		return fmt.Errorf("the mode was switched, but neither the answer nor the head shows the new access URL: the head shows %v; %s", shown, remedy)
	default:
		return fmt.Errorf("the mode was switched, but the head shows %v, which is not %v at another base; run the conversion again if that is the new access URL, or %s", shown, c.done.Before, remedy)
	}
}

// isOld reports whether an earlier conversion by this client found the access
// URL to be the one from before its switch to the mode that the head has.
func (c *conversion) isOld(head *Head, address AccessURL) bool {
	old, ok := c.heads.core.oldAddresses.Load(modeOf(head))
	return ok && old == address
}

// headMode is a head in a mode. After a switch back, an old access URL is right
// again.
type headMode struct {
	headID    string
	streaming bool
}

func modeOf(h *Head) headMode { return headMode{strings.ToLower(h.ID), h.VideoStreaming} }

// findAddress searches an answer of any shape for an access URL: the text itself, or any
// string of a JSON document.
func (c *conversion) findAddress(body []byte) (AccessURL, bool) {
	if found, ok := c.accept(strings.TrimSpace(string(body))); ok {
		return found, true
	}
	if !json.Valid(body) {
		return AccessURL{}, false
	}
	for text := range rawjson.Strings(body) {
		if found, ok := c.accept(text); ok {
			return found, true
		}
	}
	return AccessURL{}, false
}

// accept parses an access URL, and reports whether it is a different one of the
// same head.
func (c *conversion) accept(text string) (AccessURL, bool) {
	found, err := ParseAccessURL(text)
	old := c.done.Before
	return found, err == nil && found.PublicOrgID == old.PublicOrgID && found.PublicHeadID == old.PublicHeadID && found.Base != old.Base
}

// fail returns the error of a step after which there is nothing to roll back.
func (c *conversion) fail(step StepName, err error) error {
	return &ConversionError{HeadID: c.done.HeadID, Step: step, Done: c.done.Steps, Reason: reasonOf(step, err), Accepted: c.accepted, Err: err}
}

// failReverting restores the old voice if the new one may be in force. The error
// reports the result.
func (c *conversion) failReverting(step StepName, err error) error {
	failure := &ConversionError{HeadID: c.done.HeadID, Step: step, Done: c.done.Steps, Reason: reasonOf(step, err), Accepted: c.accepted, Err: err, voiceSent: c.voiceSent}
	if old := c.takeRevert(); old != nil {
		failure.RollbackErr = c.putBack(*old)
		failure.RolledBack = failure.RollbackErr == nil
	}
	if failure.RolledBack && failure.Reason == ReasonUnknownOutcome {
		failure.Reason = ReasonTemporary // the change was undone
	}
	return failure
}

// abandon restores the old voice after OnStep has panicked or ended its
// goroutine. OnStep is not called again.
func (c *conversion) abandon() {
	c.o.OnStep = nil
	if old := c.takeRevert(); old != nil {
		_ = c.putBack(*old) // no error is returned that could report it
	}
}

// takeRevert returns the voice to restore, or nil. It returns a voice only once.
func (c *conversion) takeRevert() *Voice {
	old := c.revert
	c.revert = nil
	if c.o.NoRollback {
		return nil
	}
	return old
}

// reasonOf classifies the error of a step.
func reasonOf(step StepName, err error) Reason {
	switch {
	case step == StepAddress:
		return ReasonAddress
	case errors.As(err, new(unknownOutcome)):
		return ReasonUnknownOutcome
	case errors.Is(err, ErrVisualMode):
		return ReasonVisual
	case errors.Is(err, ErrProviderNotStreaming):
		return ReasonProvider
	case errors.Is(err, context.Canceled), Temporary(err):
		return ReasonTemporary
	}
	return ReasonRefused
}

// putBack restores the old voice. It reads the head first. It does not change the voice if
// the head streams, since the old voice may not stream, or if someone else has set another
// voice. It updates a head that still shows the old voice, since the read may be older than
// the update of this run.
func (c *conversion) putBack(old Voice) error {
	head, err := c.heads.Get(c.settling, c.done.HeadID)
	switch {
	case err != nil:
		return fmt.Errorf("the head could not be read, so its voice was left as it is: %w", err)
	case head.VideoStreaming:
		return errors.New("the head streams now, so its voice was left as it is")
	case c.wrongVoice(head) && !head.voice().is(old):
		return fmt.Errorf("the head now has voice %s of %s, which this conversion did not set, so it was left as it is", quote(head.TTSVoice), quote(head.TTSProvider))
	}
	if err = c.sendVoice(c.settling, old); err == nil || !unsettled(err) {
		return err
	}
	if _, shown, readErr := c.readAfterwards(StepVoice, speaksWith(old)); readErr == nil && shown {
		return nil
	}
	return err
}
