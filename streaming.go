package heads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/transport"
)

var opHeadsSetVideoStreaming = transport.NewOperation("Heads.SetVideoStreaming", http.MethodPut, "/head/{headId}/video-streaming")

// Voice is a voice of a text-to-speech provider.
type Voice struct {
	Provider string `json:"provider" yaml:"provider"` // "elevenlabs"
	ID       string `json:"id" yaml:"id"`             // "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"
}

// ConvertOptions configure a conversion. The zero value keeps the head's voice
// and refuses everything that the contract does not promise to work.
type ConvertOptions struct {
	Voice            *Voice               // nil keeps the head's voice
	AllowAnyProvider bool                 // skip the local check of the provider, let the service decide
	AllowUnknownMode bool                 // continue if the answer does not show the visual's mode
	NoRollback       bool                 // don't restore the old voice when enabling is refused
	OnStep           func(ConversionStep) // called in the same goroutine after every step and before every wait
	ConfirmTimeout   time.Duration        // how long the head is read after an accepted switch; 0 means 25 s
	SettleTimeout    time.Duration        // limit for all work after the caller's context has ended; 0 means 10 s
}

// StepName names a step of a conversion.
type StepName string

// The steps of a conversion, in order. On the way back to legacy mode
// StepDisable replaces StepEnable, and comes before StepVoice.
const (
	StepCheck   StepName = "check"   // read head and visual, change nothing
	StepVoice   StepName = "voice"   // set the voice
	StepEnable  StepName = "enable"  // switch to streaming, and wait until the head shows it
	StepDisable StepName = "disable" // switch to legacy mode, and wait until the head shows it
	StepAddress StepName = "address" // take the new access URL
)

// ConversionStep is a step that was done, or a step of a plan. OnStep also
// receives steps that wait, which are in no list of steps.
type ConversionStep struct {
	Name     StepName
	Skipped  bool   // there was nothing to do
	Waiting  bool   // not done yet: the head is about to be read again
	Accepted bool   // of a step that waits: the service has accepted the switch
	Detail   string // for people; no secrets
}

// ConversionPlan describes what a conversion would do, and what prevents it.
type ConversionPlan struct {
	HeadID           string
	Steps            []ConversionStep
	Blockers         []error // errors.Is knows ErrVisualMode, ErrProviderNotStreaming and ErrInvalid
	AlreadyStreaming bool
	VisualMode       VisualMode
	CurrentVoice     Voice
	Voice            Voice     // the one that will be in force
	VoiceRecommended bool      // its model is one that the service recommends for streaming
	Before           AccessURL // the access URL now
	Head             *Head     `json:"-"` // as it was read
}

// errStreamsWithSplitter is the blocker of a head in a state that the contract does not
// have.
var errStreamsWithSplitter error = unknownOutcome{errors.New("the head streams and shows a splitter, with which no head streams; run the conversion again later, or switch streaming on again, which turns the splitter off")}

// Ready reports whether nothing prevents the conversion.
func (p *ConversionPlan) Ready() bool { return len(p.Blockers) == 0 }

// Conversion is the result of a conversion that succeeded.
type Conversion struct {
	HeadID           string
	Steps            []ConversionStep
	AlreadyStreaming bool // no switch was needed; Steps shows whether the voice was set
	Before, After    AccessURL
}

// Reason classifies why a conversion failed, by what to do about it. Package fleet
// uses it for every failure.
type Reason string

// The reasons of a ConversionError. If several blockers apply, a visual comes
// before a provider, and both come before anything else.
const (
	ReasonVisual         Reason = "visual"          // a new head is needed
	ReasonProvider       Reason = "provider"        // another voice is needed
	ReasonRefused        Reason = "refused"         // the service refused
	ReasonTemporary      Reason = "temporary"       // nothing was switched; run it again
	ReasonUnknownOutcome Reason = "unknown_outcome" // the head does not show the change; run it again to find out
	ReasonAddress        Reason = "address"         // converted, but the new access URL is not known
)

// ConversionError reports at which step a conversion stopped, and what it has
// changed.
type ConversionError struct {
	HeadID      string
	Step        StepName         // the one that failed
	Reason      Reason           // always set
	Accepted    bool             // the service has accepted the switch of the mode
	Done        []ConversionStep // what was done before
	RolledBack  bool             // the old voice was restored
	RollbackErr error            // why the old voice was not restored
	Err         error

	voiceSent bool // the head has the new voice, unless the old one was restored
}

// What a plan's Blockers and a ConversionError unwrap to. ErrVisualMode stands
// for every mode except default. It also stands for a mode that is not known:
// the head has no visual, the visual is not found, or it shows no mode.
var (
	ErrVisualMode           = errors.New("heads: the mode of the head visual is not known to allow streaming")
	ErrProviderNotStreaming = errors.New("heads: the text-to-speech provider can't stream")
)

