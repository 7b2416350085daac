package fleet

import (
	"context"
	"errors"

	heads "github.com/headsapi/heads-go"
)

var (
	// errPlanChanged is in the result of a head that Apply left alone since its changes would not
	// be those of Options.Planned.
	errPlanChanged = errors.New("fleet: the head is no longer as it was planned for, and was not changed; look at its changes and run it again")

	// errNoAddress is the failure of a head that an earlier run has switched, if its access URL is
	// not known.
	errNoAddress = errors.New("fleet: the head is in the wanted mode, but its new access URL is not known; give the bases of the access URLs of both modes (HEADS_STREAM_URL, HEADS_CHAT_URL) and run it again")

	// errNotSeen is the failure of a head that does not show a switch accepted in an earlier run.
	// The switch is not sent again.
	errNotSeen = errors.New("fleet: an earlier run had the switch accepted, but the head does not show it yet; run it again later, or use another journal to send the switch again")

	// errJournal is wrapped by the failure of a head whose switch could not be recorded.
	errJournal = errors.New("fleet: the mode was not switched, since the switch could not be recorded")
)

// reasonOf returns the reason of any failure of a head.
func reasonOf(err error) heads.Reason {
	var conversion *heads.ConversionError
	switch {
	case errors.As(err, &conversion):
		return conversion.Reason
	case errors.Is(err, errNotSeen):
		return heads.ReasonUnknownOutcome
	case errors.Is(err, errNoAddress):
		return heads.ReasonAddress
	case errors.Is(err, heads.ErrVisualMode):
		return heads.ReasonVisual
	case errors.Is(err, heads.ErrProviderNotStreaming):
		return heads.ReasonProvider
	case errors.Is(err, errJournal), errors.As(err, new(notShown)), errors.Is(err, context.Canceled), heads.Temporary(err):
		return heads.ReasonTemporary
	}
	return heads.ReasonRefused
}

// notShown returns the error for a change that was accepted, but that a follow-up read does not
// show.
type notShown string

func (e notShown) Error() string { return "fleet: " + string(e) + "; run it again" }
