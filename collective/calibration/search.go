package calibration

import (
	"slices"
	"time"
)

// How long ranks measure.
const (
	Bound       = 28 * time.Millisecond // in Auto, while a host forms its first group
	RefineBound = 3 * time.Second       // in Refine
)

const (
	gain   = .97 // of the time of the preferred way: what a different way may take at most
	spread = 2   // of the fastest run: a median above this means that other load disturbs
	enough = 16  // trials that show whether other load disturbs
	seldom = 8   // one in this many trials may be disturbed; on a quiet machine, one in 30 is
	slower = 1.5 // how much longer per byte the calls of an experiment may take than those before it
)

// A Trial is a call to measure: an AllReduce of float32 sums.
type Trial struct {
	Bytes   int
	InPlace bool // the vectors lie in memory that all ranks share
	Choices Choices
}

// A Setting is what a Search depends on.
type Setting struct {
	Start   Choices // of the first trials
	Costs   Costs   // of waiting; see Choices
	Reads   bool    // ranks can read each other's memory
	Strings bool    // the processor has fast string moves
	Refine  bool    // take RefineBound, not Bound
}

// A Search finds the fastest Choices. It is the same on all ranks.
type Search struct {
	setting Setting
	choices Choices
	at      int // index of the next of experiments

	now   *experiment // in progress; nil if none
	ways  []Choices
	times [][]time.Duration // of each way
	began time.Duration     // when it began

	perByte float64 // nanoseconds that a trial takes per byte, with its preparation
	most    int     // bytes of the largest trial so far
	skipped bool

	compared  int // ways
	noisy     int // ways whose times vary widely
	trials    int
	disturbed int // trials
}

// NewSearch begins a search.
func NewSearch(s Setting) *Search {
	return &Search{setting: s, choices: s.start()}
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
	if s.now != nil && len(s.times[len(s.ways)-1]) > s.now.runs {
		s.decide(elapsed)
	}
	if elapsed >= s.bound() || s.hopeless(elapsed) {
		s.skipped = s.skipped || s.now != nil || s.at < len(experiments)
		s.now = nil
		return Trial{}, false
	}
	for s.now == nil {
		if s.at == len(experiments) {
			return Trial{}, false
		}
		s.begin(&experiments[s.at], elapsed)
		s.at++
	}
	way := slices.IndexFunc(s.times, func(t []time.Duration) bool { return len(t) < len(s.times[0]) })
	return Trial{Bytes: s.now.bytes, InPlace: s.now.inPlace, Choices: s.ways[max(way, 0)]}, true
}

// begin begins an experiment, if it compares anything and there is time for it.
func (s *Search) begin(e *experiment, elapsed time.Duration) {
	if e.refine && !s.setting.Refine {
		return
	}
	ways := e.ways(s.choices)
	ways = slices.DeleteFunc(ways, func(c Choices) bool {
		return c.ReadMost > 0 && !s.setting.Reads || c.StringLeast > 0 && !s.setting.Strings
	})
	if len(ways) < 2 {
		return
	}
	takes := slower * s.perByte * float64(e.bytes*len(ways)*(1+e.runs))
	if elapsed+time.Duration(takes) > s.bound() {
		s.skipped = true
		return
	}
	s.now, s.ways, s.times, s.began = e, ways, make([][]time.Duration, len(ways)), elapsed
}

// Measured gives the Search the result of the last trial. A disturbed trial is repeated.
func (s *Search) Measured(m Measurement) {
	s.trials++
	if m.Disturbed {
		s.disturbed++
		return
	}
	way := slices.IndexFunc(s.times, func(t []time.Duration) bool { return len(t) < len(s.times[0]) })
	s.times[max(way, 0)] = append(s.times[max(way, 0)], m.Took)
}

// decide ends the experiment in progress.
func (s *Search) decide(elapsed time.Duration) {
	best, least := 0, time.Duration(0)
	for i, times := range s.times {
		times = slices.Sorted(slices.Values(times[1:])) // without the first, which warms up
		fastest := times[0]
		s.compared++
		if times[len(times)/2] > spread*fastest {
			s.noisy++
		}
		switch {
		case i == 0:
			least = time.Duration(gain * float64(fastest))
		case fastest < least:
			best, least = i, fastest
		}
	}
	if s.now.bytes >= s.most {
		s.most = s.now.bytes
		s.perByte = float64(elapsed-s.began) / float64(s.now.bytes*len(s.ways)*(1+s.now.runs))
	}
	s.choices, s.now = s.ways[best], nil
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

// Lasting reports whether the choices are worth keeping for other jobs: nothing was
// left out for lack of time, and other load seldom disturbed the trials.
func (s *Search) Lasting() bool {
	return !s.skipped && 4*s.noisy <= s.compared && seldom*s.disturbed <= s.trials
}
