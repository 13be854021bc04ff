package shm

import (
	"slices"
	"time"
)

// A staging tells from the times of large copies to the stages whether the other ranks are
// far: whether stores past the caches take much less time than others. Lines that are timed
// for a distance do not tell that in long calls. The processor fetches them early, or they
// leave the caches before they are timed.
//
// On an AMD EPYC (Zen 4), a byte takes .03 to .07 ns past the caches. Otherwise it takes as
// long among near cores, and .2 to .4 ns among far ones.
type staging struct {
	perByte [2][]float64 // nanoseconds of the last copies, 0: into the caches, 1: past them
	copies  uint64
}

const (
	stagingLeast = 256 << 10 // bytes of calls whose copies are timed; shorter calls have timed lines
	stagingKept  = 4         // copies of each kind; the fastest counts, because a rank may lose its core
	tryEvery     = 128       // copies, of which one is of the other kind
	farRatio     = 3         // of the times, that means far
)

// past reports whether the next copy goes past the caches, if the other ranks seem far or near.
func (s *staging) past(far bool) bool {
	s.copies++
	if s.copies <= 2*stagingKept {
		return s.copies%2 == 0
	}
	return far != (s.copies%tryEvery == 0)
}

// measured reports whether the other ranks are far, now that a copy has taken so long.
func (s *staging) measured(past bool, bytes int, took time.Duration) (far bool) {
	kind := 0
	if past {
		kind = 1
	}
	kept := &s.perByte[kind]
	if len(*kept) == stagingKept {
		*kept = slices.Delete(*kept, 0, 1)
	}
	*kept = append(*kept, float64(took)/float64(bytes))
	into, beyond := s.perByte[0], s.perByte[1]
	return len(into) > 0 && len(beyond) > 0 && slices.Min(into) > farRatio*slices.Min(beyond)
}
