package schedule

import (
	"slices"
	"time"
)

// Bounds of the calls that a CallSearch times, in bytes.
const (
	firstCall = 4 << 10
	coarse    = 1 << 20 // up to here, sizes grow by growth; then they double
	mostCall  = 32 << 20
	hostCalls = 64 << 20 // of all ranks of a host together
)

// How often a CallSearch makes a call. The first call of a size is often slower: it
// allocates memory, and TCP adapts its windows.
const (
	leastRuns = 2                      // of one size in sequence, and
	callRuns  = 16                     // at most, while
	runBound  = 4 * time.Millisecond   // they have taken less than this, or seem disturbed
	slowRun   = 1.5                    // how much longer the first call of a size may take than expected
	longRun   = 700 * time.Microsecond // a longer call is timed once more at the end
)

// How a CallSearch compares the planned method with its rival, if there is one.
const (
	rivalReach = 2                     // the result holds for sizes less than this many times larger, and as much smaller
	rivalPairs = 2                     // calls by each method, at least, and
	mostPairs  = 5                     // at most, while
	pairBound  = 10 * time.Millisecond // all of them have taken less than this
	rivalGain  = .92                   // of the planned method's time: the rival must take less
)

// contests are the sizes at which a CallSearch compares methods.
var contests = [...]int{1 << 20, 4 << 20}

// A Sample is the time of an AllReduce of float32 sums in ordinary memory.
type Sample struct {
	Bytes int
	Took  time.Duration
	Rival bool `json:",omitempty"` // by the rival of the planned method, which took longer
}

// A CallSearch times the calls of a group, from small to large, and then the longer ones
// once more. Where the ranks have rivals, it times both methods in turn. Like LinkSearch,
// it is a state machine without clocks, and all ranks feed theirs with the same times.
type CallSearch struct {
	most    int  // bytes of the largest call
	shared  bool // calls are carried out in shared memory
	rivals  bool // the ranks have rivals
	samples []Sample
	times   [][2][]time.Duration // of each sample, by the planned method and by its rival, ascending
	grown   bool                 // the next call is the first of its size
	rival   bool                 // the next call is by the rival
	again   bool                 // sizes do not grow any more
	left    int                  // samples to time once more, the first ones
}

// NewCallSearch begins a search in the situation of a group.
func NewCallSearch(situation *Situation) *CallSearch {
	crowd := 1
	for _, h := range situation.Hosts {
		here := 0
		for _, other := range situation.Hosts {
			if other == h {
				here++
			}
		}
		crowd = max(crowd, here)
	}
	return &CallSearch{most: max(firstCall, min(mostCall, hostCalls/crowd)), shared: situation.Shared, rivals: situation.HasRivals()}
}

// Largest returns the bytes of the largest call that Next may return.
func (s *CallSearch) Largest() int { return s.most }

// Next returns the bytes of the next call and whether it is by the rival, or false at the
// end. elapsed is the time since the ranks began to measure, by one clock.
func (s *CallSearch) Next(elapsed time.Duration) (bytes int, rival, more bool) {
	n := len(s.samples)
	if n == 0 {
		s.grown = true
		return firstCall, false, true
	}
	if !s.again {
		last := s.samples[n-1]
		next := larger(last.Bytes)
		longer := time.Duration(slowRun * float64(next/last.Bytes) * float64(last.Took))
		grows := next <= s.most && elapsed+longer < LinkBound
		wanted, first := s.wants(n - 1)
		if wanted && elapsed+last.Took < LinkBound && (first || !grows || elapsed+last.Took+longer < LinkBound) {
			return last.Bytes, s.rival, true
		}
		if s.rival = false; grows {
			s.grown = true
			return next, false, true
		}
		s.again, s.left = true, n
	}
	for ; s.left > 0; s.left-- {
		if one := s.samples[s.left-1]; one.Took > longRun && elapsed+one.Took < LinkBound {
			s.rival = one.Rival
			return one.Bytes, one.Rival, true
		}
	}
	return 0, false, false
}

