package schedule

import "time"

// A Table holds the fastest measured plan for each vector size, in a group with
// the given number of Ranks. Entries are sorted by size.
type Table struct {
	Ranks   int
	Entries []Entry
}

// An Entry is the fastest way to reduce vectors of about the given number of
// bytes.
type Entry struct {
	Bytes     int
	Method    Method
	Segment   int           // maximum bytes per message
	Measured  time.Duration // the median of the slowest rank; 0 in a table made by Only
	Predicted time.Duration // by the model of costs, for comparison
}

// beyond limits how far above the largest measured size the table applies, as a
// factor. Further up, latency may have decided the measurement, while bandwidth
// decides now.
const beyond = 4

// find returns the entry whose size is nearest, by ratio.
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

// distance returns the ratio of the larger of two sizes to the smaller. A quotient has the
// same bits on every processor, so all ranks find the same entry.
func distance(a, b int) float64 {
	a, b = max(a, 1), max(b, 1)
	return float64(max(a, b)) / float64(min(a, b))
}

// Only returns a table by which vectors of every size use one method, in
// messages of the given number of bytes, wherever the method is possible.
func Only(ranks int, m Method, segment int) *Table {
	return &Table{Ranks: ranks, Entries: []Entry{{Method: m, Segment: segment}}}
}

// plan returns the entry's plan for elements of width bytes.
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

// Expect returns how long a reduction of the given number of bytes takes
// according to the measurements. It interpolates linearly between sizes.
// Somewhat above the largest size, it assumes the bandwidth of that size.
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
