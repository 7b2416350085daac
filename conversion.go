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
	headID   string
	before   AccessURL
}

// progress is what a run has done. A method that does more returns the new progress.
type progress struct {
	steps     []ConversionStep
	revert    *Voice // the voice to restore when enabling fails
	voiceSent bool   // the head may have the new voice, or have had it
	accepted  bool   // the switch of the mode
}

func newConversion(s *HeadsService, ctx context.Context, headID string, o ConvertOptions) *conversion {
	o.ConfirmTimeout = cmp.Or(o.ConfirmTimeout, defaultConfirmTimeout)
	o.SettleTimeout = cmp.Or(o.SettleTimeout, defaultSettleTimeout)
	return &conversion{heads: s, ctx: ctx, o: o, headID: headID}
}

// begin waits until no other conversion of the head by this client is running.
func (c *conversion) begin(operation string) (end func(), err error) {
	unlock, err := c.heads.core.lock(c.ctx, operation, headLock("mode", c.headID))
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
	c.before = plan.Before
	var done progress
	defer func() { c.abandon(done) }()
	stop := func(step StepName, err error) (*Conversion, error) {
		failed := done
		done.revert = nil // failReverting restores it
		return nil, c.failReverting(failed, step, err)
	}

	done = c.did(done, plan.step(StepCheck))
	if !plan.keepsVoice() {
		err := c.sendVoice(c.ctx, plan.Voice)
		if err == nil || unsettled(err) {
			done.voiceSent = true
			if !plan.AlreadyStreaming && !c.o.NoRollback {
				done.revert = &plan.CurrentVoice
			}
		}
		if err != nil && unsettled(err) {
			done, err = c.settleVoice(done, plan.Voice, err)
		}
		if err != nil {
			return stop(StepVoice, err)
		}
	}
	done = c.did(done, plan.step(StepVoice))

	var err error
	sent := modeSwitch{said: "the head already streams"}
	switch {
	case !plan.AlreadyStreaming:
		if sent, done, err = c.switchMode(done, StepEnable, true); err != nil {
			return stop(StepEnable, err)
		}
	case plan.keepsVoice():
		sent.known = plan.Head // nothing has changed since
	}
	var head *Head
	if head, done, err = c.confirm(done, sent, StepEnable, true); err != nil {
		return stop(StepEnable, err)
	}
	done.accepted = !plan.AlreadyStreaming
	done = c.did(done, plan.step(StepEnable))

	var after AccessURL
	address := plan.step(StepAddress)
	if plan.AlreadyStreaming {
		after, err = c.sameAddress(head)
	} else {
		after, err = c.newAddress(sent.answer, head)
		address.Detail = "now " + after.String()
	}
	conversion, err := c.finish(done, address, after, err)
	conversion.AlreadyStreaming = plan.AlreadyStreaming
	return conversion, err
}

func (c *conversion) toLegacy(head *Head) (*Conversion, error) {
	var done progress
	if !head.VideoStreaming {
		done = c.did(done, ConversionStep{Name: StepCheck, Detail: "the head is in legacy mode already"})
		done = c.did(done, ConversionStep{Name: StepDisable, Skipped: true, Detail: "nothing to do"})
		done, err := c.setLegacyVoice(done, head)
		if err != nil {
			return nil, c.fail(done, StepVoice, err)
		}
		after, err := c.sameAddress(head)
		return c.finish(done, ConversionStep{Name: StepAddress, Skipped: true, Detail: "stays " + c.before.String()}, after, err)
	}
	done = c.did(done, ConversionStep{Name: StepCheck, Detail: "the head streams, and its visual allows the way back"})
	sent, done, err := c.switchMode(done, StepDisable, false)
	if err == nil {
		head, done, err = c.confirm(done, sent, StepDisable, false)
	}
	if err != nil {
		return nil, c.fail(done, StepDisable, err)
	}
	done.accepted = true
	done = c.did(done, ConversionStep{Name: StepDisable, Detail: "switched to legacy mode"})
	if done, err = c.setLegacyVoice(done, head); err != nil {
		return nil, c.fail(done, StepVoice, err)
	}
	after, err := c.newAddress(sent.answer, head)
	return c.finish(done, ConversionStep{Name: StepAddress, Detail: "now " + after.String()}, after, err)
}

// setLegacyVoice sets the voice that was asked for, if a head in legacy mode does
// not have it yet.
func (c *conversion) setLegacyVoice(p progress, head *Head) (progress, error) {
	voice := c.o.Voice
	if voice == nil {
		return p, nil
	}
	step := ConversionStep{Name: StepVoice, Skipped: !c.wrongVoice(head), Detail: fmt.Sprintf("stays %s of %s", voice.ID, voice.Provider)}
	if !step.Skipped {
		step.Detail = fmt.Sprintf("%s of %s becomes %s of %s", head.TTSVoice, head.TTSProvider, voice.ID, voice.Provider)
		err := c.sendVoice(c.ctx, *voice)
		if err != nil && unsettled(err) {
			p, err = c.settleVoice(p, *voice, err)
		}
		if err != nil {
			return p, err
		}
	}
	return c.did(p, step), nil
}

