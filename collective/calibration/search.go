package calibration

import (
	"cmp"
	"slices"
	"time"
)

// How long ranks measure.
const (
	Bound       = 28 * time.Millisecond // in Auto, while a host forms its first group
	RefineBound = 3 * time.Second       // in Refine
)

const (
	usualGain = .95 // of the time of the preferred way: what a different way may take at most
	// smallGain is usualGain for showing more with the call itself: trials of several calls
	// vary by 1 %.
	smallGain = .985
	// readGain is usualGain for reading through the kernel. Where trials found reading
	// faster, programs have still taken up to 1.7 times as long as with copying.
	readGain   = .8
	spread     = 2   // of the fastest run: a median above this means that other load disturbs
	enough     = 8   // trials that show whether other load disturbs
	seldom     = 8   // one in this many trials may be disturbed; on a quiet machine, one in 30 is
	repeatMost = mib // bytes; repeating longer calls takes too long
	slower     = 1.2 // how much longer per byte the calls of an experiment may take than those before it
)

// A Trial is one or more calls to measure: AllReduces of float32 sums.
type Trial struct {
	Bytes   int
	Calls   int  // times to add, because that of one small call varies too much
	InPlace bool // the vectors lie in memory that all ranks share
	Choices Choices
}

// A Setting is what a Search depends on.
type Setting struct {
	Start   Choices // of the first trials
	Costs   Costs   // of waiting; see Choices
	Reads   bool    // ranks can read each other's memory
	Strings bool    // the processor has fast string moves
	Fetches bool    // it can fetch a line for writing
	Refine  bool    // take RefineBound, not Bound
	Done    int     // number of experiments that earlier jobs have made, of Experiments
}

// A Search finds the fastest Choices. It is the same on all ranks.
type Search struct {
	setting Setting
	choices Choices
	at      int // index of the next of experiments

	now   *experiment // in progress; nil if none
	again bool        // it compares the way that has won with the preferred one once more
	ways  []Choices
	times [][]time.Duration // of each way
	whole []time.Duration   // of each trial, with its preparation

	perByte float64       // nanoseconds that a trial takes per byte, with its preparation
	most    int           // bytes of the largest trial so far
	last    time.Duration // when the last trial ended
	decided bool          // at least one experiment
	ended   bool

	compared  int // ways
	noisy     int // ways whose times vary widely
	trials    int
	disturbed int // trials
}

// NewSearch begins a search.
func NewSearch(s Setting) *Search {
	return &Search{setting: s, choices: s.start(), at: s.Done}
}

// start returns the choices of the first trials.
func (s *Setting) start() Choices {
	c := s.Start
	c.wait(s.Costs)
	if !s.Reads {
		c.ReadMost = 0
	}
	if !s.Strings {
		c.StringLeast = 0
	}
	if !s.Fetches {
		c.PrefetchMost = 0
	}
	return c
}

func (s *Search) bound() time.Duration {
	if s.setting.Refine {
		return RefineBound
	}
	return Bound
}

// Next returns the next trial, or false at the end. elapsed is the time since the
// ranks began, by one clock.
func (s *Search) Next(elapsed time.Duration) (Trial, bool) {
	s.whole, s.last = append(s.whole, elapsed-s.last), elapsed
	if s.now != nil && len(s.times[len(s.ways)-1]) > s.now.runs {
		s.decide(elapsed)
	}
	if s.now != nil && elapsed+slices.Max(s.whole) > s.bound() || s.hopeless(elapsed) {
		s.ended = true
	}
	for s.now == nil && !s.ended && s.at < len(experiments) {
		s.begin(&experiments[s.at], elapsed)
	}
	if s.now == nil || s.ended {
		return Trial{}, false
	}
	return Trial{Bytes: s.now.bytes, Calls: max(1, s.now.calls), InPlace: s.now.inPlace, Choices: s.ways[s.way()]}, true
}

// way returns the index of the way whose turn it is.
func (s *Search) way() int {
	return max(0, slices.IndexFunc(s.times, func(t []time.Duration) bool { return len(t) < len(s.times[0]) }))
}