// SetVideoStreaming switches a head to streaming mode, or back to legacy mode.
//
// PUT /head/{headId}/video-streaming. If the visual of the head is not in mode
// default, or its voice can't stream, the service refuses, and SetVideoStreaming
// returns an *Error. When a head starts to stream, its access URL changes and
// the old one stops working. ConvertToStreaming handles that, and does all steps
// in the right order.
func (s *HeadsService) SetVideoStreaming(ctx context.Context, headID string, enabled bool) error {
	_, err := s.setVideoStreaming(ctx, headID, enabled)
	return err
}

// setVideoStreaming is SetVideoStreaming, and returns the answer.
func (s *HeadsService) setVideoStreaming(ctx context.Context, headID string, enabled bool) (*Response, error) {
	if err := checkHeadID(opHeadsSetVideoStreaming.Name, headID); err != nil {
		return nil, err
	}
	type options struct {
		VideoStreaming bool `url:"videoStreaming"`
	}
	return doPlain(ctx, s.core, opHeadsSetVideoStreaming, payload{param: headID, query: queryOf(options{enabled})})
}

// PlanStreaming returns what ConvertToStreaming would do with the same options.
// It only reads. Blockers holds everything that prevents the conversion, such as a
// splitter of a head that already streams. An error means that the head or its
// visual could not be read.
//
// GET /head/{id}, GET /head_visual/{headVisualId}.
func (s *HeadsService) PlanStreaming(ctx context.Context, headID string, o ConvertOptions) (*ConversionPlan, error) {
	const operation = "Heads.PlanStreaming"
	if err := o.validate(operation, headID); err != nil {
		return nil, err
	}
	head, err := s.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	plan := &ConversionPlan{
		HeadID:           headID,
		AlreadyStreaming: head.VideoStreaming,
		CurrentVoice:     head.voice(),
		Head:             head,
	}
	plan.chooseVoice(o)
	plan.Before, err = currentAddress(operation, head)
	if plan.AlreadyStreaming {
		if head.Splitter {
			plan.block(errStreamsWithSplitter)
		}
		if !plan.keepsVoice() {
			plan.block(s.providerFault(plan.Voice.Provider, o))
		}
		plan.fillSteps()
		return plan, nil
	}
	plan.block(err)
	mode, err := s.visualMode(ctx, head, o.AllowUnknownMode)
	if err != nil && !errors.Is(err, ErrVisualMode) {
		return nil, err
	}
	plan.VisualMode = mode
	plan.block(err)
	plan.block(s.providerFault(plan.Voice.Provider, o))
	plan.fillSteps()
	return plan, nil
}

// ConvertToStreaming moves a head from legacy to streaming mode, in the order
// that the service recommends: set the voice, enable streaming, take the new
// access URL. It first checks the head. If anything blocks, it changes nothing
// and returns all blockers together, as PlanStreaming does.
//
// GET /head/{id}, GET /head_visual/{headVisualId}, PUT /head/update (only if the
// voice changes), PUT /head/{headId}/video-streaming, then GET /head/{id} until
// the head streams without a splitter, and with the Voice of the options if
// there is one. If the outcome of a request is not known, ConvertToStreaming
// reads the head to find out. OnStep is called before every wait for a further
// read.
//
// If enabling fails after the voice was changed, or if OnStep panics, the old
// voice is restored, even if ctx has just ended. The voice is not restored if
// the head streams by then, or has a voice that this run did not set. After the
// rollback the panic continues. After ctx has ended, ConvertToStreaming returns
// within SettleTimeout. After any failure, another run resumes.
//
// If the head already streams, no switch is sent. A Voice that differs from the
// head's is set and confirmed, and is not rolled back. The access URL is the
// head's own, unless this client knows that it is the one from before the
// switch.
//
// One client runs one conversion of a head at a time, so OnStep must not convert
// the same head.
//
// After the arguments were checked, every failure is a *ConversionError. If only
// the new access URL is not known, ConvertToStreaming also returns the
// Conversion, without After: the head does stream.
func (s *HeadsService) ConvertToStreaming(ctx context.Context, headID string, o ConvertOptions) (*Conversion, error) {
	const operation = "Heads.ConvertToStreaming"
	if err := o.validate(operation, headID); err != nil {
		return nil, err
	}
	run := newConversion(s, ctx, headID, o)
	end, err := run.begin(operation)
	if err != nil {
		return nil, run.fail(progress{}, StepCheck, err)
	}
	defer end()
	plan, err := s.PlanStreaming(ctx, headID, o)
	if err != nil {
		return nil, run.fail(progress{}, StepCheck, err)
	}
	if !plan.Ready() {
		return nil, run.fail(progress{}, StepCheck, errors.Join(plan.Blockers...))
	}
	return run.toStreaming(plan)
}