// did adds a step that was done, and calls OnStep.
func (c *conversion) did(p progress, step ConversionStep) progress {
	p.steps = append(p.steps, step)
	if c.o.OnStep != nil {
		c.o.OnStep(step)
	}
	return p
}

// sendVoice sends the update of the voice. It returns errForeignAnswer for an answer that a
// proxy may have sent.
func (c *conversion) sendVoice(ctx context.Context, v Voice) error {
	answer, err := c.heads.update(ctx, c.headID, NewHeadUpdate().Voice(v.Provider, v.ID))
	if err == nil && !answer.isOwn(c.headID) {
		return errForeignAnswer
	}
	return err
}

// settleVoice finds out whether the voice was set, after the answer was lost.
func (c *conversion) settleVoice(p progress, voice Voice, lost error) (progress, error) {
	_, shown, err := c.readAfterwards(p, StepVoice, speaksWith(voice))
	switch {
	case err != nil:
		return p, unknownOutcome{fmt.Errorf("%w; a follow-up read, which would show whether the voice was set, failed: %w", lost, err)}
	case !shown:
		p.revert, p.voiceSent = nil, false
		return p, fmt.Errorf("%w; a follow-up read shows that the head does not have the new voice", lost)
	case c.ctx.Err() != nil:
		return p, lost // the voice was set, but the context has ended
	}
	return p, nil
}

// modeSwitch is a switch of the mode that was made.
type modeSwitch struct {
	answer *Response // nil if it was lost
	known  *Head     // the head in the new mode, if it was read already
	said   string    // begins the sentence of an error
}

// switchMode switches the mode. After an error, the head has not switched, or no one knows.
func (c *conversion) switchMode(p progress, step StepName, streaming bool) (sent modeSwitch, _ progress, err error) {
	if sent.answer, err = c.heads.setVideoStreaming(c.ctx, c.headID, streaming); err != nil {
		if !unsettled(err) {
			return sent, p, err
		}
		if sent.known, p, err = c.settleMode(p, step, streaming, err); err != nil {
			return sent, p, err
		}
	}
	p.revert = nil // switched: from here on it only reads
	sent.said = "the switch was answered, perhaps by a proxy"
	if p.accepted = sent.answer == nil || c.isOwnSwitch(sent.answer); p.accepted {
		sent.said = "the switch was accepted"
	}
	return sent, p, nil
}

// isOwnSwitch reports whether the answer to a switch can only be the service's own.
func (c *conversion) isOwnSwitch(answer *Response) bool {
	_, found := c.findAddress(answer.Body.Bytes())
	return found || answer.isOwn(c.headID)
}

// settleMode finds out whether the head has switched, after the answer was lost.
// If so, it returns the head.
func (c *conversion) settleMode(p progress, step StepName, streaming bool, lost error) (*Head, progress, error) {
	head, shown, err := c.readAfterwards(p, step, func(h *Head) bool { return h.VideoStreaming == streaming })
	switch {
	case err != nil:
		p.revert = nil // the head may stream now, and then needs the new voice
		return nil, p, unknownOutcome{fmt.Errorf("%w; a follow-up read, which would show whether the mode was switched, failed; run the conversion again to find out: %w", lost, err)}
	case !shown:
		return nil, p, fmt.Errorf("%w; a follow-up read shows that the head has not switched", lost)
	}
	return head, p, nil
}

// unknownOutcome is the error of a change that could not be confirmed.
type unknownOutcome struct{ error }

func (e unknownOutcome) Unwrap() error { return e.error }

// confirm reads the head until it is in the mode. A head that streams must also
// have no splitter, and the voice that was asked for.
func (c *conversion) confirm(p progress, sent modeSwitch, step StepName, streaming bool) (*Head, progress, error) {
	head, shown, err := c.readUntil(c.ctx, reading{step: step, accepted: p.accepted, known: sent.known,
		shown: func(h *Head) bool { return c.missing(h, streaming) == "" }})
	switch {
	case shown:
		return head, p, nil
	case head == nil:
		return nil, p, unknownOutcome{fmt.Errorf("%s, but the head could not be read: %w", sent.said, err)}
	}
	if head.VideoStreaming && c.wrongVoice(head) {
		p.voiceSent = false
	}
	if err != nil {
		return nil, p, unknownOutcome{fmt.Errorf("%s, but %s: %w", sent.said, c.missing(head, streaming), err)}
	}
	return nil, p, unknownOutcome{fmt.Errorf("%s, but after %v %s; run the conversion again later", sent.said, c.o.ConfirmTimeout, c.missing(head, streaming))}
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
func (c *conversion) readAfterwards(p progress, step StepName, wanted func(*Head) bool) (*Head, bool, error) {
	return c.readUntil(c.settling, reading{step: step, accepted: p.accepted, reads: lostReads, shown: wanted})
}

// reading describes how to read the head until it shows something.
type reading struct {
	step     StepName // for OnStep
	accepted bool     // for OnStep
	known    *Head    // if not nil, used instead of the first read
	reads    int      // at most so many; 0 means until ConfirmTimeout
	shown    func(*Head) bool
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
		if c.o.OnStep != nil {
			c.o.OnStep(ConversionStep{Name: r.step, Waiting: true, Accepted: r.accepted, Detail: fmt.Sprintf("the head does not show the change yet, reading it again in %v", pause)})
		}
		if err := timing.Sleep(ctx, pause); err != nil {
			return head, false, err
		}
	}
}

