package heads_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// showVisual replaces the visual of the head.
func (w *conversionWorld) showVisual(v headstest.Visual) {
	v.ID = visualID
	w.AddVisual(v)
}

func TestConversionSendsExactlyThis(t *testing.T) {
	const (
		read   = "GET /head/HEAD"
		visual = "GET /head_visual/" + visualID
		update = "PUT /head/update"
		on     = "PUT /head/HEAD/video-streaming?videoStreaming=true"
		off    = "PUT /head/HEAD/video-streaming?videoStreaming=false"
		body   = `{"id":"` + convertID + `","ttsProvider":"elevenlabs","ttsVoice":"pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"}`
	)
	for _, tt := range []struct {
		name string
		head headstest.Head
		run  func(context.Context, *heads.Client) error
		want []string
	}{
		{"a new voice", headWith(muteVoice), toNewVoice, []string{read, visual, update, on, read}},
		{"a new voice of the same provider", headWith(heads.Voice{Provider: "elevenlabs", ID: "rachel"}), toNewVoice, []string{read, visual, update, on, read}},
		{"the same voice", headWith(newVoice), toNewVoice, []string{read, visual, on, read}},
		{"the same voice, provider in other case", headWith(heads.Voice{Provider: "ElevenLabs", ID: newVoice.ID}), toNewVoice, []string{read, visual, on, read}},
		{"the head's own voice", headWith(capableVoice), func(ctx context.Context, c *heads.Client) error {
			return heads.ErrorOf(c.Heads.ConvertToStreaming(ctx, convertID, heads.ConvertOptions{}))
		}, []string{read, visual, on, read}},
		{"streams already", streamingHead(), toNewVoice, []string{read}},
		{"streams already, with another voice", streamingWith(capableVoice), toNewVoice, []string{read, update, read}},
		{"a plan", headWith(muteVoice), func(ctx context.Context, c *heads.Client) error {
			return heads.ErrorOf(c.Heads.PlanStreaming(ctx, convertID, heads.ConvertOptions{Voice: &newVoice}))
		}, []string{read, visual}},
		{"back to legacy", streamingHead(), toLegacy, []string{read, visual, off, read}},
		{"legacy already", headWith(muteVoice), toLegacy, []string{read}},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, tt.head)
			require.NoError(t, tt.run(t.Context(), w.client()))
			assert.Equal(t, tt.want, w.wire())
			for _, r := range w.Requests() {
				assert.Equal(t, map[string]string{"/head/update": body}[r.Path], string(r.Body))
				assert.Equal(t, len(r.Body) > 0, r.Header.Get("Content-Type") != "", "only a body has a type")
			}
		})
	}
}

func toNewVoice(ctx context.Context, c *heads.Client) error {
	return heads.ErrorOf(c.Heads.ConvertToStreaming(ctx, convertID, heads.ConvertOptions{Voice: &newVoice}))
}

func toLegacy(ctx context.Context, c *heads.Client) error {
	return heads.ErrorOf(c.Heads.ConvertToLegacy(ctx, convertID, heads.ConvertOptions{}))
}

// A plan has the steps of the conversion: their names, which are skipped, and the
// details. Only the access URL is not known before the end.
func TestPlanIsWhatHappens(t *testing.T) {
	const voice = "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5 of elevenlabs (recommended for streaming)"
	for _, tt := range []struct {
		name    string
		head    headstest.Head
		skipped []heads.StepName
		check   string
		voice   string
		enable  string
		address string // before the old one
	}{
		{"a new voice", headWith(muteVoice), nil, `head reads as legacy, visual mode "default"`, "Joanna of polly becomes " + voice,
			"switch to streaming", "take the streaming access URL in place of "},
		{"the same voice", headWith(newVoice), stepNames("voice"), `head reads as legacy, visual mode "default"`, "stays " + voice,
			"switch to streaming", "take the streaming access URL in place of "},
		{"streams already", streamingHead(), stepNames("voice enable address"), "the head already streams", "stays " + voice, "nothing to do", "stays "},
		{"streams already, with another voice", streamingWith(capableVoice), stepNames("enable address"), "the head already streams",
			"en-GB-SoniaNeural of azure becomes " + voice, "nothing to do", "stays "},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, tt.head)
			before := w.state(t)
			var told []heads.ConversionStep
			o := heads.ConvertOptions{Voice: &newVoice, OnStep: func(step heads.ConversionStep) { told = append(told, step) }}
			plan := heads.Must(w.client().Heads.PlanStreaming(t.Context(), convertID, o))(t)
			assert.True(t, plan.Ready())
			assert.Equal(t, before, w.state(t), "a plan changes nothing")
			assert.Empty(t, told, "no step is done by a plan")

			conversion := heads.Must(w.client().Heads.ConvertToStreaming(t.Context(), convertID, o))(t)
			assert.Equal(t, conversion.Steps, told, "OnStep is told every step, in order")
			assert.Equal(t, stepNames("check voice enable address"), namesOf(plan.Steps))
			assert.Equal(t, plan.Steps[:3], conversion.Steps[:3])
			assert.Equal(t, namesOf(plan.Steps), namesOf(conversion.Steps))
			for i, detail := range []string{tt.check, tt.voice, tt.enable, tt.address + plan.Before.String()} {
				assert.Equal(t, detail, plan.Steps[i].Detail)
			}
			var skipped []heads.StepName
			for i, step := range conversion.Steps {
				assert.Equal(t, plan.Steps[i].Skipped, step.Skipped)
				if step.Skipped {
					skipped = append(skipped, step.Name)
				}
			}
			assert.Equal(t, tt.skipped, skipped)
			assert.Equal(t, plan.AlreadyStreaming, conversion.AlreadyStreaming)
			assert.Equal(t, plan.Before, conversion.Before)
			assert.Equal(t, convertID, plan.HeadID)
			assert.Equal(t, before.voice, plan.CurrentVoice)
			assert.Equal(t, newVoice, plan.Voice)
			assert.Equal(t, before.streaming, plan.AlreadyStreaming)
			if !before.streaming {
				assert.Equal(t, heads.VisualModeDefault, plan.VisualMode)
				assert.Equal(t, legacyURL, plan.Before.Reveal())
			}
			assert.Equal(t, plan.Voice, w.state(t).voice)
		})
	}
}