// ConvertToLegacy moves a head from streaming back to legacy mode. The contract
// allows this if the visual is in mode default, and names no operation for it;
// ConvertToLegacy sends the mode switch with videoStreaming=false. The access URL
// becomes the legacy one again. A Voice is set after the switch, when the head can
// have one that does not stream. If the head is already in legacy mode, no switch
// is sent.
//
// GET /head/{id}, GET /head_visual/{headVisualId}, PUT
// /head/{headId}/video-streaming, then GET /head/{id} until the head shows the
// change, and PUT /head/update if the voice changes. AllowAnyProvider and
// NoRollback are ignored: in legacy mode a head can have any voice, and nothing is
// rolled back. After any failure, another run resumes. After the arguments were
// checked, every failure is a *ConversionError.
func (s *HeadsService) ConvertToLegacy(ctx context.Context, headID string, o ConvertOptions) (*Conversion, error) {
	const operation = "Heads.ConvertToLegacy"
	if err := o.validate(operation, headID); err != nil {
		return nil, err
	}
	run := newConversion(s, ctx, headID, o)
	end, err := run.begin(operation)
	if err != nil {
		return nil, run.fail(progress{}, StepCheck, err)
	}
	defer end()
	head, err := s.Get(ctx, headID)
	if err != nil {
		return nil, run.fail(progress{}, StepCheck, err)
	}
	if run.before, err = currentAddress(operation, head); err != nil && head.VideoStreaming {
		return nil, run.fail(progress{}, StepCheck, err)
	}
	if head.VideoStreaming {
		if _, err := s.visualMode(ctx, head, o.AllowUnknownMode); err != nil {
			return nil, run.fail(progress{}, StepCheck, err)
		}
	}
	return run.toLegacy(head)
}

// String returns the steps and the blockers, one a line.
func (p ConversionPlan) String() string {
	state := "ready"
	switch {
	case !p.Ready():
		state = "blocked"
	case p.AlreadyStreaming:
		state = "already streaming"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "conversion of head %s: %s", p.HeadID, state)
	for _, step := range p.Steps {
		fmt.Fprintf(&b, "\n  %s", step.Name)
		if step.Skipped {
			b.WriteString(" (skipped)")
		}
		fmt.Fprintf(&b, ": %s", step.Detail)
	}
	for _, blocker := range p.Blockers {
		fmt.Fprintf(&b, "\n  blocked: %v", blocker)
	}
	return b.String()
}

// Error returns the step that failed, the steps before it, the reason, and
// whether the voice was restored.
func (e *ConversionError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "heads: converting head %s stopped at step %q", e.HeadID, e.Step)
	said := b.Len()
	if len(e.Done) > 0 {
		fmt.Fprintf(&b, " (done: %s)", joinSteps(e.Done))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	switch {
	case e.RolledBack:
		b.WriteString("; the old voice was put back")
	case e.RollbackErr != nil:
		fmt.Fprintf(&b, "; the old voice was not put back: %v", e.RollbackErr)
	case e.voiceSent:
		b.WriteString("; the head has the new voice")
	}
	if !check.IsUUID(e.HeadID) {
		return b.String()
	}
	// The id appears once; below it the route is enough.
	return b.String()[:said] + strings.ReplaceAll(b.String()[said:], e.HeadID, "{id}")
}

// Unwrap returns why the step failed.
func (e *ConversionError) Unwrap() error { return e.Err }

// temporary is for Temporary.
func (e *ConversionError) temporary() bool {
	return e.Reason == ReasonTemporary || e.Reason == ReasonUnknownOutcome
}

func joinSteps(steps []ConversionStep) string {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = string(step.Name)
		if step.Skipped {
			names[i] += " skipped"
		}
	}
	return strings.Join(names, ", ")
}

func (o ConvertOptions) validate(operation, headID string) error {
	var faults faultList
	faults.add(checkHeadID(operation, headID))
	if v := o.Voice; v != nil {
		if strings.TrimSpace(v.Provider) == "" || strings.TrimSpace(v.ID) == "" {
			faults.add(invalid(operation, "voice", fmt.Sprintf("has provider %s and id %s, but both are needed", quote(v.Provider), quote(v.ID)), "leave Voice nil to keep the head's voice", useConvertVoice))
		}
		if check.IsSample(v.Provider) || check.IsSample(v.ID) {
			faults.add(invalid(operation, "voice", fmt.Sprintf("has provider %s and id %s, one of which is a placeholder", quote(v.Provider), quote(v.ID)), "give the real values"))
		}
	}
	if o.ConfirmTimeout < 0 {
		faults.add(invalid(operation, "confirm timeout", fmt.Sprintf("%v is negative", o.ConfirmTimeout), "use 0 for the default"))
	}
	if o.SettleTimeout < 0 {
		faults.add(invalid(operation, "settle timeout", fmt.Sprintf("%v is negative", o.SettleTimeout), "use 0 for the default"))
	}
	return faults.join()
}

