package schedule

import (
	"math"
	"slices"
	"time"
)

// How ranks measure their links.
const (
	LinkBound = 100 * time.Millisecond // for all trials and calls, unless one takes longer
	longTrial = 16 * time.Millisecond  // a trial this long is dominated by bandwidth, whatever queues and windows do at first

	MostTrial  = 4 << 20 // bytes
	firstTrial = 4 << 10
	growth     = 4 // of trials, until one is long
	roomFor    = 2 // trials of a larger size, or it is not tried: the first is slow while windows grow

	latencyTrials   = 3 // at the beginning, when ranks may not have found a core each, and as many at the end
	LatencyRounds   = 4 // messages of a latency trial, one after another
	bandwidthTrials = 3 // of the largest size

	twiceTrial = 64 << 10  // from this size on, see Messages
	largeTrial = 256 << 10 // from this size on, windows grow for longer: a larger size needs twice the room
)

// Messages returns how many messages a trial of some bytes sends, one after another. Only
// the time of the last counts. Those before use up what a limiter has saved, and windows grow.
func Messages(bytes int) int {
	if bytes >= twiceTrial {
		return 2
	}
	return 1
}

// A LinkSearch measures the links of a group. In a trial, every rank sends a message to
// the next one and receives one from the rank before, all at a time, as in a ring: so
// links that share a cable share it here, too. The search is a state machine without
// clocks. All ranks feed theirs with the same times, so all have the same Cost.
type LinkSearch struct {
	bound    time.Duration
	size     int             // bytes of the trials now; 0 while latency is first measured
	latency  []time.Duration // then
	quickest time.Duration   // of the messages of all sizes so far; 0 before the first
	long     []time.Duration // of the trials of this size, if it is the last
	ending   bool            // latency is measured again:
	settled  []time.Duration
}

// NewLinkSearch begins a search that ends at bound, unless a trial takes longer.
func NewLinkSearch(bound time.Duration) *LinkSearch { return &LinkSearch{bound: bound} }

// Next returns the bytes of the messages of the next trial; 0 for LatencyRounds of a
// few bytes each. It returns false at the end. elapsed is the time since the ranks
// began to measure, by one clock.
func (s *LinkSearch) Next(elapsed time.Duration) (bytes int, more bool) {
	if len(s.latency) < latencyTrials && (elapsed < s.bound/5 || len(s.latency) == 0) {
		return 0, true
	}
	if s.size == 0 {
		s.size = firstTrial
	}
	n := len(s.long)
	last := LatencyRounds * min(slices.Min(s.latency), s.quickest)
	if n == 0 || n < bandwidthTrials && elapsed+time.Duration(Messages(s.size))*s.long[n-1]+last < s.bound {
		return s.size, true
	}
	s.ending = true
	return 0, len(s.settled) < latencyTrials && elapsed+last < s.bound
}

// Measured gives the search the time of the last trial on the slowest rank.
func (s *LinkSearch) Measured(took, elapsed time.Duration) {
	switch {
	case s.size == 0:
		s.latency = append(s.latency, took/LatencyRounds)
		return
	case s.ending:
		s.settled = append(s.settled, took/LatencyRounds)
		return
	case s.quickest == 0 || took < s.quickest:
		s.quickest = took
	}
	room := s.room(took)
	if len(s.long) > 0 { // the first trial of this size was disturbed
		room *= 2
	}
	switch {
	case took >= longTrial || s.size == MostTrial || elapsed+room > s.bound:
		s.long = append(s.long, took)
	default:
		s.size *= growth
		s.long = nil
	}
}

// room returns the time that must be left for the next size, if a message of this size took that
// long. Where a trial has two messages, it has room for the first to be slow by itself.
func (s *LinkSearch) room(took time.Duration) time.Duration {
	switch {
	case s.size >= largeTrial:
		return 2 * roomFor * s.grown(took)
	case growth*s.size >= twiceTrial:
		return (1 + roomFor) * s.grown(took)
	}
	return roomFor * s.grown(took)
}

// grown returns how long a trial of the next size will take if one of this size took that
// long.
func (s *LinkSearch) grown(took time.Duration) time.Duration {
	latency := slices.Min(s.latency)
	return latency + growth*max(0, took-latency)
}

// Cost returns what the links cost. Nothing about folding was measured. A byte costs nothing if
// no message took longer than a shorter one; see Links.Correct.
func (s *LinkSearch) Cost() Cost {
	first, long := slices.Min(s.latency), slices.Min(s.long)
	latency := slices.Min(append(s.settled, first, s.quickest))
	then := latency
	if len(s.long) < bandwidthTrials { // these few trials were perhaps as slow as the first ones
		then = min(first, 2*latency)
	}
	if then >= long {
		then = latency
	}
	return Cost{Latency: float64(latency), PerByte: float64(long-then) / float64(s.size), Fold: Network.Fold}.rounded()
}

// rounded returns the cost with two digits, so that the same links measured twice mostly
// have the same cost, and the same plans.
func (c Cost) rounded() Cost {
	round := func(x float64) float64 {
		if x <= 0 {
			return 0
		}
		unit := 1.
		for ; x >= 100*unit; unit *= 10 {
		}
		for ; x < 10*unit; unit /= 10 {
		}
		return math.Round(x/unit) * unit
	}
	return Cost{Latency: round(c.Latency), PerByte: round(c.PerByte), Fold: c.Fold}
}