// blocked is a head that can't be converted.
type blocked struct {
	name   string
	visual headstest.Visual
	head   headstest.Head
	o      heads.ConvertOptions
	is     []error // one for each blocker
	says   []string
}

func blockedHeads() []blocked {
	field := func(name string, value any) headstest.Head {
		h := headWith(capableVoice)
		h.Fields = map[string]any{name: value}
		return h
	}
	hopeless := headWith(muteVoice)
	hopeless.Fields = map[string]any{"publicUrl": chatBase + publicPath}
	noVisual := headWith(muteVoice)
	noVisual.Fields = map[string]any{"publicUrl": "", "headVisualId": nil}
	good := headWith(capableVoice)
	return []blocked{
		{"two loops", headstest.Visual{Mode: "two_loops"}, good, heads.ConvertOptions{}, []error{heads.ErrVisualMode}, []string{`"two_loops"`, "a new head must be created"}},
		{"two loops streaming", headstest.Visual{Mode: "two_loops_streaming"}, good, heads.ConvertOptions{}, []error{heads.ErrVisualMode}, []string{`"two_loops_streaming"`}},
		{"a mode in other case", headstest.Visual{Mode: "Default"}, good, heads.ConvertOptions{}, []error{heads.ErrVisualMode}, []string{`"Default"`}},
		{"unknown mode", headstest.Visual{HideMode: true}, good, heads.ConvertOptions{}, []error{heads.ErrVisualMode}, []string{"holds no mode", "allow an unknown mode"}},
		{"mode of another type", headstest.Visual{Fields: map[string]any{"mode": 1}}, good, heads.ConvertOptions{}, []error{heads.ErrVisualMode}, []string{"holds no mode"}},
		{"two loops are known", headstest.Visual{Mode: "two_loops"}, good, heads.ConvertOptions{AllowUnknownMode: true}, []error{heads.ErrVisualMode}, []string{`"two_loops"`}},
		{"no visual", headstest.Visual{}, field("headVisualId", nil), heads.ConvertOptions{AllowUnknownMode: true}, []error{heads.ErrVisualMode}, []string{"has no visual"}},
		{"visual not found", headstest.Visual{}, field("headVisualId", "gone"), heads.ConvertOptions{AllowUnknownMode: true}, []error{heads.ErrVisualMode}, []string{"visual gone", "not found"}},
		{"provider", headstest.Visual{}, headWith(muteVoice), heads.ConvertOptions{}, []error{heads.ErrProviderNotStreaming}, []string{`"polly"`, "allow any provider"}},
		{"provider of the new voice", headstest.Visual{}, good, heads.ConvertOptions{Voice: &muteVoice}, []error{heads.ErrProviderNotStreaming}, []string{`"polly"`}},
		{"no provider", headstest.Visual{}, field("ttsProvider", ""), heads.ConvertOptions{}, []error{heads.ErrProviderNotStreaming}, []string{`provider ""`}},
		{"no address", headstest.Visual{}, field("publicUrl", ""), heads.ConvertOptions{}, []error{heads.ErrInvalid}, []string{"publicUrl", "is blank"}},
		{"address without its key", headstest.Visual{}, field("publicUrl", chatBase+publicPath), heads.ConvertOptions{}, []error{heads.ErrInvalid}, []string{"api_key"}},
		{"address without an id", headstest.Visual{}, field("publicUrl", chatBase+"/li-28379?api_key="+convertKey), heads.ConvertOptions{}, []error{heads.ErrInvalid}, []string{"public id"}},
		{"all at once", headstest.Visual{Mode: "two_loops"}, hopeless, heads.ConvertOptions{},
			[]error{heads.ErrInvalid, heads.ErrVisualMode, heads.ErrProviderNotStreaming}, []string{"api_key", `"two_loops"`, `"polly"`}},
		{"all at once, mode unknown", headstest.Visual{HideMode: true}, hopeless, heads.ConvertOptions{Voice: &muteVoice},
			[]error{heads.ErrInvalid, heads.ErrVisualMode, heads.ErrProviderNotStreaming}, []string{"api_key", "no mode", `"polly"`}},
		{"all at once, no visual", headstest.Visual{}, noVisual, heads.ConvertOptions{},
			[]error{heads.ErrInvalid, heads.ErrVisualMode, heads.ErrProviderNotStreaming}, []string{"is blank", "no visual", `"polly"`}},
	}
}

