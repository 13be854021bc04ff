package schedule

import (
	"math"
	"time"
)

// A Table says what was measured to be the fastest in a group of so many Ranks,
// by size, the smallest first.
type Table struct {
	Ranks   int
	Entries []Entry
}

// An Entry is the fastest way to reduce vectors of about so many bytes.
type Entry struct {
	Bytes     int
	Method    Method
	Segment   int           // bytes of a message at most
	Measured  time.Duration // the median of the slowest rank; 0 in a table that says what to do whatever it takes
	Predicted time.Duration // by the model of costs, for comparison
}

// beyond is how many times the largest size that was measured still says
// something: farther on, latency may have decided and bandwidth does now.
const beyond = 4

// find is the entry of the size that is nearest, as a ratio.
func (t *Table) find(size, bytes int) (Entry, bool) {
	if t == nil || t.Ranks != size || len(t.Entries) == 0 {
		return Entry{}, false
	}
	best := t.Entries[0]
	for _, e := range t.Entries[1:] {
		if distance(e.Bytes, bytes) < distance(best.Bytes, bytes) {
			best = e
		}
	}
	if best.Measured != 0 && bytes > beyond*best.Bytes && best == t.Entries[len(t.Entries)-1] {
		return Entry{}, false
	}
	return best, true
}

// distance is of two sizes, as the logarithm of their ratio.
func distance(a, b int) float64 {
	return math.Abs(math.Log(float64(max(a, 1))) - math.Log(float64(max(b, 1))))
}

// Only is a table by which every size goes by one method, in messages of so many
// bytes, wherever the method can do it.
func Only(ranks int, m Method, segment int) *Table {
	return &Table{Ranks: ranks, Entries: []Entry{{Method: m, Segment: segment}}}
}

// plan is how the entry says that elements of width bytes are reduced.
func (e Entry) plan(width int) Plan {
	p := Plan{Method: e.Method, Segment: elementsOf(e.Segment, width), Why: "measured to be the fastest (tune)"}
	if e.Measured == 0 {
		p.Why = "forced"
	}
	if p.Method == Ring {
		p.Ahead = RingAhead
	}
	return p
}

// Expect is how long so many bytes take according to what was measured: between
// two sizes in proportion to the bytes, a little beyond the largest as fast as
// that.
func (t *Table) Expect(size, bytes int) (time.Duration, bool) {
	if e, ok := t.find(size, bytes); !ok || e.Measured == 0 {
		return 0, false
	}
	before := t.Entries[0]
	if bytes <= before.Bytes {
		return before.Measured, true
	}
	for _, e := range t.Entries[1:] {
		if bytes <= e.Bytes {
			part := float64(bytes-before.Bytes) / float64(e.Bytes-before.Bytes)
			return before.Measured + time.Duration(part*float64(e.Measured-before.Measured)), true
		}
		before = e
	}
	return time.Duration(float64(before.Measured) * float64(bytes) / float64(before.Bytes)), true
}
