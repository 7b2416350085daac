package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
)

// pace is how fast a command works on many heads.
type pace struct {
	jobs int
	rate float64
}

func (p *pace) add(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&p.jobs, "jobs", "j", 4, "work on `N` heads at a time")
	cmd.Flags().Float64Var(&p.rate, "rate", 0, "send at most `N` requests a second (default: no limit)")
	checkBefore(cmd, func() error {
		switch {
		case p.jobs < 1:
			return usage("-j must be 1 or more")
		case cmd.Flags().Changed("rate") && !(p.rate > 0 && p.rate <= math.MaxInt32): // NaN too
			return usage("--rate must be a number above 0; leave it out for no limit")
		}
		return nil
	})
}

func (p *pace) options() []heads.Option {
	if p.rate == 0 {
		return nil
	}
	return []heads.Option{heads.WithRateLimit(p.rate, 1)}
}

// targetsAndClient returns the heads of a command that reads many of them, and a client.
func (a *app) targetsAndClient(cmd *cobra.Command, from targetFlags, p pace, args []string) ([]target, *heads.Client, error) {
	targets, err := a.targets(cmd, from, args)
	if err != nil {
		return nil, nil, err
	}
	c, err := a.client(p.options()...)
	return targets, c, err
}

// forEach calls f for every head, several at a time, and returns the results in the order of
// the heads. It prints the failures in the end; the error has the exit code.
func forEach[In, Out any](a *app, ctx context.Context, verb string, all []In, jobs int, f func(In) (Out, error)) ([]Out, error) {
	results, errs := make([]Out, len(all)), make([]error, len(all))
	bar := console.NewProgress(a.stdout, a.stderr, verb, len(all))
	places := make(chan struct{}, jobs)
	var group sync.WaitGroup
	var refused atomic.Pointer[error] // the first answer that refused the token; all others would
	for i, one := range all {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			errs[i] = ctx.Err()
			continue
		}
		if refused.Load() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-places }()
			results[i], errs[i] = f(one)
			if errors.Is(errs[i], heads.ErrUnauthorized) {
				refused.CompareAndSwap(nil, &errs[i])
			}
			bar.Done(errs[i] != nil)
		})
	}
	group.Wait()
	bar.Stop()
	if err := ctx.Err(); err != nil {
		return results, fmt.Errorf("not all heads were read: %w", err)
	}
	if first := refused.Load(); first != nil {
		return results, fmt.Errorf("not all heads were read, since the service refused the access token: %w", *first)
	}
	return results, a.failures(errs)
}
