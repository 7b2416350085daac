package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// problem is why a step has failed, with what was expected, if there was something to
// compare.
type problem struct{ text, expected, actual string }

func (p *problem) Error() string { return p.text }

func (m *mismatch) problem() *problem {
	return &problem{strings.TrimSpace(m.where + " " + notAsExpected), m.expected, m.actual}
}

const notAsExpected = "is not as expected"

// verdict is the result of one check of an expectation: nil if it holds. A final one can't
// change any more.
type verdict struct {
	problem *problem
	final   bool
}

var holdsNow = verdict{}

// expanded returns the step with its variables replaced.
func (w *world) expanded(st *step) (*step, error) {
	value, err := w.vars.expand(st.Value)
	if err != nil {
		return nil, withoutPlace(err)
	}
	return &step{Value: value, number: st.number, action: st.action, arg: value.Get(st.action), within: st.within, stays: st.stays}, nil
}

// await checks the expectation of a step until it holds, and then until it has held for the
// required time.
func (w *world) await(ctx context.Context, st *step, look func(context.Context) verdict) error {
	late := fmt.Errorf("no answer within %v", st.within)
	limited, cancel := context.WithTimeoutCause(ctx, st.within, late)
	defer cancel()
	var last *problem
	for pause := firstPause; ; pause = longer(pause) {
		v := look(limited)
		if v.problem == nil {
			break
		}
		if limited.Err() == nil || last == nil {
			last = v.problem
		}
		if v.final {
			return last
		}
		if sleep(limited, pause) != nil {
			if cause := context.Cause(limited); !errors.Is(cause, late) {
				return cause
			}
			return &problem{fmt.Sprintf("%s within %v", last.text, st.within), last.expected, last.actual}
		}
	}
	return w.stays(ctx, st, look)
}

// stays checks until an expectation has held for the required time.
func (w *world) stays(ctx context.Context, st *step, look func(context.Context) verdict) error {
	from := time.Now()
	for pause := firstPause; ; pause = longer(pause) {
		left := st.stays - time.Since(from)
		if left <= 0 {
			return nil
		}
		if err := sleep(ctx, min(pause, left)); err != nil {
			return err
		}
		limited, cancel := context.WithTimeoutCause(ctx, max(st.within, time.Second), fmt.Errorf("no answer within %v", st.within))
		v := look(limited)
		cancel()
		if v.problem != nil {
			after := roundTime(time.Since(from))
			return &problem{fmt.Sprintf("%s any more after %v; it was to stay for %v", v.problem.text, after, st.stays), v.problem.expected, v.problem.actual}
		}
	}
}