// begin begins the next experiment, if it compares anything.
func (s *Search) begin(e *experiment, elapsed time.Duration) {
	ways := e.ways(s.choices)
	ways = slices.DeleteFunc(ways, func(c Choices) bool {
		return c.ReadMost > 0 && !s.setting.Reads || c.StringLeast > 0 && !s.setting.Strings || c.PrefetchMost > 0 && !s.setting.Fetches
	})
	if e.refine && !s.setting.Refine || len(ways) < 2 {
		s.at++
		return
	}
	s.whole = s.whole[:0]
	s.compare(e, ways, elapsed)
}

// compare begins a comparison of ways, or ends the search if there is no time for it.
func (s *Search) compare(e *experiment, ways []Choices, elapsed time.Duration) {
	takes := slower * s.perByte * float64(e.bytes*len(ways)*(1+e.runs))
	if elapsed+time.Duration(takes) > s.bound() {
		s.ended = true
		return
	}
	s.now, s.ways, s.times = e, ways, make([][]time.Duration, len(ways))
}

// Measured gives the Search the result of the last trial. A disturbed trial is repeated.
func (s *Search) Measured(m Measurement) {
	s.trials++
	if m.Disturbed {
		s.disturbed++
		return
	}
	way := s.way()
	s.times[way] = append(s.times[way], m.Took)
}

// decide ends the experiment in progress, or repeats it with the way that has won. A different
// way is chosen if it beats the preferred one both by its least time and by its median, up to
// repeatMost bytes twice. A few lucky runs lower the least, and other load raises the median, but
// seldom both for the same way.
func (s *Search) decide(elapsed time.Duration) {
	best, gain := 0, cmp.Or(s.now.gain, usualGain)
	leasts, medians := make([]float64, len(s.ways)), make([]float64, len(s.ways))
	for i, times := range s.times {
		times = slices.Sorted(slices.Values(times[1:])) // without the first, which warms up
		leasts[i], medians[i] = float64(times[0]), float64(times[len(times)/2])
		s.compared++
		if medians[i] > spread*leasts[i] {
			s.noisy++
		}
		if max(leasts[i]/leasts[0], medians[i]/medians[0]) < gain && (best == 0 || leasts[i] < leasts[best]) {
			best = i
		}
	}
	if s.now.bytes >= s.most {
		s.most = s.now.bytes
		slices.Sort(s.whole)
		s.perByte = float64(s.whole[len(s.whole)/2]) / float64(s.now.bytes)
	}
	if best != 0 && !s.again && s.now.bytes <= repeatMost {
		s.again = true
		s.compare(s.now, []Choices{s.ways[0], s.ways[best]}, elapsed)
		return
	}
	s.choices, s.now, s.again, s.decided = s.ways[best], nil, false, true
	s.at++
}

// hopeless reports whether most trials were disturbed for a quarter of the time, so that
// more of them would show nothing. A group's first trials may be disturbed while the
// kernel still moves its ranks to cores of their own.
func (s *Search) hopeless(elapsed time.Duration) bool {
	return s.trials >= enough && elapsed >= Bound/4 && s.mostlyDisturbed()
}

func (s *Search) mostlyDisturbed() bool { return 2*s.disturbed > s.trials }

// Choices returns the choices made so far. If most trials were disturbed, these are the
// first.
func (s *Search) Choices() Choices {
	if s.mostlyDisturbed() {
		return s.setting.start()
	}
	return s.choices
}

// Lasting reports whether the choices are worth keeping for other jobs: other load seldom
// disturbed the trials.
func (s *Search) Lasting() bool {
	return 4*s.noisy <= s.compared && seldom*s.disturbed <= s.trials
}

// Done returns the number of experiments that the next job need not make. An experiment
// that takes longer than a whole search is among them, and the preferred way stays.
func (s *Search) Done() int {
	if s.at < len(experiments) && !s.decided {
		return s.at + 1
	}
	return s.at
}
