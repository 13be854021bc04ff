package schedule

import (
	"math"
	"slices"
	"time"
)

// A Situation is what the plans of a group depend on, besides the vector. It is
// the same on all ranks, so their plans are the same.
type Situation struct {
	Hosts  []int // of each rank; equal numbers are equal hosts
	Links        // what calls and links cost
	Shared bool  // the transport reduces in shared memory

	Any   bool   // methods that do not keep ring order may be chosen
	Force Method // 0, or the method to use wherever possible
	Table *Table // measurements; nil if there are none
	Try   Rival  // how a call is made that is timed for comparison; zero: as planned
}

// anyOrder lists the methods that do not keep ring order.
var anyOrder = [...]Method{Halving, Tree, Hierarchical}

// RingOrdered reports whether the method keeps ring order.
func (m Method) RingOrdered() bool { return !slices.Contains(anyOrder[:], m) }

// partial reports whether partial results travel as elements.
func (m Method) partial() bool { return m == Ring || !m.RingOrdered() }

// Plan returns how count elements of width bytes are reduced. partial says that
// partial results fit into elements. Measurements take precedence over
// predictions.
func (s *Situation) Plan(count, width int, partial bool) Plan {
	size := len(s.Hosts)
	if s.forced(count, width, partial) {
		p := PlanReduce(size, count, width, s.OneHost(), partial)
		p.Method, p.Why = s.Force, "forced"
		if p.Method == Ring {
			p.Ahead = RingAhead
		}
		return p
	}
	if e, ok := s.tuned(count, width, partial); ok {
		return e.plan(width)
	}
	if s.Shared {
		return PlanShared()
	}
	p := PlanReduce(size, count, width, s.OneHost(), partial)
	if r := s.measured(count * width); r != (Rival{}) && (partial || !r.Method.partial()) {
		p = planNear(r.Method, size, count, width)
		if r.Segment != 0 {
			p.Segment = elementsOf(r.Segment, width)
		}
		p.Why = "took the least time when the group formed"
	}
	if !s.Any || !partial || size < 3 {
		return p
	}
	bytes := float64(count * width)
	least := s.nanoseconds(p, bytes, float64(p.Segment*width))
	for _, m := range anyOrder {
		if !s.can(m, partial, true) {
			continue
		}
		for per := leastNear; per <= SegmentBytes; per *= 2 {
			q := Plan{Method: m, Segment: elementsOf(per, width), Why: "any order, and predicted to take the least time"}
			if t := s.nanoseconds(q, bytes, float64(q.Segment*width)) * doubt(m, count*width); t < least {
				p, least = q, t
			}
		}
	}
	return p
}

// Expect returns Table.Expect for vectors whose Plan comes from the table. The table's
// times say nothing about other plans.
func (s *Situation) Expect(count, width int, partial bool) (time.Duration, bool) {
	if _, ok := s.tuned(count, width, partial); !ok || s.forced(count, width, partial) {
		return 0, false
	}
	return s.Table.Expect(len(s.Hosts), count*width)
}

// forced reports whether Force is used for count elements of width bytes.
func (s *Situation) forced(count, width int, partial bool) bool {
	return s.Force != 0 && s.can(s.Force, partial, true) && s.sendable(Plan{Method: s.Force}, count, width)
}

// tuned returns the table's entry for count elements of width bytes, if it can be used.
func (s *Situation) tuned(count, width int, partial bool) (Entry, bool) {
	e, ok := s.Table.find(len(s.Hosts), count*width)
	return e, ok && s.can(e.Method, partial, s.Any) && s.sendable(e.plan(width), count, width)
}

// sendable reports whether the length of a plan's messages fits into a header.
func (s *Situation) sendable(p Plan, count, width int) bool {
	return uint64(p.Message(len(s.Hosts), count)) <= math.MaxUint32/uint64(width)
}

// rivals returns the ways that may take less time than the plan to reduce vectors of some
// bytes among a few ranks of one host. Which one is the fastest there depends on caches and
// on how ranks share cores. All keep ring order.
func (s *Situation) rivals(bytes int) []Rival {
	size := len(s.Hosts)
	if s.Shared || size < 2 || size > mostRivals || !s.OneHost() {
		return nil
	}
	if size == 2 {
		if bytes == 1<<20 || bytes == 2<<20 { // longer vectors spill from every cache
			return []Rival{{Ring, longPair}}
		}
		return nil
	}
	var all []Method
	switch bytes {
	case 16 << 10, 64 << 10:
		all = []Method{Bruck, Collected, Direct}
	case 1 << 20: // there is no time for enough calls of 4 MiB
		all = []Method{Direct, Ring}
	}
	var rivals []Rival
	for _, m := range all {
		if m != s.unmeasured(bytes) {
			rivals = append(rivals, Rival{Method: m})
		}
	}
	return rivals
}

// unmeasured returns the method that the ranks of one host use if no rival was faster.
func (s *Situation) unmeasured(bytes int) Method {
	return PlanReduce(len(s.Hosts), bytes/4, 4, true, true).Method
}

// measured returns the rival that took the least time, if one did, among the timed calls of
// about that many bytes: it was faster than a method, so it counts where that would be used.
// Between two ranks, the longest calls with a rival count for all longer ones.
func (s *Situation) measured(bytes int) (best Rival) {
	if s.Try != (Rival{}) {
		return s.Try
	}
	pair := len(s.Hosts) == 2
	for _, c := range s.Calls {
		switch {
		case pair && len(s.rivals(c.Bytes)) > 0 && 2*c.Bytes < 3*bytes:
			best = c.Rival
		case pair || c.Rival == Rival{}:
		case c.Bytes <= 2*bytes && 2*bytes < 3*c.Bytes && s.unmeasured(bytes) == s.unmeasured(c.Bytes):
			return c.Rival
		}
	}
	return best
}

// sure is the most bytes whose predictions are believed.
const sure = 128 << 10

// doubt returns by how much a method may take longer than predicted. Halving and Tree
// change partners from step to step, and TCP starts slowly with each. On 16 hosts at
// 100 Mbit/s, halving took .87 to .98 times as long as the ring up to sure, about as long
// at 256 KiB, and 1.4 to 2 times as long at 1 and 4 MiB.
func doubt(m Method, bytes int) float64 {
	if m == Tree || m == Halving && bytes > sure {
		return 1.4
	}
	return 1
}

// AlwaysShared reports whether every Plan is PlanShared. It lets callers skip
// planning, because a call of a few bytes takes less than a microsecond.
func (s *Situation) AlwaysShared() bool { return s.Shared && s.Force == 0 && s.Table == nil }

// can reports whether a method can be used here.
func (s *Situation) can(m Method, partial, any bool) bool {
	switch {
	case m == Shared:
		return s.Shared
	case m.partial() && !partial, !m.RingOrdered() && !any:
		return false
	case m == Hierarchical:
		l := localityOf(0, s.Hosts)
		return l.hosts > 1 && l.hosts < len(s.Hosts)
	}
	return m == OneShot || m == Bruck || m == Collected || m == Direct || m == Ring || m == Halving || m == Tree
}

// Candidates returns the methods by which float32 sums can be reduced here,
// those of ring order first.
func (s *Situation) Candidates() []Method {
	var all []Method
	for _, m := range reducing {
		if s.can(m, true, s.Any) {
			all = append(all, m)
		}
	}
	return all
}

// OneHost reports whether all ranks are on one host.
func (s *Situation) OneHost() bool {
	for _, h := range s.Hosts {
		if h != s.Hosts[0] {
			return false
		}
	}
	return true
}
