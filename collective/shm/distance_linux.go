package shm

import (
	"math/bits"
	"slices"
	"unsafe"
)

// A distance tells whether the cores of the other ranks are far: whether a line that
// another core has written arrives no sooner than one from memory. On an AMD EPYC, that is
// so between cores that do not share a last-level cache. The kernel and the hypervisor move ranks,
// so it can change at any time.
//
// Among far cores, ordinary stores to memory that others have read wait for one line after
// another, and non-temporal stores take a fifth of the time. Among near cores, non-temporal
// stores make whole calls slower. Each rank decides for itself, because its choice does not
// change what others see. Calls of at least stagingLeast decide by the times of copies; see
// staging.
type distance struct {
	late   uint64 // ticks of the processor's counter from which a line comes late; 0: unknown
	calls  int    // that could have a sample
	peer   int    // whose line was timed last
	recent uint32 // the last samples, a bit each: 1 if the line came late
	far    bool
}

const (
	sampleLeast = 2 << 10 // bytes of calls with samples, which would delay shorter ones
	sampleEvery = 4       // such calls; a sample takes as long as two lines
	samples     = 16      // that decide, by majority

	// lateQuarters is how much of the time of a line from memory is late. On an AMD EPYC
	// (Zen 4), near lines take one quarter of it, and far ones four.
	lateQuarters = 3
)

// calibrate finds out how long a line takes from memory, and from the nearest cache: so
// long does timing take.
func (d *distance) calibrate(word *uint64) {
	var cached, flushed [2 * samples]uint64
	for i := range flushed {
		flushLine(word)
		flushed[i], cached[i] = loadTicks(word), loadTicks(word)
	}
	slices.Sort(flushed[:])
	timing, memory := slices.Min(cached[:]), flushed[len(flushed)/4]
	if memory > timing {
		d.late = timing + lateQuarters*(memory-timing)/4
	}
}

// sample takes the time in which a line came that another rank had just written.
func (d *distance) sample(ticks uint64) {
	d.recent = d.recent << 1 & (1<<samples - 1)
	if ticks >= d.late {
		d.recent |= 1
	}
	d.far = 2*bits.OnesCount32(d.recent) > samples
}

// measureDistance times a line of another rank's call, which has been shown. The line is that
// of the header, which the rank has just written and other ranks seldom read.
func (r *run) measureDistance() {
	t := r.t
	d := &t.distance
	if d.calls++; d.late == 0 || d.calls%sampleEvery != 0 {
		return
	}
	if d.peer++; d.peer%len(t.ranks) == t.self {
		d.peer++
	}
	d.peer %= len(t.ranks)
	d.sample(loadTicks((*uint64)(unsafe.Pointer(&t.slots[d.peer][r.parity].header[0]))))
}