func TestAllBlockersAreReturnedAndNothingIsChanged(t *testing.T) {
	reasons := map[error]heads.Reason{
		heads.ErrVisualMode: heads.ReasonVisual, heads.ErrProviderNotStreaming: heads.ReasonProvider, heads.ErrInvalid: heads.ReasonRefused,
	}
	for _, tt := range blockedHeads() {
		t.Run(tt.name, func(t *testing.T) {
			w := newConversionWorld(t, tt.head)
			w.showVisual(tt.visual)
			client, before := w.client(), w.state(t)
			plan, err := client.Heads.PlanStreaming(t.Context(), convertID, tt.o)
			require.NoError(t, err, "a plan with blockers does not fail")
			assert.False(t, plan.Ready())
			require.Len(t, plan.Blockers, len(tt.is))
			for i, want := range tt.is {
				assert.ErrorIs(t, plan.Blockers[i], want)
			}
			assert.Equal(t, stepNames("check voice enable address"), namesOf(plan.Steps))

			conversion, err := client.Heads.ConvertToStreaming(t.Context(), convertID, tt.o)
			assert.Nil(t, conversion)
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepCheck, failure.Step)
			assert.Empty(t, failure.Done)
			assert.False(t, failure.RolledBack)
			first := tt.is[0]
			if len(tt.is) > 1 {
				first = heads.ErrVisualMode // its reason comes first
			}
			assert.Equal(t, reasons[first], failure.Reason)
			for _, want := range tt.is {
				assert.ErrorIs(t, err, want)
			}
			for _, text := range tt.says {
				assert.ErrorContains(t, err, text)
			}
			assert.NotContains(t, err.Error(), convertKey)
			assert.Equal(t, before, w.state(t))
			for _, r := range w.Requests() {
				assert.Equal(t, http.MethodGet, r.Method)
			}
		})
	}
}

func TestPlanFailsIfHeadOrVisualCannotBeRead(t *testing.T) {
	for _, request := range []string{getHead, getVisual} {
		for _, f := range faults {
			heads.Bubble(t, request+" "+f.name, func(t *testing.T) {
				w := newConversionWorld(t, headWith(muteVoice))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w.cancel = cancel
				w.faults[request] = spoiling{f, -1}
				plan, err := w.client().Heads.PlanStreaming(ctx, convertID, heads.ConvertOptions{})
				assert.Error(t, err)
				assert.Nil(t, plan)
				assert.NotErrorIs(t, err, heads.ErrVisualMode)
			})
		}
	}
	w := newConversionWorld(t, headWith(muteVoice))
	w.faults[getHead] = spoiling{before("", status(404)), -1}
	assert.ErrorIs(t, heads.ErrorOf(w.client().Heads.PlanStreaming(t.Context(), convertID, heads.ConvertOptions{})), heads.ErrNotFound)
}

func TestLocalChecksCanBeLeftToTheService(t *testing.T) {
	mute := heads.Voice{Provider: "elevenlabs", ID: "mute"}
	for _, tt := range []struct {
		name       string
		visual     headstest.Visual
		old        heads.Voice
		o          heads.ConvertOptions
		opts       []heads.Option
		service    []headstest.Option
		refusal    error // nil: it is converted
		rolledBack bool
	}{
		{name: "a provider that only the service knows", old: heads.Voice{Provider: "acme", ID: "v"}, o: heads.ConvertOptions{AllowAnyProvider: true},
			service: []headstest.Option{headstest.WithStreamingProviders("acme")}},
		{name: "a provider given to the client", old: heads.Voice{Provider: "ACME", ID: "v"}, opts: []heads.Option{heads.WithStreamingProviders("Acme")},
			service: []headstest.Option{headstest.WithStreamingProviders("acme")}},
		{name: "a provider in other case", old: heads.Voice{Provider: "ElevenLabs", ID: "rachel"}},
		{name: "a provider that the service refuses", old: muteVoice, o: heads.ConvertOptions{AllowAnyProvider: true}, refusal: heads.ErrUnprocessable},
		{name: "a new provider that the service refuses", old: capableVoice, o: heads.ConvertOptions{AllowAnyProvider: true, Voice: &muteVoice},
			refusal: heads.ErrUnprocessable, rolledBack: true},
		{name: "a voice that can't stream", old: capableVoice, o: heads.ConvertOptions{Voice: &mute},
			service: []headstest.Option{headstest.WithNonStreamingVoices("mute")}, refusal: heads.ErrUnprocessable, rolledBack: true},
		{name: "an unknown mode that is default", visual: headstest.Visual{HideMode: true}, old: capableVoice, o: heads.ConvertOptions{AllowUnknownMode: true}},
		{name: "an unknown mode that is not", visual: headstest.Visual{HideMode: true, Mode: "two_loops"}, old: muteVoice,
			o: heads.ConvertOptions{AllowUnknownMode: true, Voice: &newVoice}, refusal: heads.ErrConflict, rolledBack: true},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(tt.old), tt.service...)
			w.showVisual(tt.visual)
			_, err := w.client(tt.opts...).Heads.ConvertToStreaming(t.Context(), convertID, tt.o)
			if tt.refusal == nil {
				require.NoError(t, err)
				assert.True(t, w.state(t).streaming)
				return
			}
			failure := heads.As[*heads.ConversionError](t, err)
			assert.ErrorIs(t, err, tt.refusal)
			assert.Equal(t, heads.StepEnable, failure.Step)
			assert.Equal(t, tt.rolledBack, failure.RolledBack)
			assert.Equal(t, state{false, tt.old}, w.state(t))
		})
	}
}

