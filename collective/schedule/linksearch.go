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

	latencyTrials   = 3
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
	bound   time.Duration
	size    int // bytes of the trials now; 0 while latency is measured
	latency []time.Duration
	long    []time.Duration // of the trials of this size, if it is the last
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
	if n == 0 {
		return s.size, true
	}
	return s.size, n < bandwidthTrials && elapsed+time.Duration(Messages(s.size))*s.long[n-1] < s.bound
}

// Measured gives the search the time of the last trial on the slowest rank.
func (s *LinkSearch) Measured(took, elapsed time.Duration) {
	switch {
	case s.size == 0:
		s.latency = append(s.latency, took/LatencyRounds)
	case len(s.long) > 0 || took >= longTrial || s.size == MostTrial || elapsed+s.room(took) > s.bound:
		s.long = append(s.long, took)
	default:
		s.size *= growth
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

// Cost returns what the links cost. Nothing about folding was measured.
func (s *LinkSearch) Cost() Cost {
	latency := float64(slices.Min(s.latency))
	c := Cost{Latency: latency, PerByte: max(0, float64(slices.Min(s.long))-latency) / float64(s.size), Fold: Network.Fold}
	return c.rounded()
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
