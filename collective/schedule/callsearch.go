package schedule

import "time"

// Bounds of the calls that a CallSearch times, in bytes.
const (
	firstCall = 4 << 10
	coarse    = 1 << 20 // up to here, sizes grow by growth; then they double
	mostCall  = 16 << 20
	hostCalls = 64 << 20 // of all ranks of a host together

	callPasses = 3 // over all sizes, while half of the time is left
)

// A Sample is the time of an AllReduce of float32 sums in ordinary memory.
type Sample struct {
	Bytes int
	Took  time.Duration
}

// A CallSearch times the calls of a group, from small to large and then again, until
// there is no more time. Like LinkSearch, it is a state machine without clocks, and all
// ranks feed theirs with the same times.
type CallSearch struct {
	most    int // bytes of the largest call
	samples []Sample
	pass    int // 0 while sizes grow
	at      int // index of the next sample in later passes
}

// NewCallSearch begins a search. hosts are those of the ranks.
func NewCallSearch(hosts []int) *CallSearch {
	crowd := 1
	for _, h := range hosts {
		here := 0
		for _, other := range hosts {
			if other == h {
				here++
			}
		}
		crowd = max(crowd, here)
	}
	return &CallSearch{most: max(firstCall, min(mostCall, hostCalls/crowd))}
}

// Next returns the bytes of the next call, or false at the end. elapsed is the time since
// the ranks began to measure, by one clock.
func (s *CallSearch) Next(elapsed time.Duration) (bytes int, more bool) {
	if len(s.samples) == 0 {
		return firstCall, true
	}
	if s.pass == 0 {
		last := s.samples[len(s.samples)-1]
		next := larger(last.Bytes)
		if next <= s.most && elapsed+time.Duration(next/last.Bytes)*last.Took < LinkBound {
			return next, true
		}
		s.pass = 1
	}
	if s.at == len(s.samples) {
		s.at = 0
		s.pass++
	}
	return s.samples[s.at].Bytes, s.pass < callPasses && elapsed < LinkBound/2 && elapsed+s.samples[s.at].Took < LinkBound
}

func larger(bytes int) int {
	if bytes < coarse {
		return growth * bytes
	}
	return 2 * bytes
}

// Measured gives the search the time of the last call on the slowest rank.
func (s *CallSearch) Measured(took time.Duration) {
	if s.pass == 0 {
		bytes := firstCall
		if n := len(s.samples); n > 0 {
			bytes = larger(s.samples[n-1].Bytes)
		}
		s.samples = append(s.samples, Sample{bytes, max(1, took)})
		return
	}
	s.samples[s.at].Took = min(s.samples[s.at].Took, max(1, took))
	s.at++
}

// Samples returns the fastest call of each size.
func (s *CallSearch) Samples() []Sample { return s.samples }

// MostSamples is the most that a CallSearch returns.
const MostSamples = 9

// Limits of what a byte beyond the largest sample costs. Outside of them, one of the two
// largest samples was disturbed. Bytes beyond the caches cost more than others.
const (
	leastShared = .8  // of what a byte of the largest sample costs, in shared memory
	leastLinked = .5  // of what the links need for a byte
	mostSlope   = 1.2 // of what a byte of the largest sample costs
)

// expect returns how long a call of the given number of bytes takes, in nanoseconds,
// according to Calls. It interpolates between them, and extrapolates by what the last
// bytes cost. It returns false without at least two samples, and below the smallest.
func (s *Situation) expect(bytes float64) (float64, bool) {
	n := len(s.Calls)
	if n < 2 || bytes < float64(s.Calls[0].Bytes) {
		return 0, false
	}
	i := 1
	for i < n-1 && bytes > float64(s.Calls[i].Bytes) {
		i++
	}
	a, b := s.Calls[i-1], s.Calls[i]
	slope := float64(b.Took-a.Took) / float64(b.Bytes-a.Bytes)
	if bytes > float64(b.Bytes) {
		whole := float64(b.Took) / float64(b.Bytes)
		least := leastShared * whole
		if !s.Shared {
			size := float64(len(s.Hosts))
			least = leastLinked * 2 * (size - 1) / size * s.link().PerByte
		}
		slope = min(max(slope, least), mostSlope*whole)
	}
	return float64(b.Took) + (bytes-float64(b.Bytes))*slope, true
}