func (p *ConversionPlan) block(err error) {
	if err != nil {
		p.Blockers = append(p.Blockers, err)
	}
}

// chooseVoice finds the voice that will be in force. The model in its id is a
// hint for people and never a reason to refuse it.
func (p *ConversionPlan) chooseVoice(o ConvertOptions) {
	p.Voice = p.CurrentVoice
	if o.Voice != nil {
		p.Voice = *o.Voice
	}
	p.VoiceRecommended = recommendedForStreaming(p.Voice.ID)
}

// recommendedForStreaming reports whether the model in a voice's id is one that
// the service recommends for streaming. What separates its words is ignored.
func recommendedForStreaming(voiceID string) bool {
	separates := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	voiceID = strings.Join(strings.FieldsFunc(strings.ToLower(voiceID), separates), "_")
	return slices.ContainsFunc([]string{"flash_v2", "flash_v2_5", "turbo_v2", "turbo_v2_5"}, func(model string) bool {
		return voiceID == model || strings.HasSuffix(voiceID, "_"+model)
	})
}

// step returns the step of that name, which every plan has.
func (p *ConversionPlan) step(name StepName) ConversionStep {
	return p.Steps[slices.IndexFunc(p.Steps, func(s ConversionStep) bool { return s.Name == name })]
}

// keepsVoice reports whether the voice does not change.
func (p *ConversionPlan) keepsVoice() bool { return p.Voice.is(p.CurrentVoice) }

func (h *Head) voice() Voice { return Voice{h.TTSProvider, h.TTSVoice} }

// is reports whether two voices are the same. The provider's name is
// case-insensitive.
func (v Voice) is(o Voice) bool { return v.ID == o.ID && strings.EqualFold(v.Provider, o.Provider) }

// fillSteps fills in the steps of the plan.
func (p *ConversionPlan) fillSteps() {
	streams := p.AlreadyStreaming
	voice := fmt.Sprintf("%s of %s", label(p.Voice.ID), label(p.Voice.Provider))
	if p.VoiceRecommended {
		voice += " (recommended for streaming)"
	}
	if p.keepsVoice() {
		voice = "stays " + voice
	} else {
		voice = fmt.Sprintf("%s of %s becomes %s", label(p.CurrentVoice.ID), label(p.CurrentVoice.Provider), voice)
	}
	check := "head reads as legacy, visual mode " + quote(string(p.VisualMode))
	enable, address := "switch to streaming", "take the streaming access URL in place of "+p.Before.String()
	if streams {
		check, enable, address = "the head already streams", "nothing to do", "stays "+p.Before.String()
	}
	p.Steps = []ConversionStep{
		{Name: StepCheck, Detail: check},
		{Name: StepVoice, Skipped: p.keepsVoice(), Detail: voice},
		{Name: StepEnable, Skipped: streams, Detail: enable},
		{Name: StepAddress, Skipped: streams, Detail: address},
	}
}

// visualMode returns the mode of the head's visual. The error is an
// ErrVisualMode if the mode does not allow a switch, or else that of the read.
func (s *HeadsService) visualMode(ctx context.Context, head *Head, allowUnknown bool) (VisualMode, error) {
	if head.HeadVisualID == "" {
		return "", because(ErrVisualMode, "the head has no visual that can be read (headVisualId), so its mode is not known")
	}
	visual, err := (&HeadVisualsService{s.service}).Get(ctx, head.HeadVisualID)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("%w: %w", because(ErrVisualMode, "visual %s of the head was not found, so its mode is not known", label(head.HeadVisualID)), err)
	case err != nil:
		return "", err
	case visual.Mode == VisualModeDefault, visual.Mode == "" && allowUnknown:
		return visual.Mode, nil
	case visual.Mode == "":
		return "", because(ErrVisualMode, "the answer for visual %s holds no mode; look at the head where it was created, or allow an unknown mode", label(visual.ID))
	default:
		return visual.Mode, because(ErrVisualMode, "visual %s is in mode %s, only %q can be converted; a new head must be created",
			label(visual.ID), quote(string(visual.Mode)), VisualModeDefault)
	}
}

// providerFault returns an error if the voices of a provider are not known to
// stream.
func (s *HeadsService) providerFault(provider string, o ConvertOptions) error {
	if o.AllowAnyProvider || s.core.streamingProvider[strings.ToLower(provider)] {
		return nil
	}
	return because(ErrProviderNotStreaming, "provider %s is not known to stream; give a voice of one that does, or allow any provider",
		quote(provider))
}