func TestRecommendedModelsAreMarkedAndOthersAreAllowed(t *testing.T) {
	for model, want := range map[string]bool{
		"abc_flash_v2": true, "abc_eleven_flash_v2_5": true, "abc_eleven_turbo_v2": true, "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5": true,
		"ABC_Eleven_Turbo_V2_5": true, "turbo_v2": true, "jessica eleven turbo v2 5": true, "jessica-eleven-Turbo--v2.5": true,
		"abcturbo v2": false, "abc_eleven_multilingual_v2": false, "abc_turbo_v2_6": false, "abc_turbo_v3": false, "abc_flash_v2_5_preview": false,
		"abcturbo_v2": false, "rachel": false,
	} {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s kept %t", model, kept), func(t *testing.T) {
				voice := heads.Voice{Provider: "elevenlabs", ID: model}
				w, o := newConversionWorld(t, headWith(voice)), heads.ConvertOptions{}
				if !kept {
					w, o.Voice = newConversionWorld(t, headWith(muteVoice)), &voice
				}
				plan := heads.Must(w.client().Heads.PlanStreaming(t.Context(), convertID, o))(t)
				assert.True(t, plan.Ready())
				assert.Equal(t, want, plan.VoiceRecommended)
				assert.Equal(t, want, strings.Contains(plan.Steps[1].Detail, "recommended"))
			})
		}
	}
}

func TestConvertOptionsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		voice    *heads.Voice
		faults   int
	}{
		{"public id", "li-28379", nil, 1},
		{"voice without provider", convertID, &heads.Voice{ID: "rachel"}, 1},
		{"voice without id", convertID, &heads.Voice{Provider: "elevenlabs", ID: " "}, 1},
		{"empty voice", convertID, &heads.Voice{}, 1},
		{"placeholder for a voice", convertID, &heads.Voice{Provider: "elevenlabs", ID: "string"}, 1},
		{"placeholder for a provider", convertID, &heads.Voice{Provider: "<PROVIDER>", ID: "rachel"}, 1},
		{"all of it", "", &heads.Voice{Provider: "string"}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headstest.Head{})
			client, o := w.client(), heads.ConvertOptions{Voice: tt.voice}
			plan, planErr := client.Heads.PlanStreaming(t.Context(), tt.id, o)
			conversion, err := client.Heads.ConvertToStreaming(t.Context(), tt.id, o)
			assert.Nil(t, plan)
			assert.Nil(t, conversion)
			for operation, err := range map[string]error{"Heads.PlanStreaming": planErr, "Heads.ConvertToStreaming": err} {
				require.ErrorIs(t, err, heads.ErrInvalid)
				assert.Equal(t, tt.faults, strings.Count(err.Error(), operation))
				assert.NotErrorAs(t, err, new(*heads.ConversionError))
			}
			assert.Empty(t, w.Requests())
		})
	}
	w := newConversionWorld(t, headstest.Head{})
	negative := heads.ConvertOptions{ConfirmTimeout: -1, SettleTimeout: -time.Second}
	_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, negative)
	require.ErrorIs(t, err, heads.ErrInvalid)
	assert.ErrorContains(t, err, "-1ns is negative")
	assert.ErrorContains(t, err, "-1s is negative")
	_, err = w.client().Heads.ConvertToLegacy(t.Context(), "li-28379", heads.ConvertOptions{ConfirmTimeout: -1, SettleTimeout: -1, Voice: &heads.Voice{}})
	assert.Equal(t, []string{"head id", "voice", "confirm timeout", "settle timeout"}, refusedFields(t, "Heads.ConvertToLegacy", err))
	assert.Empty(t, w.Requests())
}

