// Package keycachetest has a fake service for tests of key caches.
package keycachetest

import (
	"context"
	"sync"
	"time"
)

// Service holds the keys of heads. Set the exported fields before the first request
// and read them after the last one.
type Service struct {
	Keys  map[string][]string
	Delay time.Duration
	Asked []string // the heads of all requests
	Once  []string // the heads of requests without retries
	Most  int      // the most concurrent requests

	mu  sync.Mutex
	err error
	now int
}

// List answers a request.
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

// Fail makes every request fail with err, or succeed if err is nil.
func (s *Service) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Slow makes every request take that long.
func (s *Service) Slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Delay = delay
}

// Count returns the number of requests.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Asked)
}
