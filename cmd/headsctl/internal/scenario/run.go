package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// run runs a scenario once.
func run(ctx context.Context, s *Scenario, seed uint64, repeat int, processes *Processes, stays *listener) Result {
	result := Result{File: s.File, Line: s.Line, Name: s.Name, Outcome: Passed}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("the scenario takes longer than its timeout of %v", s.timeout))
	defer cancel()
	w, err := newWorld(ctx, s, newChance(seed, s, repeat), processes, stays)
	var at *step
	if err == nil {
		err = w.begin(ctx)
	}
	if err == nil {
		at, err = w.steps(ctx)
	}
	if err != nil {
		result.Outcome, result.Failure = Failed, w.failure(at, err)
	}
	w.close()
	result.Duration = time.Since(began)
	return result
}

// begin starts the back end, or waits for one that runs.
func (w *world) begin(ctx context.Context) error {
	if w.s.backend.start != nil {
		return w.backend.start(ctx)
	}
	if w.s.backend.ready != nil {
		return w.backend.waitReady(ctx)
	}
	return nil
}

// steps takes the steps and returns the one that has failed.
func (w *world) steps(ctx context.Context) (*step, error) {
	for _, st := range w.s.steps {
		if err := w.take(ctx, st); err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.As(err, new(*problem)) {
				err = cause
			}
			return st, err
		}
	}
	return nil, nil
}

// take takes one step.
func (w *world) take(ctx context.Context, st *step) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	switch st.action {
	case "say", "user":
		return w.user(st)
	case "call":
		return w.call(ctx, st)
	case "http":
		return w.http(ctx, st)
	case "run":
		return w.program(ctx, st)
	case "backend":
		return w.backend.do(ctx, st.arg.Text)
	case "fault":
		return w.fault(st)
	case "wait":
		return sleep(ctx, durationOf(st.arg, 0))
	case "events":
		return w.events(ctx, st)
	case "requests":
		return w.requests(ctx, st)
	case "state":
		return w.state(ctx, st)
	}
	return fmt.Errorf("the action %q is unknown", st.action)
}

const (
	lastDeliveries = 5
	lastRequests   = 5
)

// failure tells what led to the end of a run.
func (w *world) failure(at *step, err error) *Failure {
	f := &Failure{Place: w.s.place(w.s.backend.at), Problem: shown(withoutPlace(err).Error())}
	if errors.Is(err, context.Canceled) {
		f.Problem = "interrupted"
	}
	if at != nil {
		f.Place = w.s.place(at.Value)
		f.Step = &Step{Number: at.number, Action: at.action, Line: at.Line, Column: at.Column}
	}
	var p *problem
	if errors.As(err, &p) {
		f.Expected, f.Actual = p.expected, p.actual
	}
	if w.backend != nil {
		if crashed := w.backend.crashed(); crashed != "" && !errors.Is(err, errNotReady) {
			f.Problem += "; " + crashed
		}
	}
	f.Deliveries, f.Requests, f.Output = w.lastDeliveries(), w.lastRequests(), []string{}
	if w.backend != nil {
		f.Output = append(f.Output, w.backend.output.last()...)
	}
	w.hideSecrets(f)
	return f
}

// hideSecrets replaces keys that came from the environment.
func (w *world) hideSecrets(f *Failure) {
	var pairs []string
	for _, secret := range w.secrets {
		pairs = append(pairs, secret, "[redacted]")
	}
	hide := strings.NewReplacer(pairs...).Replace
	f.Problem, f.Expected, f.Actual = hide(f.Problem), hide(f.Expected), hide(f.Actual)
	for _, list := range [][]string{f.Deliveries, f.Requests, f.Output} {
		for i := range list {
			list[i] = hide(list[i])
		}
	}
}

func (w *world) lastDeliveries() []string {
	all := slices.Clone(w.calls)
	for _, d := range w.emulator.Deliveries() {
		text := fmt.Sprintf("%s, session %s, attempt %d: ", d.Event.Type, d.Event.SessionID, d.Attempt)
		if d.Err != nil {
			text += shown(strings.TrimPrefix(d.Err.Error(), "headstest: "))
		} else {
			text += fmt.Sprint(d.Status)
		}
		took := d.Duration - w.gate.held(d.At, d.Duration)
		all = append(all, happened{d.At, text + " in " + roundTime(took).String()})
	}
	slices.SortStableFunc(all, func(a, b happened) int { return a.at.Compare(b.at) })
	texts := []string{}
	for _, h := range all[max(len(all)-lastDeliveries, 0):] {
		texts = append(texts, h.text)
	}
	return texts
}

func (w *world) lastRequests() []string {
	all := w.emulator.Requests()
	texts := []string{}
	for _, r := range all[max(len(all)-lastRequests, 0):] {
		texts = append(texts, fmt.Sprintf("%s %s: %d", shown(r.Method), shown(r.Path), r.Status))
	}
	return texts
}