func TestConversionThatCannotBeginIsAConversionError(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w := newConversionWorld(t, headstest.Head{})
	for name, run := range map[string]func(context.Context, *heads.Client) error{"streaming": toNewVoice, "legacy": toLegacy} {
		t.Run(name, func(t *testing.T) {
			var failure *heads.ConversionError
			err := run(ended, w.client())
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, heads.StepCheck, failure.Step)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Empty(t, w.Requests())
		})
	}
}

func TestHeadThatAlreadyStreamsIsNotChanged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mutate func(*headstest.Head)
		opts   []heads.Option
		want   string // "": an error at StepAddress
	}{
		{"with a voice that can stream", func(*headstest.Head) {}, nil, streamURL},
		{"with a voice that can't stream", func(h *headstest.Head) { h.TTSProvider, h.TTSVoice = "polly", "Joanna" }, nil, streamURL},
		{"with an old address", func(h *headstest.Head) { h.Fields = map[string]any{"publicUrl": legacyURL} },
			[]heads.Option{heads.WithAccessBases("", streamBase)}, streamURL},
		{"without an address", func(h *headstest.Head) { h.Fields = map[string]any{"publicUrl": ""} }, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := headWith(capableVoice)
			head.VideoStreaming = true
			tt.mutate(&head)
			w := newConversionWorld(t, head)
			w.showVisual(headstest.Visual{Mode: "two_loops"})
			before := w.state(t)
			client, o := w.client(tt.opts...), heads.ConvertOptions{}
			plan := heads.Must(client.Heads.PlanStreaming(t.Context(), convertID, o))(t)
			assert.True(t, plan.AlreadyStreaming)
			assert.True(t, plan.Ready())
			assert.Equal(t, plan.CurrentVoice, plan.Voice, "the voice is left alone")

			conversion, err := client.Heads.ConvertToStreaming(t.Context(), convertID, o)
			require.NotNil(t, conversion, err)
			assert.True(t, conversion.AlreadyStreaming)
			assert.Equal(t, before, w.state(t))
			for _, r := range w.Requests() {
				assert.Equal(t, http.MethodGet, r.Method)
			}
			if tt.want != "" {
				require.NoError(t, err)
				assert.Equal(t, tt.want, conversion.After.Reveal())
				return
			}
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepAddress, failure.Step)
			assert.ErrorIs(t, err, heads.ErrInvalid)
		})
	}
}

func streamingHead() headstest.Head { return streamingWith(newVoice) }

// streamingWith returns a head in streaming mode with a voice.
func streamingWith(v heads.Voice) headstest.Head {
	head := headWith(v)
	head.VideoStreaming = true
	return head
}

func TestVoiceOfAHeadThatStreamsIsSetAndConfirmed(t *testing.T) {
	ignored := before("ignored", func(_ *conversionWorld, r *http.Request) (*http.Response, error) {
		return heads.Answer(http.StatusOK, "true")(r)
	})
	for _, tt := range []struct {
		name   string
		fault  fault // of the update
		reason heads.Reason
		step   heads.StepName
		says   string
		left   heads.Voice
	}{
		{"accepted", fault{}, "", "", "", newVoice},
		{"answer lost", after("", hangUp), "", "", "", newVoice},
		{"refused", before("", status(422)), heads.ReasonRefused, heads.StepVoice, "422", capableVoice},
		{"not possible now", before("", status(503)), heads.ReasonTemporary, heads.StepVoice, "503", capableVoice},
		{"accepted without effect", ignored, heads.ReasonUnknownOutcome, heads.StepEnable, `the head already streams, but after 25s the head has voice "en-GB-SoniaNeural"`, capableVoice},
		{"caller left after the effect", cancelling(after("", leave)), heads.ReasonTemporary, heads.StepVoice, "; the head has the new voice", newVoice},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, streamingWith(capableVoice))
			if tt.fault.strike != nil {
				w.faults[putVoice] = spoiling{tt.fault, -1}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.cancel = cancel
			start := time.Now()
			conversion, err := w.client().Heads.ConvertToStreaming(ctx, convertID, heads.ConvertOptions{Voice: &newVoice})
			assert.Equal(t, state{true, tt.left}, w.state(t))
			assert.NotContains(t, w.sent, putSwitch)
			assert.NotContains(t, w.sent, putBack)
			if tt.reason == "" {
				require.NoError(t, err)
				if tt.fault.strike == nil {
					assert.Zero(t, time.Since(start), "the read that confirms it does not wait")
				}
				assert.True(t, conversion.AlreadyStreaming)
				assert.Equal(t, streamURL, conversion.After.Reveal())
				return
			}
			assert.Nil(t, conversion)
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, tt.reason, failure.Reason)
			assert.Equal(t, tt.step, failure.Step)
			assert.NoError(t, failure.RollbackErr)
			assert.ErrorContains(t, err, tt.says)
		})
	}
}

func TestHeadThatStreamsRefusesAVoiceThatCannot(t *testing.T) {
	w := newConversionWorld(t, streamingHead())
	o := heads.ConvertOptions{Voice: &muteVoice}
	plan := heads.Must(w.client().Heads.PlanStreaming(t.Context(), convertID, o))(t)
	require.Len(t, plan.Blockers, 1)
	assert.ErrorIs(t, plan.Blockers[0], heads.ErrProviderNotStreaming)
	assert.Equal(t, heads.ReasonProvider, reasonOf(t, heads.ErrorOf(w.client().Heads.ConvertToStreaming(t.Context(), convertID, o))))
	assert.Equal(t, state{true, newVoice}, w.state(t))
}