// wants reports whether a sample needs another call, which is then by the method in
// s.rival, and whether that matters more than a larger size.
func (s *CallSearch) wants(i int) (more, first bool) {
	one := &s.samples[i]
	calls := len(s.times[i][0]) + len(s.times[i][1])
	spent := time.Duration(calls) * one.Took
	if s.contested(one.Bytes) {
		s.rival = calls%4 == 1 || calls%4 == 2 // each method is as often the first of a pair
		first = calls < 2*rivalPairs
		return first || calls < 2*mostPairs && spent < pairBound, first
	}
	return calls < callRuns && (calls < leastRuns || spent < runBound || s.isDisturbed(i)), false
}

// contested reports whether both methods are timed at a size.
func (s *CallSearch) contested(bytes int) bool {
	return s.rivals && slices.Contains(contests[:], bytes)
}

// isDisturbed reports whether a byte of a sample seems to have taken too long, compared
// with the sample before.
func (s *CallSearch) isDisturbed(i int) bool {
	if i == 0 {
		return false
	}
	a, b := s.samples[i-1], s.samples[i]
	return float64(b.Took)/float64(b.Bytes) > disturbed*float64(a.Took)/float64(a.Bytes)
}

func larger(bytes int) int {
	if bytes < coarse {
		return growth * bytes
	}
	return 2 * bytes
}

// Measured gives the search the time of the last call on the slowest rank.
func (s *CallSearch) Measured(took time.Duration) {
	at := len(s.samples) - 1
	switch {
	case s.again:
		s.left--
		at = s.left
	case s.grown:
		bytes := firstCall
		if at >= 0 {
			bytes = larger(s.samples[at].Bytes)
		}
		s.samples, s.times, s.grown = append(s.samples, Sample{Bytes: bytes}), append(s.times, [2][]time.Duration{}), false
		at++
	}
	planned, rival := &s.times[at][0], &s.times[at][1]
	to := planned
	if s.rival {
		to = rival
	}
	*to = append(*to, max(1, took))
	slices.Sort(*to)
	one := &s.samples[at]
	if !s.again && len(*rival) >= rivalPairs {
		one.Rival = float64(s.typical(*rival)) < rivalGain*float64(s.typical(*planned))
	}
	if one.Took = s.typical(*planned); one.Rival {
		one.Took = s.typical(*rival)
	}
}

// typical returns which of some ascending times stands for all of them. The first calls
// are slow, because memory is new and TCP's windows grow. But where ranks share cores, the
// fastest of many calls is one in which they happened not to wait.
func (s *CallSearch) typical(times []time.Duration) time.Duration {
	if s.shared {
		return times[len(times)/3]
	}
	return times[(len(times)-1)/4]
}

// Samples returns a typical time of each size.
func (s *CallSearch) Samples() []Sample { return s.samples }

// MostSamples is the most that a CallSearch returns.
const MostSamples = 10

// Limits of what a byte beyond the largest sample costs. Outside of them, one of the two
// largest samples was disturbed, or so small that a link's queue held all of it. Bytes
// beyond the caches cost more than others.
const (
	leastShared = .8       // of what a byte of the largest sample costs, in shared memory
	mostSlope   = 1.2      // of what a byte of the largest sample costs
	mostSpilled = 1        // the same, in shared memory, if that sample did not fit into caches:
	spilled     = 16 << 20 // if the vectors of all ranks had this many bytes together; stages take as many

	leastInside               = .5       // of what the links inside a host need for a byte
	leastBetween, mostBetween = .9, 1.25 // the same between hosts, where caches matter less
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
		least, most := leastShared*whole, mostSlope*whole
		if s.Shared && b.Bytes*len(s.Hosts) >= spilled {
			most = mostSpilled * whole
		}
		if !s.Shared {
			size := float64(len(s.Hosts))
			links := 2 * (size - 1) / size * s.link().PerByte // in a ring; no algorithm needs less
			least = leastInside * links
			if !s.OneHost() {
				least, most = leastBetween*links, min(most, mostBetween*links)
			}
		}
		slope = min(max(slope, least), most)
	}
	return float64(b.Took) + float64((bytes-float64(b.Bytes))*slope), true
}