// read reads the head once, within maxReadTime.
func (c *conversion) read(ctx context.Context, head **Head) error {
	ctx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	read, err := c.heads.Get(ctx, c.headID)
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

// finish ends a run that has confirmed the mode. The error is that of the access URL.
func (c *conversion) finish(p progress, step ConversionStep, after AccessURL, err error) (*Conversion, error) {
	if err != nil {
		return &Conversion{HeadID: c.headID, Steps: p.steps, Before: c.before}, c.fail(p, StepAddress, err)
	}
	p = c.did(p, step)
	return &Conversion{HeadID: c.headID, Steps: p.steps, Before: c.before, After: after}, nil
}

// newAddress returns the access URL after a switch: the one in its answer, else that of the
// head, else the old one moved to the configured base.
func (c *conversion) newAddress(answer *Response, head *Head) (AccessURL, error) {
	if answer != nil {
		if found, ok := c.findAddress(answer.Body.Bytes()); ok {
			return found, nil
		}
	}
	if found, ok := c.accept(head.PublicURL.Reveal()); ok {
		return found, nil
	}
	base := c.heads.core.accessBase(head.VideoStreaming, "")
	if base == "" {
		c.heads.core.oldAddresses.Store(modeOf(head), c.before)
		return AccessURL{}, c.noNewAddress(head)
	}
	moved := c.before
	moved.Base = base
	return moved, nil
}

// sameAddress returns the access URL of a head that needed no switch.
func (c *conversion) sameAddress(head *Head) (AccessURL, error) {
	address, err := c.heads.core.accessURL(head)
	if err == nil && c.isOld(head, address) {
		err = c.noNewAddress(head)
	}
	return address, err
}

// noNewAddress is the error of a switch after which the new access URL is not known.
func (c *conversion) noNewAddress(head *Head) error {
	const remedy = "give the base of the access URLs in that mode (HEADS_STREAM_URL, HEADS_CHAT_URL) and run it again"
	shown, err := currentAddress("AccessURL", head)
	switch {
	case err != nil:
		return fmt.Errorf("the mode was switched, but neither the answer nor the head shows the new access URL (%w); %s", err, remedy)
	case shown.Base == c.before.Base:
		return fmt.Errorf("the mode was switched, but neither the answer nor the head shows the new access URL: the head shows %v; %s", shown, remedy)
	default:
		return fmt.Errorf("the mode was switched, but the head shows %v, which is not %v at another base; run the conversion again if that is the new access URL, or %s", shown, c.before, remedy)
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
	old := c.before
	return found, err == nil && found.PublicOrgID == old.PublicOrgID && found.PublicHeadID == old.PublicHeadID && found.Base != old.Base
}

// fail returns the error of a step after which there is nothing to roll back.
func (c *conversion) fail(p progress, step StepName, err error) *ConversionError {
	return &ConversionError{HeadID: c.headID, Step: step, Done: p.steps, Reason: reasonOf(step, err), Accepted: p.accepted, Err: err}
}

// failReverting restores the old voice if the new one may be in force. The error
// reports the result.
func (c *conversion) failReverting(p progress, step StepName, err error) error {
	failure := c.fail(p, step, err)
	failure.voiceSent = p.voiceSent
	if p.revert != nil {
		failure.RollbackErr = c.putBack(p)
		failure.RolledBack = failure.RollbackErr == nil
	}
	if failure.RolledBack && failure.Reason == ReasonUnknownOutcome {
		failure.Reason = ReasonTemporary // the change was undone
	}
	return failure
}

// abandon restores the old voice if OnStep has panicked or ended its goroutine before the
// switch. OnStep is not called again.
func (c *conversion) abandon(p progress) {
	if p.revert != nil {
		c.o.OnStep = nil
		_ = c.putBack(p) // no error is returned that could report it
	}
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
func (c *conversion) putBack(p progress) error {
	old := *p.revert
	head, err := c.heads.Get(c.settling, c.headID)
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
	if _, shown, readErr := c.readAfterwards(p, StepVoice, speaksWith(old)); readErr == nil && shown {
		return nil
	}
	return err
}
