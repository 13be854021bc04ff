package schedule

import (
	"slices"
	"time"
)

// Sizes of the calls that a CallSearch times, in bytes.
const (
	smallCall = 4 << 10  // the first; from here on, sizes grow by growth
	coarse    = 1 << 20  // from here on, they double
	mostCall  = 32 << 20 // the largest
	hostCalls = 16 << 20 // the largest of all ranks of a host together: like longer ones, it fills caches
	tinyCall  = 4        // for latency, after all others
)

// How often a CallSearch makes a call. The first call of a size is often slower: it
// allocates memory, and TCP adapts its windows.
const (
	leastRuns  = 2                     // minimum number of calls of a size
	callRuns   = 16                    // maximum number of calls of a size
	runBound   = 4 * time.Millisecond  // no more calls of a size after this, unless disturbed
	largeBound = 10 * time.Millisecond // runBound from coarse on, where caches fill and calls may wait for a core
	slowRun    = 1.5                   // how many times as long as expected a first call may take
	slowOnce   = 1.25                  // a single call of the last size counts only up to this many times the expected
	againBound = time.Millisecond      // time for the repeated calls of each size at the end
	fewRuns    = 8                     // a large size with fewer calls than this gets largeBound at the end, if there is time
	tinyRoom   = 2 * againBound        // time reserved for tinyCall
)

// How a CallSearch compares the plan with its rivals, if there are any.
const (
	leastTurns = 2                     // minimum number of calls in each way
	mostTurns  = 6                     // maximum number of calls in each way
	turnsBound = 10 * time.Millisecond // no more calls after this time
	rivalGain  = .92                   // a rival wins below this part of the plan's time
	longGain   = .97                   // rivalGain where only the message length differs
)

// A Sample is the time of an AllReduce of float32 sums in ordinary memory.
type Sample struct {
	Bytes int
	Took  time.Duration
	Rival // the one that took less time than the plan, or zero
}

// A Rival is another way to make a call than the planned one. The zero Rival is the planned
// one.
type Rival struct {
	Method  Method `json:",omitempty"`
	Segment int    `json:",omitempty"` // bytes per message; 0: as for any plan of the method
}

// A CallSearch times the calls of a group, from small to large, and then all sizes once
// more: the first calls may be slow for some milliseconds, until every rank has its own
// core. Where the plan has rivals, it times all of them in turn. Like LinkSearch,
// it is a state machine without clocks, and all ranks feed theirs with the same times.
type CallSearch struct {
	situation *Situation
	most      int // bytes of the largest call
	samples   []Sample
	ways      [][]Rival           // of each sample: zero for the planned one, and its rivals
	times     [][][]time.Duration // of each sample, by way, ascending
	grown     bool                // the next call is the first of its size
	since     time.Duration       // when the calls of this size began
	opening   time.Duration       // from then until the second could begin; 0 until that is known
	turn      int                 // of the sample's ways, that of the next call
	again     bool                // sizes do not grow any more
	left      int                 // samples to time once more, the first ones
	repeats   int                 // calls made for that with the last of them
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
	most := mostCall
	if crowd > 1 {
		most = max(coarse, hostCalls/crowd)
	}
	return &CallSearch{situation: situation, most: most}
}

// Largest returns the bytes of the largest call that Next may return.
func (s *CallSearch) Largest() int { return s.most }

