package heads_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/exhaustive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	convertID  = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	visualID   = "v-1"
	chatBase   = "https://chat.example.test" // the emulator's own
	streamBase = "https://stream.example.test"
	convertKey = "canary0123456789abcdef0123456789"
	publicPath = "/MyOrg-1234/li-28379"
	legacyURL  = chatBase + publicPath + "?api_key=" + convertKey
	streamURL  = streamBase + publicPath + "?api_key=" + convertKey
)

var (
	muteVoice    = heads.Voice{Provider: "polly", ID: "Joanna"}
	capableVoice = heads.Voice{Provider: "azure", ID: "en-GB-SoniaNeural"}
	newVoice     = heads.Voice{Provider: "elevenlabs", ID: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5"}
)

// The requests of a conversion, by purpose. Every read after the switch is a
// readBack.
const (
	getHead    = "GET head"
	getVisual  = "GET visual"
	putVoice   = "PUT update"
	checkVoice = "GET head after the update"
	putSwitch  = "PUT video-streaming"
	readBack   = "GET head read-back"
	putBack    = "PUT update back"
)

// conversionWorld is a world whose clients name the requests of a conversion,
// note them all, and let some of them fail.
type conversionWorld struct {
	*world
	faults  map[string]spoiling
	cancel  context.CancelFunc // cancels the context of the caller
	sent    []string
	answers map[string]string // replace the bodies of answers, by request
	stale   int               // how many reads after the switch still show the head as it was
	legacy  []byte            // the head as it was
}

// spoiling is a fault and how often it happens.
type spoiling struct {
	fault
	times int // below 0: always
}

// newConversionWorld adds the head, with a visual in default mode, to a new
// emulator. Call it inside the bubble.
func newConversionWorld(t *testing.T, head headstest.Head, opts ...headstest.Option) *conversionWorld {
	t.Helper()
	head.ID, head.HeadVisualID = convertID, visualID
	fields := map[string]any{"publicId": "li-28379", "orgPublicId": "MyOrg-1234", "publicUrl": legacyURL}
	if head.VideoStreaming {
		fields["publicUrl"] = streamURL
	}
	for name, value := range head.Fields {
		fields[name] = value
	}
	head.Fields = fields
	return &conversionWorld{world: newWorldOf(t, head, opts...), faults: map[string]spoiling{}, answers: map[string]string{}}
}

// headWith returns a head in legacy mode with a voice.
func headWith(v heads.Voice) headstest.Head {
	return headstest.Head{TTSProvider: v.Provider, TTSVoice: v.ID}
}

// client returns a client whose requests are named, noted and spoiled. Those of
// w.world.client are not.
func (w *conversionWorld) client(opts ...heads.Option) *heads.Client {
	return w.world.client(append([]heads.Option{over(w.spoil), heads.WithRetryPolicy(heads.DefaultRetryPolicy())}, opts...)...)
}

func (w *conversionWorld) spoil(r *http.Request) (*http.Response, error) {
	name := w.name(r)
	w.sent = append(w.sent, name)
	if s, ok := w.faults[name]; ok && s.times != 0 {
		s.times--
		w.faults[name] = s
		return s.strike(w, r)
	}
	resp, err := w.send(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body, _ := io.ReadAll(resp.Body)
	switch replacement, ok := w.answers[name]; {
	case ok:
		body = []byte(replacement)
	case name == getHead:
		w.legacy = body
	case name == readBack && w.stale > 0:
		w.stale--
		body = w.legacy
	}
	return heads.Answer(http.StatusOK, string(body))(r)
}

func (w *conversionWorld) name(r *http.Request) string {
	switch {
	case strings.HasPrefix(r.URL.Path, worldPrefix+"/head_visual/"):
		return getVisual
	case strings.HasSuffix(r.URL.Path, "/video-streaming"):
		return putSwitch
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(newVoice.ID)) && bytes.Contains(body, []byte(newVoice.Provider)) {
			return putVoice
		}
		return putBack
	case slices.Contains(w.sent, putSwitch):
		return readBack
	case slices.Contains(w.sent, putVoice):
		return checkVoice
	default:
		return getHead
	}
}

// state is the part of a head that a conversion changes.
type state struct {
	streaming bool
	voice     heads.Voice
}

// setVoice changes the voice as another program would.
func (w *conversionWorld) setVoice(t *testing.T, v heads.Voice) {
	t.Helper()
	require.NoError(t, w.world.client().Heads.Update(context.Background(), convertID, heads.NewHeadUpdate().Voice(v.Provider, v.ID)))
}

// state reads the head as another program would.
func (w *conversionWorld) state(t *testing.T) state {
	t.Helper()
	head := heads.Must(w.world.client().Heads.Get(context.Background(), convertID))(t)
	return state{head.VideoStreaming, heads.Voice{Provider: head.TTSProvider, ID: head.TTSVoice}}
}

// fault is a way in which a request goes wrong.
type fault struct {
	name    string
	code    int  // of the last answer, if there is one
	effect  bool // the service does what it was asked
	final   bool // the client must not retry it
	cancels bool // the caller's context ends
	strike  func(*conversionWorld, *http.Request) (*http.Response, error)
}

// striking returns how a request with a fault ends.
type striking func(*conversionWorld, *http.Request) (*http.Response, error)

// before returns a fault of a request that has no effect.
func before(name string, how striking) fault { return fault{name: name, strike: how} }

// after returns a fault of a request that has its effect first.
func after(name string, how striking) fault {
	return fault{name: name, effect: true, strike: func(w *conversionWorld, r *http.Request) (*http.Response, error) {
		if err := w.carryOut(r); err != nil {
			return nil, err
		}
		return how(w, r)
	}}
}

// carryOut sends the request to the service and drops the answer.
func (w *conversionWorld) carryOut(r *http.Request) error {
	resp, err := w.send(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// answered makes f a fault that is an answer with a status.
func answered(f fault, code int) fault {
	f.code = code
	f.final = code < 429
	return f
}

func status(code int) striking {
	return func(_ *conversionWorld, r *http.Request) (*http.Response, error) {
		return heads.Answer(code, `{"message":"made to fail"}`)(r)
	}
}

func hangUp(*conversionWorld, *http.Request) (*http.Response, error) { return nil, io.EOF }

func stall(_ *conversionWorld, r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func leave(w *conversionWorld, _ *http.Request) (*http.Response, error) {
	w.cancel()
	return nil, context.Canceled
}

// breakOff returns an answer that ends before its announced length.
func breakOff(_ *conversionWorld, r *http.Request) (*http.Response, error) {
	resp, err := heads.Answer(http.StatusOK, "")(r)
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id":"`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	resp.ContentLength = 1000
	return resp, err
}

// refuseRepeat answers the first request, which has its effect, with 500, and all
// others with 409.
func refuseRepeat(w *conversionWorld, r *http.Request) (*http.Response, error) {
	if slices.Index(w.sent, w.sent[len(w.sent)-1]) < len(w.sent)-1 {
		return heads.Answer(http.StatusConflict, `{"message":"that is so already"}`)(r)
	}
	if err := w.carryOut(r); err != nil {
		return nil, err
	}
	return heads.Answer(http.StatusInternalServerError, "")(r)
}

func cancelling(f fault) fault {
	f.final, f.cancels = true, true
	return f
}

var faults = []fault{
	answered(before("400", status(400)), 400),
	answered(before("409", status(409)), 409),
	answered(before("422", status(422)), 422),
	answered(before("429", status(429)), 429),
	answered(before("500 before the effect", status(500)), 500),
	answered(after("500 after the effect", status(500)), 500),
	before("time-out before the effect", stall),
	after("time-out after the effect", stall),
	before("cut before the effect", hangUp),
	after("cut after the effect", hangUp),
	after("cut in the answer", breakOff),
	{name: "refused repeat", effect: true, code: 409, strike: refuseRepeat},
	cancelling(before("context cancelled before the effect", leave)),
	cancelling(after("context cancelled after the effect", leave)),
}

// outcome is how a conversion under a fault must end.
type outcome struct {
	ok         bool
	step       heads.StepName
	done       []heads.StepName
	rolledBack bool
	state
}

// outcomeOf returns how a conversion from the old to the new voice must end if one
// of its requests fails.
func outcomeOf(request string, f fault, always bool, old heads.Voice, noRollback bool) outcome {
	success := outcome{ok: true, state: state{true, newVoice}}
	unchanged := state{false, old}
	repeatHelps := !always && !f.final
	settled := f.effect && !f.cancels // it had its effect, and the caller still waits
	switch {
	case repeatHelps:
		return success
	case request == getHead || request == getVisual:
		return outcome{step: heads.StepCheck, state: unchanged}
	case request == putVoice && settled:
		return success
	case request == putVoice && !f.effect:
		return outcome{step: heads.StepVoice, done: stepNames("check"), state: unchanged}
	case request == putVoice && noRollback:
		return outcome{step: heads.StepVoice, done: stepNames("check"), state: state{false, newVoice}}
	case request == putVoice:
		return outcome{step: heads.StepVoice, done: stepNames("check"), state: unchanged, rolledBack: true}
	case request == putSwitch && f.effect:
		return success
	case request == putSwitch && noRollback:
		return outcome{step: heads.StepEnable, done: stepNames("check voice"), state: state{false, newVoice}}
	case request == putSwitch:
		return outcome{step: heads.StepEnable, done: stepNames("check voice"), state: unchanged, rolledBack: true}
	default: // the switch was accepted, but no read could confirm it
		return outcome{step: heads.StepEnable, done: stepNames("check voice"), state: state{true, newVoice}}
	}
}

// reason returns the reason of a conversion that failed under a fault.
func (o outcome) reason(f fault) heads.Reason {
	switch {
	case o.step == heads.StepEnable && o.streaming:
		return heads.ReasonUnknownOutcome
	case f.final && !f.cancels || f.name == "refused repeat":
		return heads.ReasonRefused
	}
	return heads.ReasonTemporary
}

func stepNames(list string) []heads.StepName {
	var names []heads.StepName
	for _, name := range strings.Fields(list) {
		names = append(names, heads.StepName(name))
	}
	return names
}

func namesOf(steps []heads.ConversionStep) []heads.StepName {
	var names []heads.StepName
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return names
}

// convertUnder runs one conversion to the new voice under the faults of its world.
// It checks what must hold however the conversion ends.
func convertUnder(t *testing.T, w *conversionWorld, old heads.Voice, o heads.ConvertOptions) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.cancel = cancel
	o.Voice = &newVoice
	var told []heads.ConversionStep
	o.OnStep = func(step heads.ConversionStep) {
		if !step.Waiting {
			told = append(told, step)
		}
	}
	conversion, err := w.client().Heads.ConvertToStreaming(ctx, convertID, o)
	left := w.state(t)
	if err == nil {
		assert.Equal(t, state{true, newVoice}, left)
		assert.Equal(t, streamURL, conversion.After.Reveal())
		assert.Equal(t, stepNames("check voice enable address"), namesOf(conversion.Steps))
		assert.Equal(t, told, conversion.Steps)
		return nil
	}
	assert.Nil(t, conversion)
	failure := heads.As[*heads.ConversionError](t, err)
	assert.Equal(t, told, failure.Done)
	assert.Contains(t, []heads.Voice{old, newVoice}, left.voice)
	if left.streaming {
		assert.Equal(t, newVoice, left.voice, "the voice of a head that streams can stream")
	}
	if left.voice == newVoice {
		assert.Regexp(t, "the head has the new voice|the old voice was not put back", err.Error())
	}
	if failure.RolledBack {
		assert.Equal(t, old, left.voice)
		assert.NoError(t, failure.RollbackErr)
		assert.Contains(t, err.Error(), "; the old voice was put back")
	}
	return err
}

// convertAgain runs a conversion of the same head without faults.
func convertAgain(t *testing.T, w *conversionWorld) {
	t.Helper()
	before := w.state(t)
	w.faults, w.stale, w.sent = nil, 0, nil
	conversion := heads.Must(w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice}))(t)
	assert.Equal(t, before.streaming, conversion.AlreadyStreaming)
	assert.Equal(t, streamURL, conversion.After.Reveal())
	assert.Equal(t, state{true, newVoice}, w.state(t))
}

func TestConversionUnderFaults(t *testing.T) {
	t.Parallel()
	variants := []struct {
		name       string
		old        heads.Voice
		noRollback bool
		stale      int
	}{
		{"voice that can't stream", muteVoice, false, 0},
		{"voice that can stream", capableVoice, false, 0},
		{"without rollback", capableVoice, true, 0},
		{"same voice of another provider", heads.Voice{Provider: "azure", ID: newVoice.ID}, false, 0},
		{"other voice of the same provider", heads.Voice{Provider: newVoice.Provider, ID: "rachel"}, false, 0},
		{"slow to show a change", capableVoice, false, 3},
	}
	tried := 0
	for _, v := range variants {
		for _, request := range []string{getHead, getVisual, putVoice, putSwitch, readBack} {
			for _, f := range faults {
				for _, always := range []bool{false, true} {
					if tried++; !exhaustive.Takes(tried, 3) {
						continue
					}
					name := fmt.Sprintf("%s/%s/%s/always %t", v.name, request, f.name, always)
					heads.Bubble(t, name, func(t *testing.T) {
						w := newConversionWorld(t, headWith(v.old))
						w.faults[request] = spoiling{f, 1}
						if always {
							w.faults[request] = spoiling{f, -1}
						}
						w.stale = v.stale
						want := outcomeOf(request, f, always, v.old, v.noRollback)
						err := convertUnder(t, w, v.old, heads.ConvertOptions{NoRollback: v.noRollback})
						assert.Contains(t, w.sent, request)
						assert.Equal(t, want.state, w.state(t))
						if want.ok {
							require.NoError(t, err)
						} else {
							requireFailure(t, err, f, want)
						}
						convertAgain(t, w)
					})
				}
			}
		}
	}
}

func requireFailure(t *testing.T, err error, f fault, want outcome) {
	t.Helper()
	failure := heads.As[*heads.ConversionError](t, err)
	assert.Equal(t, convertID, failure.HeadID)
	assert.Equal(t, want.step, failure.Step)
	assert.Equal(t, want.done, namesOf(failure.Done))
	assert.Equal(t, want.rolledBack, failure.RolledBack)
	assert.Equal(t, want.reason(f), failure.Reason)
	assert.NoError(t, failure.RollbackErr)
	assert.Contains(t, err.Error(), fmt.Sprintf("stopped at step %q", want.step))
	for _, step := range want.done {
		assert.Contains(t, err.Error(), string(step))
	}
	if want.voice != newVoice {
		assert.NotContains(t, err.Error(), "the head has the new voice")
	}
	if f.cancels {
		assert.ErrorIs(t, err, context.Canceled)
	}
	var last *heads.Error
	if f.code != 0 && assert.ErrorAs(t, err, &last) {
		assert.Equal(t, f.code, last.StatusCode)
	}
}

// Requests after a first fault can fail too: the reads that settle it, the
// rollback, the switch.
func TestConversionUnderTwoFaults(t *testing.T) {
	t.Parallel()
	pairs := [][2]string{
		{putVoice, checkVoice}, {putVoice, putSwitch}, {putVoice, putBack},
		{putSwitch, readBack}, {putSwitch, putBack},
	}
	tried := 0
	for _, pair := range pairs {
		for _, first := range faults {
			for _, second := range faults {
				if tried++; !exhaustive.Takes(tried, 5) {
					continue
				}
				heads.Bubble(t, fmt.Sprintf("%s %s/%s %s", pair[0], first.name, pair[1], second.name), func(t *testing.T) {
					w := newConversionWorld(t, headWith(capableVoice))
					w.faults[pair[0]] = spoiling{first, -1}
					w.faults[pair[1]] = spoiling{second, -1}
					_ = convertUnder(t, w, capableVoice, heads.ConvertOptions{})
					convertAgain(t, w)
				})
			}
		}
	}
}

// The switch is refused, and what the head is then forbids to restore the voice.
func TestRollbackLeavesAHeadThatIsNotAsItWasLeft(t *testing.T) {
	streams := fmt.Sprintf(`{"id":%q,"videoStreaming":true,"splitter":false,"publicUrl":%q}`, convertID, streamURL)
	for name, row := range map[string]struct {
		refused fault
		reads   spoiling
		theirs  *heads.Voice // set by another program
		says    string
		want    state
	}{
		"switched by somebody else":              {refused: after("", status(409)), says: "streams now", want: state{true, newVoice}},
		"not allowed, switched by somebody else": {refused: after("", status(403)), says: "streams now", want: state{true, newVoice}},
		"can't be read":                          {refused: before("", status(422)), reads: spoiling{before("", status(403)), -1}, says: "the head could not be read", want: state{false, newVoice}},
		"another voice": {refused: before("", status(422)), theirs: &capableVoice, want: state{false, capableVoice},
			says: `the head now has voice "en-GB-SoniaNeural" of "azure", which this conversion did not set`},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[putSwitch], w.faults[readBack] = spoiling{row.refused, -1}, row.reads
			if row.refused.effect {
				w.answers[readBack] = streams
			}
			o := heads.ConvertOptions{Voice: &newVoice, OnStep: w.onVoice(func() {
				if row.theirs != nil {
					w.setVoice(t, *row.theirs)
				}
			})}
			_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, o)
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepEnable, failure.Step)
			assert.False(t, failure.RolledBack)
			assert.ErrorContains(t, failure.RollbackErr, row.says)
			assert.ErrorContains(t, err, "; the old voice was not put back: ")
			assert.NotContains(t, w.sent, putBack)
			assert.Equal(t, row.want, w.state(t))
			w.answers = nil
			convertAgain(t, w)
		})
	}
}

func TestRollbackIsSettledByReading(t *testing.T) {
	proxied := []fault{before("a proxy's 200 before the effect", status(200)), after("a proxy's 200 after the effect", status(200))}
	for _, f := range append(proxied, faults...) {
		heads.Bubble(t, f.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[putSwitch] = spoiling{before("", status(422)), -1}
			w.faults[putBack] = spoiling{f, -1}
			err := convertUnder(t, w, muteVoice, heads.ConvertOptions{})
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, f.effect, failure.RolledBack)
			assert.Equal(t, f.effect, failure.RollbackErr == nil)
			assert.Equal(t, f.effect, w.state(t).voice == muteVoice)
			assert.ErrorIs(t, err, heads.ErrUnprocessable, "what stopped the conversion comes first")
			if !f.effect {
				assert.Contains(t, err.Error(), "; the old voice was not put back: ")
			}
			if f.final && !f.cancels {
				assert.Equal(t, putBack, w.sent[len(w.sent)-1], "a refusal is not read again")
			}
		})
	}
}

func TestConversionIsRolledBackWhenTheContextHasEnded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		spoil   map[string]fault
		during  time.Duration // of the caller's context; 0: cancelled at once after the voice
		within  time.Duration
		reasons []error
	}{
		{"cancelled between the steps", nil, 0, time.Second, []error{context.Canceled}},
		{"deadline during the switch", map[string]fault{putSwitch: before("", stall)}, 5 * time.Second, 7 * time.Second, []error{context.DeadlineExceeded}},
		{"deadline during the repeats", map[string]fault{putSwitch: before("", status(503))}, 50 * time.Millisecond, 2 * time.Second, []error{heads.ErrServer}},
		{"deadline during the update", map[string]fault{putVoice: after("", stall)}, 5 * time.Second, 6 * time.Second, []error{context.DeadlineExceeded}},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			for request, f := range tt.spoil {
				w.faults[request] = spoiling{f, -1}
			}
			ctx, cancel := context.WithCancel(t.Context())
			o := heads.ConvertOptions{Voice: &newVoice}
			if tt.during > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), tt.during)
			} else {
				o.OnStep = func(step heads.ConversionStep) {
					if step.Name == heads.StepVoice {
						cancel()
					}
				}
			}
			defer cancel()
			start := time.Now()
			_, err := w.client().Heads.ConvertToStreaming(ctx, convertID, o)
			failure := heads.As[*heads.ConversionError](t, err)
			assert.True(t, failure.RolledBack, err)
			assert.Equal(t, state{false, muteVoice}, w.state(t))
			assert.LessOrEqual(t, time.Since(start), tt.within)
			for _, reason := range tt.reasons {
				assert.ErrorIs(t, err, reason)
			}
		})
	}
}

// A conversion may be cancelled at any point of its time, not only between requests.
// The head is then as it was, or converted, never in between; the error says which, and
// a second run ends the work.
func TestConversionCancelledAtAnyPointLeavesNothingHalfDone(t *testing.T) {
	const points, whole = 60, 500 * time.Millisecond // five requests
	convert := func(t *testing.T, late bool, after time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.Inject(headstest.Fault{Latency: whole / 5, After: late})
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := w.client().Heads.ConvertToStreaming(ctx, convertID, heads.ConvertOptions{Voice: &newVoice})
			now := w.state(t)
			switch {
			case err == nil || after > whole:
				require.NoError(t, err)
				assert.Equal(t, state{true, newVoice}, now)
				return
			case now == state{true, newVoice}:
				assert.Equal(t, heads.ReasonUnknownOutcome, reasonOf(t, err))
			default:
				assert.Equal(t, state{false, muteVoice}, now)
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			convertAgain(t, w)
		})
	}
	for _, late := range []bool{false, true} {
		convert(t, late, whole+1)
		for i := range points {
			at := whole * time.Duration(2*i+1) / (2 * points)
			t.Run(fmt.Sprintf("after %v, effects late %t", at, !late), func(t *testing.T) { convert(t, late, at) })
		}
	}
}

func TestCancelledConversionReturnsWithinSettleTimeout(t *testing.T) {
	leaves := cancelling(before("", leave))
	for _, tt := range []struct {
		name   string
		leaves string // the caller, during this request
		hangs  string // every time
		settle time.Duration
		within time.Duration
	}{
		{"settling the voice", putVoice, checkVoice, 0, 10 * time.Second},
		{"settling the switch", putSwitch, readBack, 0, 10 * time.Second},
		{"rollback", putSwitch, putBack, 0, 10 * time.Second},
		{"reading after the switch", readBack, readBack, 0, 0},
		{"less", putSwitch, readBack, time.Second, time.Second},
		{"less for settling and rollback together", putSwitch, putBack, 3 * time.Second, 3 * time.Second},
		{"more", putSwitch, putBack, time.Minute, time.Minute},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[tt.hangs] = spoiling{before("", stall), -1}
			w.faults[tt.leaves] = spoiling{leaves, 1}
			start := time.Now()
			require.ErrorIs(t, convertUnder(t, w, muteVoice, heads.ConvertOptions{SettleTimeout: tt.settle}), context.Canceled)
			assert.LessOrEqual(t, time.Since(start), tt.within)
			convertAgain(t, w)
		})
	}
}

func TestCancelledConversionToLegacyReturnsWithinTheDefaultSettleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, streamingHead())
		w.faults[putSwitch] = spoiling{before("", stall), -1}
		w.faults[readBack] = spoiling{before("", stall), -1}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := w.client().Heads.ConvertToLegacy(ctx, convertID, heads.ConvertOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, heads.ReasonUnknownOutcome, reasonOf(t, err))
		assert.LessOrEqual(t, time.Since(start), 11*time.Second)
	})
}

func TestOnStepIsCalledBeforeEveryFurtherRead(t *testing.T) {
	lost := map[string]fault{putVoice: after("", status(500)), putSwitch: after("", status(500)), putBack: after("", status(500))}
	for _, tt := range []struct {
		name  string
		fault string // its answer is lost
		stale int
		heard string
	}{
		{"no wait", "", 0, "check voice enable address"},
		{"slow switch", "", 3, "check voice enable... enable... enable... enable address"},
		{"lost switch, slow to show", putSwitch, 2, "check voice enable... enable... enable address"},
		{"lost switch that is never shown", putSwitch, 100, "check voice enable... enable... enable..."},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.stale = tt.stale
			if tt.fault != "" {
				w.faults[tt.fault] = spoiling{lost[tt.fault], -1}
			}
			var heard []string
			var told []heads.ConversionStep
			o := heads.ConvertOptions{Voice: &newVoice, OnStep: func(step heads.ConversionStep) {
				if !step.Waiting {
					heard = append(heard, string(step.Name))
					told = append(told, step)
					return
				}
				heard = append(heard, string(step.Name)+"...")
				assert.Contains(t, step.Detail, "reading it again in ")
			}}
			conversion, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, o)
			assert.Equal(t, strings.Fields(tt.heard), heard)
			var failure *heads.ConversionError
			if errors.As(err, &failure) {
				assert.Equal(t, told, failure.Done, "without waits")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, told, conversion.Steps, "without waits")
		})
	}
}

func TestConfirmTimeoutLimitsTheReadsAfterASwitch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		confirm time.Duration
		hangs   int // reads; below 0: all
		reads   int
		takes   time.Duration
	}{
		{"default", 0, 0, 10, 24750 * time.Millisecond},
		{"shorter", 3 * time.Second, 0, 5, 2750 * time.Millisecond},
		{"one read", time.Millisecond, 0, 1, 0},
		{"longer", time.Minute, 0, 17, 59750 * time.Millisecond},
		{"reads that hang", 0, -1, 3, 24750 * time.Millisecond},
		{"reads that hang for a while", 3 * time.Second, -1, 1, 3 * time.Second},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.stale = 1000
			w.faults[readBack] = spoiling{before("", stall), tt.hangs}
			start := time.Now()
			err := convertUnder(t, w, muteVoice, heads.ConvertOptions{ConfirmTimeout: tt.confirm})
			assert.Equal(t, heads.ReasonUnknownOutcome, reasonOf(t, err))
			assert.Equal(t, tt.takes, time.Since(start))
			assert.Equal(t, slices.Repeat([]string{readBack}, tt.reads), w.sent[4:], "an accepted switch is not rolled back")
			if tt.hangs == 0 {
				assert.ErrorContains(t, err, fmt.Sprintf("the switch was accepted, but after %v the head does not show it yet; run the conversion again later", cmp.Or(tt.confirm, 25*time.Second)))
			}
			convertAgain(t, w)
		})
	}
}

func TestReadsGoOnAfterATemporaryFailure(t *testing.T) {
	for _, f := range []fault{before("hangs", stall), before("503", status(503)), before("cut", hangUp)} {
		heads.Bubble(t, f.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[readBack] = spoiling{f, 5} // more often than one call is retried
			if f.name == "hangs" {
				w.faults[readBack] = spoiling{f, 2}
			}
			assert.NoError(t, convertUnder(t, w, muteVoice, heads.ConvertOptions{}))
		})
	}
}

// onVoice returns an OnStep that calls do after the voice step.
func (w *conversionWorld) onVoice(do func()) func(heads.ConversionStep) {
	return func(step heads.ConversionStep) {
		if step.Name == heads.StepVoice {
			do()
		}
	}
}

func TestConversionWithAVoiceSucceedsOnlyIfTheHeadStreamsWithIt(t *testing.T) {
	for name, old := range map[string]heads.Voice{"voice changed": muteVoice, "voice kept": newVoice} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(old))
			o := heads.ConvertOptions{Voice: &newVoice, OnStep: w.onVoice(func() { w.setVoice(t, capableVoice) })}
			_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, o)
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepEnable, failure.Step)
			assert.Equal(t, heads.ReasonUnknownOutcome, failure.Reason)
			assert.ErrorContains(t, err, `the head has voice "en-GB-SoniaNeural" of "azure", not "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5" of "elevenlabs"`)
			assert.NotContains(t, err.Error(), "the head has the new voice")
			assert.NotContains(t, w.sent, putBack)
			assert.Equal(t, state{true, capableVoice}, w.state(t))
			convertAgain(t, w)
		})
	}
}

func TestConversionWithoutAVoiceAcceptsAnyVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(newVoice))
		_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{OnStep: w.onVoice(func() { w.setVoice(t, capableVoice) })})
		assert.NoError(t, err)
	})
}

func TestPanicInOnStepRestoresTheOldVoiceAndContinues(t *testing.T) {
	for _, tt := range []struct {
		name       string
		at         string // the step, with "..." while it waits
		noRollback bool
		theirs     bool // another program has set another voice
		want       state
	}{
		{"before the voice", "check", false, false, state{false, muteVoice}},
		{"after the voice", "voice", false, false, state{false, muteVoice}},
		{"after the voice, without rollback", "voice", true, false, state{false, newVoice}},
		{"after the voice, with a voice of somebody else", "voice", false, true, state{false, capableVoice}},
		{"after the voice, with a rollback that waits", "voice", false, false, state{false, muteVoice}},
		{"waiting for a voice whose answer was lost", "voice...", false, false, state{false, muteVoice}},
		{"waiting for a switch whose answer was lost", "enable...", false, false, state{true, newVoice}},
		{"after the switch", "enable", false, false, state{true, newVoice}},
		{"at the end", "address", false, false, state{true, newVoice}},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(muteVoice))
			w.faults[putSwitch] = spoiling{after("", hangUp), 4}
			w.stale = 1
			if tt.at == "voice..." {
				w.faults[putVoice] = spoiling{after("", hangUp), 4}
				w.faults[checkVoice] = spoiling{before("", status(503)), 4}
			}
			if strings.HasSuffix(tt.name, "that waits") {
				w.faults[putBack] = spoiling{fault{strike: func(w *conversionWorld, r *http.Request) (*http.Response, error) {
					w.faults[checkVoice] = spoiling{before("", status(503)), 4}
					return after("", hangUp).strike(w, r)
				}}, 4}
			}
			panicked := false
			o := heads.ConvertOptions{Voice: &newVoice, NoRollback: tt.noRollback, OnStep: func(step heads.ConversionStep) {
				assert.False(t, panicked, "it is not called again")
				name := string(step.Name)
				if step.Waiting {
					name += "..."
				}
				if name == tt.at {
					if tt.theirs {
						w.setVoice(t, capableVoice)
					}
					panicked = true
					panic("of OnStep")
				}
			}}
			client := w.client()
			assert.PanicsWithValue(t, "of OnStep", func() {
				_, _ = client.Heads.ConvertToStreaming(t.Context(), convertID, o)
			})
			assert.Equal(t, tt.want, w.state(t))
			w.faults, w.stale, w.sent = nil, 0, nil
			_, err := client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice})
			assert.NoError(t, err, "the turn has ended")
		})
	}
}

func TestGoexitInOnStepRestoresTheOldVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(muteVoice))
		client := w.client()
		var ended sync.WaitGroup
		ended.Go(func() {
			_, _ = client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice, OnStep: w.onVoice(runtime.Goexit)})
		})
		ended.Wait()
		assert.Equal(t, state{false, muteVoice}, w.state(t))
	})
}

// reasonOf returns the reason of a ConversionError.
func reasonOf(t *testing.T, err error) heads.Reason {
	t.Helper()
	failure := heads.As[*heads.ConversionError](t, err)
	return failure.Reason
}

func TestWaitForTheHeadEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(muteVoice))
		w.stale = 1000
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := w.client().Heads.ConvertToStreaming(ctx, convertID, heads.ConvertOptions{Voice: &newVoice})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "the switch was accepted")
		assert.Equal(t, time.Second, time.Since(start))
		assert.Equal(t, state{true, newVoice}, w.state(t))
	})
}

func TestRefusedSwitchIsNotRolledBackWhenNothingWasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(newVoice))
		w.faults[putSwitch] = spoiling{before("", status(422)), -1}
		_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
		failure := heads.As[*heads.ConversionError](t, err)
		assert.False(t, failure.RolledBack)
		assert.Equal(t, []string{getHead, getVisual, putSwitch}, w.sent)
		assert.NotContains(t, err.Error(), "old voice")
		assert.NotContains(t, err.Error(), "new voice")
		assert.Contains(t, err.Error(), "(done: check, voice skipped)")
	})
}

func TestConversionsOfOneHeadTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(muteVoice))
		w.Inject(headstest.Fault{Latency: time.Second})
		client := w.world.client()
		var converted atomic.Int32
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				conversion, err := client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice})
				if assert.NoError(t, err) && !conversion.AlreadyStreaming {
					converted.Add(1)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, converted.Load())
		assert.Len(t, w.Requests(), 5+4, "five for the first, one for each of the others")
	})
}

func TestConversionWaitsForItsTurnNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(muteVoice))
		client := w.client()
		_, err := client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice, OnStep: func(step heads.ConversionStep) {
			if step.Name != heads.StepCheck {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := client.Heads.ConvertToLegacy(ctx, convertID, heads.ConvertOptions{})
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, heads.StepCheck, failure.Step)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}})
		assert.NoError(t, err)
	})
}

func TestNewAccessURLOfAConversion(t *testing.T) {
	const other = "https://live.example.com"
	quoted := func(format string, address string) string { return fmt.Sprintf(format, address) }
	found := other + publicPath + "?api_key=" + convertKey
	for _, tt := range []struct {
		name   string
		answer string // to the switch
		stale  bool   // publicUrl stays as it was
		base   string // of WithAccessBases
		want   string // "" for none
	}{
		{"of the answer, a record", quoted(`{"id":"x","videoStreaming":true,"publicUrl":%q}`, found), false, "", found},
		{"of the answer, deep inside", quoted(`{"data":[1,null,{"links":["a",{"b":%q}]}]}`, found), false, "", found},
		{"of the answer, escaped", `"` + strings.ReplaceAll(found, "/", `\/`) + `"`, false, "", found},
		{"of the answer, a text", quoted(" %q\n", found), false, "", found},
		{"of the answer, not JSON", found + "\n", false, "", found},
		{"of the answer, another key", `"` + other + publicPath + `?api_key=fresh"`, false, "", other + publicPath + "?api_key=fresh"},
		{"of the answer before the configured one", quoted("%q", found), true, "https://mine.example.com", found},
		{"of the answer beside the old one", quoted(`{"from":"`+legacyURL+`","to":%q}`, found), true, "", found},
		{"of the head, answer empty", "", false, "", streamURL},
		{"of the head, answer true", "true", false, "", streamURL},
		{"of the head, answer no JSON", "<html>" + found, false, "", streamURL},
		{"of the head, answer broken", `{"publicUrl":"` + found, false, "", streamURL},
		{"of the head, answer with another head's", `"` + other + `/MyOrg-1234/li-99?api_key=k"`, false, "", streamURL},
		{"of the head, answer with another organisation's", `"` + other + `/Other-1/li-28379?api_key=k"`, false, "", streamURL},
		{"of the head, answer with the old one", quoted(`{"publicUrl":%q}`, legacyURL), false, "", streamURL},
		{"of the head, answer without the key", `"` + other + publicPath + `"`, false, "", streamURL},
		{"of the head before the configured one", "", false, "https://mine.example.com", streamURL},
		{"the old one at the configured base", "", true, "https://mine.example.com/live", "https://mine.example.com/live" + publicPath + "?api_key=" + convertKey},
		{"the old one at a base in plain http", "", true, "http://mine.example.com", "http://mine.example.com" + publicPath + "?api_key=" + convertKey},
		{"the old one at the same base", "", true, chatBase, legacyURL},
		{"none", "", true, "", ""},
		{"none, answer with the old one", quoted("%q", legacyURL), true, "", ""},
	} {
		heads.Bubble(t, tt.name, func(t *testing.T) {
			var opts []headstest.Option
			if tt.stale {
				opts = append(opts, headstest.WithStaleAddresses())
			}
			w := newConversionWorld(t, headWith(newVoice), opts...)
			w.answers[putSwitch] = tt.answer
			client := w.client()
			if tt.base != "" {
				client = w.client(heads.WithAccessBases("", tt.base), heads.WithInsecureHTTP())
			}
			conversion, err := client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
			require.NotNil(t, conversion, err)
			assert.Equal(t, legacyURL, conversion.Before.Reveal())
			assert.Equal(t, convertID, conversion.HeadID)
			assert.True(t, w.state(t).streaming)
			if tt.want == "" {
				assertAddressMissing(t, conversion, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, conversion.After.Reveal())
		})
	}
}

// The conversion has succeeded except for its access URL, and the error says so.
func assertAddressMissing(t *testing.T, conversion *heads.Conversion, err error) {
	t.Helper()
	failure := heads.As[*heads.ConversionError](t, err)
	assert.Equal(t, heads.StepAddress, failure.Step)
	assert.Equal(t, stepNames("check voice enable"), namesOf(failure.Done))
	assert.Equal(t, stepNames("check voice enable"), namesOf(conversion.Steps))
	assert.Zero(t, conversion.After)
	assert.True(t, failure.Accepted, "the head shows it")
	assert.False(t, failure.RolledBack)
	shown, parseErr := heads.ParseAccessURL(legacyURL)
	require.NoError(t, parseErr)
	for _, text := range []string{"the mode was switched", "the head shows " + shown.String(), "the base of the access URLs", "HEADS_STREAM_URL"} {
		assert.ErrorContains(t, err, text)
	}
}

// A proxy that is under maintenance answers 200 with a page of its own.
func TestVoiceThatAProxyAnsweredIsReadBackBeforeTheSwitch(t *testing.T) {
	heads.Bubble(t, "without effect", func(t *testing.T) {
		w := newConversionWorld(t, headWith(capableVoice))
		w.faults[putVoice] = spoiling{before("", status(200)), -1}
		err := convertUnder(t, w, capableVoice, heads.ConvertOptions{})
		failure := heads.As[*heads.ConversionError](t, err)
		assert.Equal(t, heads.StepVoice, failure.Step)
		assert.Equal(t, heads.ReasonUnknownOutcome, failure.Reason)
		assert.ErrorContains(t, err, "a follow-up read shows that the head does not have the new voice")
		assert.NotContains(t, w.sent, putSwitch)
		assert.Equal(t, state{false, capableVoice}, w.state(t))
		convertAgain(t, w)
	})
	heads.Bubble(t, "with effect", func(t *testing.T) {
		w := newConversionWorld(t, headWith(capableVoice))
		w.faults[putVoice] = spoiling{after("", status(200)), -1}
		assert.NoError(t, convertUnder(t, w, capableVoice, heads.ConvertOptions{}))
	})
}

// A second run must not take the access URL that the head still shows after the
// switch for the new one.
func TestSecondRunDoesNotReturnTheOldAccessURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(capableVoice), headstest.WithStaleAddresses())
		client := w.client().Heads
		for run := range 3 {
			conversion, err := client.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
			failure := heads.As[*heads.ConversionError](t, err)
			assert.Equal(t, run == 0, failure.Accepted, "later runs send no switch")
			assert.Equal(t, run > 0, conversion.AlreadyStreaming)
			assert.Equal(t, heads.StepAddress, failure.Step)
			assert.ErrorContains(t, err, "HEADS_STREAM_URL")
			assert.Zero(t, conversion.After)
		}
		w.answers[readBack] = fmt.Sprintf(`{"id":%q,"videoStreaming":true,"publicUrl":%q}`, convertID, streamURL)
		w.answers[getHead] = w.answers[readBack]
		conversion := heads.Must(client.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{}))(t)
		assert.Equal(t, streamURL, conversion.After.Reveal(), "the head shows it by now")
	})
}