// The contract has no state in which a head streams and has a splitter. After a switch,
// the head may still show the old one.
func TestSplitterOfAHeadThatStreams(t *testing.T) {
	document := func(splitter bool) string {
		return fmt.Sprintf(`{"id":%q,"videoStreaming":true,"splitter":%t,"ttsProvider":%q,"ttsVoice":%q,"publicUrl":%q}`,
			convertID, splitter, newVoice.Provider, newVoice.ID, streamURL)
	}
	for _, stays := range []bool{false, true} {
		heads.Bubble(t, fmt.Sprintf("is waited for after a switch, stays %t", stays), func(t *testing.T) {
			w := newConversionWorld(t, headWith(newVoice))
			w.answers[readBack] = document(true)
			_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{OnStep: func(step heads.ConversionStep) {
				if step.Waiting {
					w.answers[readBack] = document(stays)
				}
			}})
			if stays {
				assert.ErrorContains(t, err, "the switch was accepted, but after 25s the head still shows a splitter")
			} else {
				require.NoError(t, err)
			}
		})
	}
	t.Run("blocks without a switch", func(t *testing.T) {
		w := newConversionWorld(t, streamingHead())
		w.answers[getHead] = document(true)
		_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &capableVoice})
		failure := heads.As[*heads.ConversionError](t, err)
		assert.Equal(t, heads.StepCheck, failure.Step)
		assert.Equal(t, heads.ReasonUnknownOutcome, failure.Reason)
		assert.ErrorContains(t, err, "the head streams and shows a splitter, with which no head streams; run the conversion again later")
		assert.Equal(t, []string{getHead}, w.sent, "one read, no change")
	})
}

func TestRolledBackConversionIsTemporaryThoughTheVoiceWasUnknown(t *testing.T) {
	for _, noRollback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[putVoice] = spoiling{after("", hangUp), -1}
			w.faults[checkVoice] = spoiling{before("", status(403)), 1}
			_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice, NoRollback: noRollback})
			if noRollback {
				assert.Equal(t, heads.ReasonUnknownOutcome, reasonOf(t, err))
				return
			}
			assert.Equal(t, heads.ReasonTemporary, reasonOf(t, err))
			assert.Equal(t, state{false, muteVoice}, w.state(t))
		})
	}
}

func TestPrintedPlanShowsStepsAndBlockers(t *testing.T) {
	w := newConversionWorld(t, headWith(muteVoice))
	plan := heads.Must(w.client().Heads.PlanStreaming(t.Context(), convertID, heads.ConvertOptions{}))(t)
	want := "conversion of head " + convertID + `: blocked
  check: head reads as legacy, visual mode "default"
  voice (skipped): stays Joanna of polly
  enable: switch to streaming
  address: take the streaming access URL in place of ` + plan.Before.String() + `
  blocked: ` + plan.Blockers[0].Error()
	assert.Equal(t, want, fmt.Sprint(plan))

	plan.Blockers = nil
	assert.Contains(t, fmt.Sprint(plan), ": ready\n")
	plan.AlreadyStreaming = true
	assert.Contains(t, fmt.Sprint(plan), ": already streaming\n")
}

func TestConversionErrorNamesTheHeadOnce(t *testing.T) {
	w := newConversionWorld(t, headWith(muteVoice))
	for _, request := range []string{getHead, getVisual} {
		w.faults[request] = spoiling{before("", status(404)), 1}
		_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
		require.Error(t, err)
		assert.Equal(t, 1, strings.Count(err.Error(), convertID), err)
	}
	_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
	assert.ErrorContains(t, err, "heads: converting head "+convertID+" stopped at step \"check\": ")
}

func TestConvertToLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, streamingHead())
		conversion := heads.Must(w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{}))(t)
		assert.Equal(t, []heads.ConversionStep{
			{Name: heads.StepCheck, Detail: "the head streams, and its visual allows the way back"},
			{Name: heads.StepDisable, Detail: "switched to legacy mode"},
			{Name: heads.StepAddress, Detail: "now " + conversion.After.String()},
		}, conversion.Steps)
		assert.Equal(t, streamURL, conversion.Before.Reveal())
		assert.Equal(t, legacyURL, conversion.After.Reveal())
		assert.Equal(t, state{false, newVoice}, w.state(t), "the voice stays")

		again := heads.Must(w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{}))(t)
		assert.Equal(t, []bool{false, true, true}, []bool{again.Steps[0].Skipped, again.Steps[1].Skipped, again.Steps[2].Skipped})
		assert.Equal(t, legacyURL, again.After.Reveal())
	})
}

