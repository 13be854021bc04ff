package shm

import (
	"slices"
	"time"
)

// A staging tells from the times of copies to the stages, or to a ring, whether the ranks that
// read them are far: whether non-temporal stores take much less time than others. Lines that
// are timed for a distance do not tell that in long calls. The processor fetches them early, or
// they leave the caches before they are timed.
//
// On an AMD EPYC (Zen 4), a byte takes .03 to .07 ns with non-temporal stores. With ordinary
// ones it takes as long among near cores, and .2 to .4 ns among far ones.
type staging struct {
	perByte [2][]float64 // nanoseconds of the last copies that were timed, 0: with ordinary stores, 1: with non-temporal ones
	bytes   int          // of copies since then
	timed   uint64       // copies
	far     bool
}

const (
	stagingLeast = 32 << 10  // bytes of calls whose copies are timed; shorter calls have timed lines
	timedLeast   = 2 << 10   // bytes of a copy that can be timed; what comes before and after a shorter one counts for too much
	timeEvery    = 256 << 10 // bytes between two copies that are timed; timing one takes about 50 ns
	stagingKept  = 4         // copies of each kind; the fastest counts, because a rank may lose its core
	tryEvery     = 128       // one in this many timed copies is of the other kind
	farRatio     = 3         // of the times, that means far
)

// do calls copy, which copies some bytes, with non-temporal stores or not. It times some of the copies.
func (s *staging) do(bytes int, copy func(stream bool)) {
	if !s.due(bytes) {
		copy(s.far)
		return
	}
	stream := s.stream()
	began := time.Now()
	copy(stream)
	s.measured(stream, bytes, time.Since(began))
}

// due reports whether the next copy, of some bytes, is to be timed.
func (s *staging) due(bytes int) bool {
	if s.bytes += bytes; bytes < timedLeast || s.bytes < timeEvery {
		return false
	}
	s.bytes = 0
	return true
}

// stream reports whether the next copy, which is to be timed, is non-temporal.
func (s *staging) stream() bool {
	s.timed++
	if s.timed <= 2*stagingKept {
		return s.timed%2 == 0
	}
	return s.far != (s.timed%tryEvery == 0)
}

// measured decides whether the other ranks are far, now that a copy has taken so long.
func (s *staging) measured(stream bool, bytes int, took time.Duration) {
	kind := 0
	if stream {
		kind = 1
	}
	kept := &s.perByte[kind]
	if len(*kept) == stagingKept {
		*kept = slices.Delete(*kept, 0, 1)
	}
	*kept = append(*kept, float64(took)/float64(bytes))
	into, beyond := s.perByte[0], s.perByte[1]
	s.far = len(into) > 0 && len(beyond) > 0 && slices.Min(into) > farRatio*slices.Min(beyond)
}
