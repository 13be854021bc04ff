package membership

import (
	"context"
	"slices"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// status is what the Agent's goroutine publishes to callers and to the joiner.
type status struct {
	mu       sync.Mutex
	agreed   *collective.View
	excluded *exclusion
	waiting  Waiting
	line     string // waiting as last reported
	failures []string
	away     map[peer]string // members of the View that gossip lost, and where they were
	closed   bool
	changed  chan struct{} // closed and replaced when View may return
}

func newStatus() *status { return &status{away: map[peer]string{}, changed: make(chan struct{})} }

// announce wakes all who wait. The lock is held.
func (s *status) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *status) install(v collective.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agreed = &v
	s.announce()
}

func (s *status) exclude(e *exclusion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excluded != e {
		s.excluded = e
		s.announce()
	}
}

func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.announce()
}

// wait stores what is waited for, completed by the seeds that cannot be joined,
// and reports whether it reads differently than before.
func (s *status) wait(w Waiting) (Waiting, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Seeds = s.failures
	line := w.String()
	changed := line != s.line
	s.waiting, s.line = w, line
	return w, changed
}

// unreached stores the seeds that cannot be joined and reports a change.
func (s *status) unreached(failures []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !slices.Equal(s.failures, failures)
	s.failures = failures
	return changed
}

func (s *status) vanished(p peer, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[p] = addr
}

func (s *status) found(p peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.away, p)
}

// lost returns where members of the View were that gossip has given up, and
// whether there is a View.
func (s *status) lost() ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []string
	for _, a := range s.away {
		addrs = append(addrs, a)
	}
	return addrs, s.agreed != nil
}

// view waits for the first View.
func (s *status) view(ctx context.Context, self collective.Member) (collective.View, error) {
	for {
		s.mu.Lock()
		agreed, excluded, closed, waiting, changed := s.agreed, s.excluded, s.closed, s.waiting, s.changed
		s.mu.Unlock()
		switch {
		case closed:
			return collective.View{}, ErrClosed
		case agreed != nil:
			v := *agreed
			v.Members = slices.Clone(v.Members)
			return v, nil
		case excluded != nil:
			return collective.View{}, &CompleteError{Member: self, By: excluded.by.Name, Job: excluded.job}
		case ctx.Err() != nil:
			return collective.View{}, &WaitError{Waiting: waiting, Err: context.Cause(ctx)}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