func TestConvertToLegacyHonoursItsOptions(t *testing.T) {
	for name, row := range map[string]struct {
		head       headstest.Head
		voice      *heads.Voice
		steps      string
		skipped    string
		wire       []string
		afterwards heads.Voice
	}{
		"no voice":                     {streamingHead(), nil, "check disable address", "", []string{"off"}, newVoice},
		"a voice that does not stream": {streamingHead(), &muteVoice, "check disable voice address", "", []string{"off", "PUT /head/update"}, muteVoice},
		"the voice that it has":        {streamingHead(), &heads.Voice{Provider: "ElevenLabs", ID: newVoice.ID}, "check disable voice address", "voice", []string{"off"}, newVoice},
		"in legacy mode already":       {headWith(newVoice), &muteVoice, "check disable voice address", "disable address", []string{"PUT /head/update"}, muteVoice},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newConversionWorld(t, row.head)
			var told, skipped []heads.ConversionStep
			done := heads.Must(w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{Voice: row.voice, OnStep: func(s heads.ConversionStep) {
				told = append(told, s)
				if s.Skipped {
					skipped = append(skipped, s)
				}
			}}))(t)
			assert.Equal(t, stepNames(row.steps), namesOf(done.Steps))
			assert.Equal(t, stepNames(row.skipped), namesOf(skipped))
			assert.Equal(t, done.Steps, told)
			assert.Equal(t, legacyURL, done.After.Reveal())
			puts := slices.DeleteFunc(w.wire(), func(line string) bool { return strings.HasPrefix(line, "GET ") })
			assert.Equal(t, strings.ReplaceAll(strings.Join(row.wire, "\n"), "off", "PUT /head/HEAD/video-streaming?videoStreaming=false"), strings.Join(puts, "\n"))
			assert.Equal(t, state{false, row.afterwards}, w.state(t))
		})
	}
}

func TestConvertToLegacyWaitsAsLongAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, streamingHead())
		w.stale = 1000
		begun, waits := time.Now(), 0
		_, err := w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{ConfirmTimeout: 3 * time.Second, OnStep: func(s heads.ConversionStep) {
			if s.Waiting {
				waits++
			}
		}})
		assert.Equal(t, heads.ReasonUnknownOutcome, reasonOf(t, err))
		assert.LessOrEqual(t, time.Since(begun), 3*time.Second)
		assert.Greater(t, time.Since(begun), 2*time.Second)
		assert.Positive(t, waits)
	})
}

func TestConvertToLegacyReportsAVoiceThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, streamingHead())
		w.faults[putBack] = spoiling{before("", status(400)), -1}
		_, err := w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{Voice: &muteVoice})
		failure := heads.As[*heads.ConversionError](t, err)
		assert.Equal(t, heads.StepVoice, failure.Step)
		assert.Equal(t, heads.ReasonRefused, failure.Reason)
		assert.True(t, failure.Accepted)
		assert.Equal(t, stepNames("check disable"), namesOf(failure.Done))
	})
}

func TestConvertToLegacyNeedsAVisualInDefaultMode(t *testing.T) {
	for _, visual := range []headstest.Visual{{Mode: "two_loops"}, {Mode: "two_loops_streaming"}, {HideMode: true}} {
		t.Run(fmt.Sprintf("%s hidden %t", visual.Mode, visual.HideMode), func(t *testing.T) {
			w := newConversionWorld(t, streamingHead())
			w.showVisual(visual)
			_, err := w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{})
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepCheck, failure.Step)
			assert.ErrorIs(t, err, heads.ErrVisualMode)
			if visual.HideMode {
				assert.ErrorContains(t, err, "holds no mode; look at the head where it was created, or allow an unknown mode")
			}
			assert.Equal(t, []string{"GET /head/HEAD", "GET /head_visual/" + visualID}, w.wire())
			assert.True(t, w.state(t).streaming)
		})
	}
}

func TestConvertToLegacyUnderFaults(t *testing.T) {
	for _, request := range []string{getHead, getVisual, putSwitch, readBack} {
		for _, f := range faults {
			for _, times := range []int{1, -1} {
				heads.Bubble(t, fmt.Sprintf("%s/%s/times %d", request, f.name, times), func(t *testing.T) {
					w := newConversionWorld(t, streamingHead())
					w.faults[request] = spoiling{f, times}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w.cancel = cancel
					_, err := w.client().Heads.ConvertToLegacy(ctx, convertID, heads.ConvertOptions{})
					helped := times == 1 && !f.final || request == putSwitch && f.effect
					switched := helped || request == readBack
					assert.Equal(t, state{!switched, newVoice}, w.state(t))
					if helped {
						require.NoError(t, err)
					} else {
						failure := heads.As[*heads.ConversionError](t, err)
						assert.Equal(t, map[string]heads.StepName{
							getHead: heads.StepCheck, getVisual: heads.StepCheck, putSwitch: heads.StepDisable, readBack: heads.StepDisable,
						}[request], failure.Step)
						assert.Equal(t, outcome{step: heads.StepEnable, state: state{switched, newVoice}}.reason(f), failure.Reason)
						assert.False(t, failure.RolledBack)
						assert.NotContains(t, err.Error(), "voice")
					}
					w.faults, w.sent = nil, nil
					conversion := heads.Must(w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{}))(t)
					assert.Equal(t, legacyURL, conversion.After.Reveal())
					assert.Equal(t, state{false, newVoice}, w.state(t))
				})
			}
		}
	}
}

