// Package keycachetest has a service that key caches ask in tests.
package keycachetest

import (
	"context"
	"sync"
	"time"
)

// Service holds the keys of heads. Set the exported fields before the first
// question and read them after the last one.
type Service struct {
	Keys  map[string][]string
	Delay time.Duration
	Asked []string // the heads that were asked for
	Once  []string // those of questions without retries
	Most  int      // questions at one time

	mu  sync.Mutex
	err error
	now int
}

// List answers a question.
func (s *Service) List(ctx context.Context, headID string, retry bool) ([]string, error) {
	s.mu.Lock()
	s.Asked = append(s.Asked, headID)
	if !retry {
		s.Once = append(s.Once, headID)
	}
	s.now++
	s.Most = max(s.Most, s.now)
	delay := s.Delay
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.Keys[headID], s.err
}

// Set changes the keys of a head.
func (s *Service) Set(headID string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Keys[headID] = keys
}

// Fail makes every question fail with err, or with nil succeed.
func (s *Service) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Slow makes every question take that long.
func (s *Service) Slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Delay = delay
}

// Count returns how many questions were asked.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Asked)
}
