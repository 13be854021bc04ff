package bench

import (
	"errors"
	"sync"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A trialDisplay collects the events of one trial's workers and reads the counters of
// their links. Any goroutine may use it.
type trialDisplay struct {
	crew.Lines

	network *launch.Network // nil: no counters

	mu       sync.Mutex
	before   []launch.Counter
	measured *TrialMeasured
	failed   error
}

// Emit is part of event.Sink.
func (s *trialDisplay) Emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case *TrialBegins:
		s.before = s.count()
	case *TrialMeasured:
		s.measured = e
		if s.network != nil {
			e.Trial.Wire = carried(s.before, s.count(), e.Locals)
		}
	}
}

// count reads the counters. The caller holds mu.
func (s *trialDisplay) count() []launch.Counter {
	if s.network == nil {
		return nil
	}
	now, err := s.network.Counters()
	s.failed = errors.Join(s.failed, err)
	return now
}

// carried returns the bytes that each rank has sent over its link.
func carried(before, after []launch.Counter, locals []int) []int64 {
	out := make([]int64, len(locals))
	for rank, node := range locals {
		if node >= 0 && node < len(before) && node < len(after) {
			out[rank] = int64(after[node].SentBytes - before[node].SentBytes)
		}
	}
	return out
}

// end returns the measurements, or an error if there are none or if messages bypassed the
// network.
func (s *trialDisplay) end() (*TrialMeasured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return nil, s.failed
	case s.measured == nil:
		return nil, errors.New("the workers ended without reporting their measurements")
	case s.network != nil:
		return s.measured, s.measured.Trial.CheckWire()
	}
	return s.measured, nil
}