// Next returns the bytes of the next call and how it is made, zero for as planned, or false
// at the end. elapsed is the time since the ranks began to measure, by one clock.
func (s *CallSearch) Next(elapsed time.Duration) (bytes int, way Rival, more bool) {
	n := len(s.samples)
	if n == 0 {
		s.grown, s.since = true, elapsed
		return smallCall, Rival{}, true
	}
	bound := LinkBound
	if s.situation.OneHost() { // between hosts, the large calls need all the time
		bound -= tinyRoom
	}
	if !s.again {
		last := s.samples[n-1]
		if s.opening == 0 {
			s.opening = elapsed - s.since
		}
		next, longer := larger(last.Bytes), s.longer()
		grows := next <= s.most && elapsed+longer < bound
		if last.Bytes >= coarse { // new pages may take more time than the call
			grows = grows && elapsed+2*s.opening < bound
		}
		wanted, first := s.wants(n-1, elapsed-s.since)
		if wanted && elapsed+last.Took < bound && (first || !grows || elapsed+last.Took+longer < bound) {
			return last.Bytes, s.ways[n-1][s.turn], true
		}
		if s.turn = 0; grows {
			s.grown, s.since, s.opening = true, elapsed, 0
			return next, s.waysOf(next)[0], true
		}
		s.again, s.left = true, n+1
		s.samples = append([]Sample{{Bytes: tinyCall, Took: s.samples[0].Took}}, s.samples...)
		s.ways, s.times = append([][]Rival{{{}}}, s.ways...), append([][][]time.Duration{{nil}}, s.times...)
	}
	for ; s.left > 0; s.left, s.repeats = s.left-1, 0 {
		if s.repeats == 0 {
			s.since = elapsed
		}
		if s.left == 1 { // tinyCall
			bound = LinkBound
		}
		one := s.samples[s.left-1]
		if elapsed+one.Took < bound && s.repeats < callRuns && (s.repeats == 0 || elapsed-s.since < againBound || s.few(elapsed, bound)) {
			s.turn = slices.Index(s.ways[s.left-1], one.Rival)
			return one.Bytes, one.Rival, true
		}
	}
	return 0, Rival{}, false
}

// few reports whether the large size that is timed once more still has few times, and whether there
// is time for more, after which all smaller sizes get theirs. The first calls in new memory are
// slow, which matters if there are only two.
func (s *CallSearch) few(elapsed, bound time.Duration) bool {
	at, spent := s.left-1, elapsed-s.since
	if s.samples[at].Bytes < coarse || len(s.times[at][s.turn]) >= fewRuns || spent >= largeBound {
		return false
	}
	each := spent / time.Duration(s.repeats)
	return elapsed+each+time.Duration(at)*againBound < bound
}

// longer returns how long the first call of the next size may take. If latency is a large
// part of the last ones, that is much less than bytes suggest.
func (s *CallSearch) longer() time.Duration {
	n := len(s.samples)
	last := s.samples[n-1]
	next := larger(last.Bytes)
	took := float64(next/last.Bytes) * float64(last.Took)
	if n > 1 {
		took = min(took, extrapolate(s.samples[n-2], last, next))
	}
	return time.Duration(slowRun * took)
}

// wants reports whether a sample needs another call, which is then made in the way whose
// turn it is, and whether that matters more than a larger size. spent is the time since
// the first call of its size began, with what ranks do between calls.
func (s *CallSearch) wants(i int, spent time.Duration) (more, first bool) {
	ways := len(s.ways[i])
	calls := 0
	for _, t := range s.times[i] {
		calls += len(t)
	}
	if ways > 1 {
		if s.turn = calls % ways; calls/ways%2 == 1 { // back and forth, in case calls become faster or slower
			s.turn = ways - 1 - s.turn
		}
		first = calls < leastTurns*ways
		return first || calls < mostTurns*ways && spent < turnsBound, first
	}
	bound := runBound
	if s.samples[i].Bytes >= coarse {
		bound = largeBound
	}
	return calls < callRuns && (calls < leastRuns || spent < bound || s.isDisturbed(i)), false
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
		s.repeats++
		at = s.left - 1
	case s.grown:
		bytes := smallCall
		if at >= 0 {
			bytes = larger(s.samples[at].Bytes)
		}
		ways := s.waysOf(bytes)
		s.samples, s.ways, s.grown = append(s.samples, Sample{Bytes: bytes}), append(s.ways, ways), false
		s.times = append(s.times, make([][]time.Duration, len(ways)))
		at++
	}
	times := s.times[at]
	times[s.turn] = append(times[s.turn], max(1, took))
	slices.Sort(times[s.turn])
	one := &s.samples[at]
	if !s.again {
		one.Rival = s.fastest(at)
	}
	one.Took = s.typical(times[slices.Index(s.ways[at], one.Rival)])
}

