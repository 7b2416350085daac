package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Options are those of Run.
type Options struct {
	Jobs      int // scenarios at a time
	Repeat    int // runs of each scenario
	Seed      uint64
	Again     func(*Scenario) string // the command that runs a scenario again
	OnResult  func(Result)           // called when a scenario ends; calls don't overlap
	Processes *Processes
}

// Run runs the scenarios. When the context ends, those that have begun end, and the
// others are skipped. The error is of an address at which the service can't listen.
func Run(ctx context.Context, all []*Scenario, o Options) (*Summary, error) {
	listeners := map[string]*listener{}
	defer func() {
		for _, l := range listeners {
			l.close()
		}
	}()
	for _, s := range all {
		if address := s.Address(); address != "" && listeners[address] == nil {
			l, err := newListener(address)
			if err != nil {
				return nil, err
			}
			listeners[address] = l
		}
	}
	summary := &Summary{Seed: o.Seed}
	began := time.Now()
	p := pool{Options: o, slots: make(chan struct{}, o.Jobs), summary: summary}
	var work sync.WaitGroup
	for repeat := 1; repeat <= o.Repeat; repeat++ {
		for _, s := range all {
			stays := listeners[s.Address()]
			turn := p.line()
			work.Go(func() { p.run(ctx, s, repeat, stays, turn) })
		}
	}
	work.Wait()
	summary.Duration = time.Since(began)
	return summary, nil
}

// pool runs scenarios, a number of them at a time.
type pool struct {
	Options
	slots   chan struct{}
	last    chan struct{} // closed when the scenario that was put in line last has begun
	mu      sync.Mutex
	summary *Summary
}

// turn is the place of a scenario in the line.
type turn struct{ before, begun chan struct{} }

// line puts a scenario at the end of the line, so that they begin in their order.
func (p *pool) line() turn {
	t := turn{p.last, make(chan struct{})}
	p.last = t.begun
	return t
}

func (p *pool) run(ctx context.Context, s *Scenario, repeat int, stays *listener, t turn) {
	if t.before != nil {
		<-t.before
	}
	free := p.begin(ctx, stays, t)
	if free == nil {
		p.end(Result{File: s.File, Line: s.Line, Name: s.Name, Outcome: Skipped})
		return
	}
	result := run(ctx, s, p.Seed, repeat, p.Processes, stays)
	free()
	if result.Failure != nil {
		result.Again = p.Again(s)
		if repeat > 1 {
			result.Again += fmt.Sprintf(" --repeat %d", repeat)
		}
	}
	p.end(result)
}

// begin waits for a slot, and for the address if the scenario has one. It returns nil
// if the context ends before.
func (p *pool) begin(ctx context.Context, stays *listener, t turn) (free func()) {
	begun := sync.OnceFunc(func() { close(t.begun) })
	defer begun()
	if ctx.Err() != nil {
		return nil
	}
	if stays == nil {
		select {
		case p.slots <- struct{}{}:
			return func() { <-p.slots }
		case <-ctx.Done():
			return nil
		}
	}
	begun() // nobody waits for those of one address
	select {
	case <-stays.turn:
	case <-ctx.Done():
		return nil
	}
	leave := func() {
		stays.serve(nil)
		stays.turn <- struct{}{}
	}
	select {
	case p.slots <- struct{}{}:
		return func() { leave(); <-p.slots }
	case <-ctx.Done():
		leave()
		return nil
	}
}

func (p *pool) end(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.summary.Results = append(p.summary.Results, r)
	p.OnResult(r)
}
