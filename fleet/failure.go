package fleet

import (
	"context"
	"errors"

	heads "github.com/headsapi/heads-go"
)

var (
	// errPlanChanged is the error of a head that Apply did not change, since its changes would
	// differ from Options.Planned.
	errPlanChanged = errors.New("fleet: the head is no longer as it was planned for, and was not changed; look at its changes and run it again")

	// errNoAddress is the error of a head that an earlier run has switched and whose new access URL
	// is not known.
	errNoAddress = errors.New("fleet: the head is in the wanted mode, but its new access URL is not known; give the bases of the access URLs of both modes (HEADS_STREAM_URL, HEADS_CHAT_URL) and run it again")

	// errNotSeen is the error of a head that does not yet show a switch that was accepted in an
	// earlier run. The switch is not sent again.
	errNotSeen = errors.New("fleet: an earlier run had the switch accepted, but the head does not show it yet; run it again later, or use another journal to send the switch again")

	// errJournal is wrapped by the error of a head whose switch could not be recorded.
	errJournal = errors.New("fleet: the mode was not switched, since the switch could not be recorded")
)

// reasonOf returns the reason for the failure of a head.
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

// notShown is the error for a change that was accepted but is missing in a follow-up read.
type notShown string

func (e notShown) Error() string { return "fleet: " + string(e) + "; run it again" }