func TestErrorOfAMissingAccessURLSaysWhatTheHeadShows(t *testing.T) {
	const other = "https://stream.example.com/Other-1/li-99?api_key=fresh"
	for name, row := range map[string]struct{ shown, want string }{
		"another head's": {other, "but the head shows https://stream.example.com/Other-1/li-99?api_key=[redacted], which is not " +
			chatBase + publicPath + "?api_key=[redacted] at another base; run the conversion again if that is the new access URL, or give the base"},
		"none that can be read": {"https://stream.example.com/Other-1", "shows the new access URL (heads: AccessURL: publicUrl of head"},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(capableVoice))
			w.answers[readBack] = fmt.Sprintf(`{"id":%q,"videoStreaming":true,"publicUrl":%q}`, convertID, row.shown)
			_, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
			require.ErrorContains(t, err, row.want)
			assert.Equal(t, heads.ReasonAddress, reasonOf(t, err))
			assert.NotContains(t, err.Error(), "fresh")
		})
	}
}

// The access URL from before a switch is the right one after the way back.
func TestOldAccessURLIsRightAfterTheWayBack(t *testing.T) {
	for name, back := range map[string]func(*testing.T, *conversionWorld, *heads.HeadsService){
		"by this client": func(t *testing.T, _ *conversionWorld, client *heads.HeadsService) {
			_, err := client.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
			require.NoError(t, err, "the head shows the new one by now")
			heads.Must(client.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{}))(t)
		},
		"by another program": func(t *testing.T, w *conversionWorld, _ *heads.HeadsService) {
			require.NoError(t, w.world.client().Heads.SetVideoStreaming(t.Context(), convertID, false))
		},
	} {
		heads.Bubble(t, name, func(t *testing.T) {
			w := newConversionWorld(t, headWith(capableVoice))
			client := w.client().Heads
			w.answers[readBack] = fmt.Sprintf(`{"id":%q,"videoStreaming":true,"publicUrl":%q}`, convertID, legacyURL)
			_, err := client.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{})
			require.ErrorContains(t, err, "neither the answer nor the head shows the new access URL")
			delete(w.answers, readBack)
			back(t, w, client)
			conversion := heads.Must(client.ConvertToLegacy(t.Context(), convertID, heads.ConvertOptions{}))(t)
			assert.Equal(t, legacyURL, conversion.After.Reveal())
		})
	}
}

// Once the client has the base URL, a second run returns the access URL that the
// first run missed.
func TestSecondRunFindsTheMissingAccessURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newConversionWorld(t, headWith(muteVoice), headstest.WithStaleAddresses())
		first, err := w.client().Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice})
		assertAddressMissing(t, first, err)
		client := w.client(heads.WithAccessBases("", streamBase))
		second := heads.Must(client.Heads.ConvertToStreaming(t.Context(), convertID, heads.ConvertOptions{Voice: &newVoice}))(t)
		assert.True(t, second.AlreadyStreaming)
		assert.Equal(t, streamURL, second.After.Reveal())
	})
}