// The mode does not depend on the access URL of a legacy head, so its error comes
// last.
func TestConvertToLegacyOfALegacyHeadWithoutAnAccessURL(t *testing.T) {
	head := headWith(muteVoice)
	head.Fields = map[string]any{"publicUrl": ""}
	conversion, err := newConversionWorld(t, head).client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{})
	require.NotNil(t, conversion)
	failure := heads.As[*heads.ConversionError](t, err)
	assert.Equal(t, heads.StepAddress, failure.Step)

	head.VideoStreaming = true
	w := newConversionWorld(t, head)
	conversion, err = w.client().Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{})
	assert.Nil(t, conversion)
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, heads.StepCheck, failure.Step)
	assert.ErrorIs(t, err, heads.ErrInvalid)
	assert.True(t, w.state(t).streaming, "a head that would lose its access URL is not switched")
}

func TestNewAccessURLOfTheWayBack(t *testing.T) {
	for _, tt := range []struct {
		name, chat string
		want       string
	}{
		{"configured", "https://mine.example.com", "https://mine.example.com" + publicPath + "?api_key=" + convertKey},
		{"none", "", ""},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, streamingHead(), headstest.WithStaleAddresses())
			client := w.client(heads.WithAccessBases(tt.chat, streamBase))
			conversion, err := client.Heads.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{})
			require.NotNil(t, conversion)
			assert.False(t, w.state(t).streaming)
			if tt.want != "" {
				require.NoError(t, err)
				assert.Equal(t, tt.want, conversion.After.Reveal())
				return
			}
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepAddress, failure.Step)
			assert.Equal(t, stepNames("check disable"), namesOf(failure.Done))
			assert.ErrorContains(t, err, "HEADS_CHAT_URL")
		})
	}
}

func TestConversionErrorShowsWhatIsLeft(t *testing.T) {
	cause := errors.New("refused")
	done := []heads.ConversionStep{{Name: heads.StepCheck}, {Name: heads.StepVoice, Skipped: true}}
	for _, tt := range []struct {
		name string
		err  heads.ConversionError
		want string
	}{
		{"at the beginning", heads.ConversionError{HeadID: "h", Step: heads.StepCheck, Err: cause},
			`heads: converting head h stopped at step "check": refused`},
		{"after steps", heads.ConversionError{HeadID: "h", Step: heads.StepEnable, Done: done, Err: cause},
			`heads: converting head h stopped at step "enable" (done: check, voice skipped): refused`},
		{"rolled back", heads.ConversionError{HeadID: "h", Step: heads.StepEnable, Err: cause, RolledBack: true},
			`heads: converting head h stopped at step "enable": refused; the old voice was put back`},
		{"not rolled back", heads.ConversionError{HeadID: "h", Step: heads.StepEnable, Err: cause, RollbackErr: errors.New("gone")},
			`heads: converting head h stopped at step "enable": refused; the old voice was not put back: gone`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.EqualError(t, &tt.err, tt.want)
			assert.ErrorIs(t, &tt.err, cause)
		})
	}
}

func TestConversionReportsWhetherItsSwitchWasAccepted(t *testing.T) {
	const route = "/head/{headId}/video-streaming"
	for name, tt := range map[string]struct {
		fault    headstest.Fault
		accepted bool
		waits    bool
	}{
		"accepted, without effect":     {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200}, true, true},
		"answered with its access URL": {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: `"` + streamURL + `"`}, true, true},
		"answered by a proxy":          {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: "<html>We are back soon</html>"}, false, true},
		"answered with a message":      {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: `{"message":"We are back soon"}`}, false, true},
		"answered with false":          {headstest.Fault{Method: http.MethodPut, Route: route, Status: 200, Body: "false"}, false, true},
		"refused":                      {headstest.Fault{Method: http.MethodPut, Route: route, Status: 409}, false, false},
		"lost, without effect":         {headstest.Fault{Method: http.MethodPut, Route: route, Status: 500}, false, true},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			e := headstest.NewEmulator()
			defer e.Close()
			e.Inject(tt.fault)
			waited := 0
			_, err := e.Client().Heads.ConvertToStreaming(t.Context(), e.AddHead(headstest.Head{Fields: map[string]any{"publicUrl": legacyURL}}), heads.ConvertOptions{ConfirmTimeout: 3 * time.Second, OnStep: func(step heads.ConversionStep) {
				if step.Waiting {
					waited++
				}
				assert.Equal(t, step.Waiting && tt.accepted, step.Accepted)
			}})
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, tt.accepted, failure.Accepted)
			if !tt.accepted {
				assert.NotContains(t, err.Error(), "accepted")
			}
			assert.Equal(t, tt.waits, waited > 0)
		})
	}
}