// waysOf returns the ways to time in calls of some bytes, the planned one first. Two ranks
// make longer calls in the way that was faster for shorter ones, because measured will plan
// them so.
func (s *CallSearch) waysOf(bytes int) []Rival {
	rivals := s.situation.rivals(bytes)
	if n := len(s.samples); n > 0 && len(rivals) == 0 && len(s.situation.Hosts) == 2 {
		return []Rival{s.samples[n-1].Rival}
	}
	return append([]Rival{{}}, rivals...)
}

// fastest returns the way that takes the least time at a sample's size, or zero if that is
// the planned one or gains little.
func (s *CallSearch) fastest(i int) Rival {
	times, best, gain := s.times[i], 0, rivalGain
	if len(s.situation.Hosts) == 2 {
		gain = longGain
	}
	least := float64(gain * float64(s.typical(times[0])))
	for k := 1; k < len(times); k++ {
		if len(times[k]) < leastTurns {
			return Rival{}
		}
		if t := float64(s.typical(times[k])); t < least {
			best, least = k, t
		}
	}
	return s.ways[i][best]
}

// typical returns which of some ascending times stands for all of them. The first calls
// are slow, because memory is new and TCP's windows grow. But where ranks share cores, as more than
// two may, the fastest of many calls is one in which they happened not to wait.
func (s *CallSearch) typical(times []time.Duration) time.Duration {
	if s.situation.Shared && len(s.situation.Hosts) > 2 {
		return times[len(times)/3]
	}
	return times[(len(times)-1)/4]
}

// Samples returns a typical time of each size. There may have been no time for tinyCall, and
// between hosts only for one call of the largest size. That is left out if windows seem to have
// grown only then.
func (s *CallSearch) Samples() []Sample {
	samples, times := s.samples, s.times
	if len(times[0][0]) == 0 {
		samples, times = samples[1:], times[1:]
	}
	n := len(samples)
	if n < 3 || samples[n-3].Bytes < smallCall || s.situation.OneHost() || len(times[n-1][0]) > 1 {
		return samples
	}
	last := samples[n-1]
	if float64(last.Took) > slowOnce*extrapolate(samples[n-3], samples[n-2], last.Bytes) {
		return samples[:n-1]
	}
	return samples
}

// extrapolate returns how long a call of more bytes takes, in nanoseconds, if a byte costs as
// much as between two samples.
func extrapolate(a, b Sample, bytes int) float64 {
	slope := float64(b.Took-a.Took) / float64(b.Bytes-a.Bytes)
	return float64(b.Took) + float64(max(0, slope)*float64(bytes-b.Bytes))
}

// MostSamples is the most that a CallSearch returns.
const MostSamples = 11

// Limits of what a byte beyond the largest sample costs. Outside of them, one of the two
// largest samples was disturbed, or so small that a link's queue held all of it. Bytes
// beyond the caches cost more than others.
const (
	leastShared = .8  // of what a byte of the largest sample costs, in shared memory
	mostSlope   = 1.2 // of what a byte of the largest sample costs

	leastInside               = .5       // of what the links inside a host need for a byte
	leastBetween, mostBetween = .9, 1.25 // the same between hosts, where caches matter less
)

// expect returns how long a call of the given number of bytes takes, in nanoseconds,
// according to Calls. It interpolates between them, and extrapolates by what the last
// bytes cost. It returns false without at least two samples, below the smallest, and beyond
// the largest if that is mostly latency.
func (s *Situation) expect(bytes float64) (float64, bool) {
	n := len(s.Calls)
	if n < 2 || bytes < float64(s.Calls[0].Bytes) || bytes > smallCall && s.Calls[n-1].Bytes <= smallCall {
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
		if !s.Shared {
			links := share(len(s.Hosts)) * s.link().PerByte
			least = leastInside * links
			if !s.OneHost() {
				least, most = leastBetween*links, min(most, mostBetween*links)
			}
		}
		slope = min(max(slope, least), most)
	}
	return float64(b.Took) + float64((bytes-float64(b.Bytes))*slope), true
}
