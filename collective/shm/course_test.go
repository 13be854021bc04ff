package shm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model is some ranks that make the same calls, each step of which begins and
// ends: between the two, others may do anything. Where all of them are says what
// every flag and every place in the memory holds, so all interleavings are
// covered when all positions that can be reached were seen.
type model struct {
	size     int
	programs [][]event // by rank
}

// An event is a step of a rank, as far as others can tell: what it waits for,
// what it reads and writes, and what it posts.
type event struct {
	waits  []mark
	reads  []place
	writes []place
	post   mark
}

// A mark is a value of a rank's flag.
type mark struct {
	rank  int
	flag  flag
	value uint64
}

// A place is a piece of memory, and what is there: the call or chunk that wrote
// it.
type place struct {
	name  string
	holds uint64
}

// none is no act.
const none act = 255

// In the lists of calls, a number is that of the chunks that go by copy, 0 is a
// small call, and these are calls that go in place, or by read in so many chunks.
const (
	placedCall = -1
	readCall   = -10 // in one chunk, -11 in two
)

// program is what a rank does in calls. Rank 0 does not wait before one act.
func program(self, size int, slots uint64, calls []int, without act) []event {
	var all []event
	base := uint64(0)
	for i, chunks := range calls {
		way := byCopy
		switch {
		case chunks <= readCall:
			way, chunks = byRead, readCall-chunks+1
		case chunks == placedCall:
			way, chunks = inPlace, 1
		}
		call := uint64(i + 1)
		line := func(r int) place { return place{fmt.Sprint("line ", r, call%2), call} }
		vector := vectors{call, chunks}
		if way != byCopy { // the vector is the caller's between calls
			all = append(all, event{writes: vector.all(self, size, vector.operand())})
		}
		all = append(all, event{writes: []place{line(self)}, post: mark{self, shown, call}})
		c := course{way: way, self: self, size: size, call: call, base: base, chunks: chunks, met: way != byCopy}
		if c.met {
			meet := step{act: meet, wait: shown, from: everybody, least: call}
			e := eventOf(meet, self, size, slots, base, line, vector)
			if without == none {
				all = append(all, e)
			} else if e.waits = nil; self != 0 || without != meet.act {
				all = append(all, eventOf(meet, self, size, slots, base, line, vector))
			} else {
				all = append(all, e)
			}
		}
		for s, ok := c.next(); ok; s, ok = c.next() {
			e := eventOf(s, self, size, slots, base, line, vector)
			if s.act == without && self == 0 {
				e.waits = nil
			}
			all = append(all, e)
		}
		if way != byCopy {
			all = append(all, event{reads: vector.all(self, size, vector.result())})
		}
		base += uint64(chunks)
	}
	return all
}

// vectors are the ranks' memory in a call. A piece holds an operand of the call,
// or its result.
type vectors struct {
	call   uint64
	chunks int
}

func (v vectors) operand() uint64 { return 2 * v.call }
func (v vectors) result() uint64  { return 2*v.call + 1 }

// at is the k-th chunk of a part in a rank's vector.
func (v vectors) at(rank, part, k int, holds uint64) place {
	return place{fmt.Sprint("vector ", rank, part, k), holds}
}

func (v vectors) all(rank, size int, holds uint64) (all []place) {
	for part := range size {
		for k := range v.chunks {
			all = append(all, v.at(rank, part, k, holds))
		}
	}
	return all
}

func eventOf(s step, self, size int, slots, base uint64, line func(int) place, v vectors) event {
	n := base + uint64(s.chunk)
	// Results lie apart from operands.
	operands := func(r int) place { return place{fmt.Sprint("operands ", r, n%slots), n + 1} }
	part := func(r int) place { return place{fmt.Sprint("part ", r, n%slots), n + 1} }
	var e event
	if s.value != 0 {
		e.post = mark{self, s.post, s.value}
	}
	for r := range size {
		if r == self || s.from != everybody && r != s.from {
			continue
		}
		if s.least > 0 {
			e.waits = append(e.waits, mark{r, s.wait, s.least})
		}
		switch s.act {
		case meet:
			e.reads = append(e.reads, line(r))
		case fold:
			e.reads = append(e.reads, operands(r))
		case gather:
			e.reads = append(e.reads, part(r))
		}
	}
	switch {
	case s.act == stage:
		e.writes = []place{operands(self)}
	case s.act == fold && size > 2:
		e.writes = []place{part(self)}
	case s.act == foldAll:
		for r := range size {
			e.reads = append(e.reads, v.at(r, self, 0, v.operand()))
			e.writes = append(e.writes, v.at(r, self, 0, v.result()))
		}
	case s.act == readOwn:
		for r := range size {
			e.reads = append(e.reads, v.at(r, self, s.chunk, v.operand()))
		}
		e.writes = append(e.writes, v.at(self, self, s.chunk, v.result()))
	case s.act == readOther:
		e.reads = append(e.reads, v.at(s.from, s.from, s.chunk, v.result()))
		e.writes = append(e.writes, v.at(self, s.from, s.chunk, v.result()))
	}
	return e
}

// check walks through every interleaving and returns what goes wrong in one of
// them, and how many positions there are.
func (m *model) check() (fault string, seen int) {
	visited := map[string]bool{}
	var walk func(at []int) string
	walk = func(at []int) string {
		key := fmt.Sprint(at)
		if visited[key] {
			return ""
		}
		visited[key] = true
		ended, stuck := true, true
		for r := range at {
			if at[r] == 2*len(m.programs[r]) {
				continue
			}
			ended = false
			if at[r]%2 == 0 && !m.ready(at, r) {
				continue
			}
			stuck = false
			if at[r]%2 == 0 {
				if bad := m.enters(at, r); bad != "" {
					return bad
				}
			}
			at[r]++
			bad := walk(at)
			at[r]--
			if bad != "" {
				return bad
			}
		}
		if stuck && !ended {
			return "nobody can go on at " + key
		}
		return ""
	}
	return walk(make([]int, m.size)), len(visited)
}

// ready reports whether what a rank's next event waits for is there.
func (m *model) ready(at []int, rank int) bool {
	for _, w := range m.programs[rank][at[rank]/2].waits {
		have := uint64(0)
		for _, e := range m.programs[w.rank][:at[w.rank]/2] {
			// The two lines of shown are words of their own.
			if e.post.flag == w.flag && e.post.value != 0 && (w.flag != shown || e.post.value%2 == w.value%2) {
				have = e.post.value
			}
		}
		if have < w.value {
			return false
		}
	}
	return true
}

// enters says what is wrong when a rank begins its next event: memory that
// somebody else is busy with, or that does not hold what is to be read there.
func (m *model) enters(at []int, rank int) string {
	e := m.programs[rank][at[rank]/2]
	for r := range at {
		if r == rank || at[r]%2 == 0 {
			continue
		}
		busy := m.programs[r][at[r]/2]
		for _, w := range e.writes {
			if touches(busy.reads, w.name) || touches(busy.writes, w.name) {
				return fmt.Sprintf("rank %d writes %s, which rank %d uses, at %v", rank, w.name, r, at)
			}
		}
		for _, p := range e.reads {
			if touches(busy.writes, p.name) {
				return fmt.Sprintf("rank %d reads %s, which rank %d writes, at %v", rank, p.name, r, at)
			}
		}
	}
	for _, p := range e.reads {
		holds := uint64(0)
		for r := range at {
			for _, past := range m.programs[r][:at[r]/2] {
				for _, w := range past.writes {
					if w.name == p.name {
						holds = max(holds, w.holds) // what is written later is more
					}
				}
			}
		}
		if holds != p.holds {
			return fmt.Sprintf("rank %d reads %s: it holds %d, not %d, at %v", rank, p.name, holds, p.holds, at)
		}
	}
	return ""
}

func touches(places []place, name string) bool {
	for _, p := range places {
		if p.name == name {
			return true
		}
	}
	return false
}

// However two or three ranks run against each other, nobody reads what is not
// there yet or no more, nobody writes what another reads, and all come to the
// end. Calls without chunks alternate with short and long ones.
func TestCourseInEveryInterleaving(t *testing.T) {
	for _, c := range []struct {
		size  int
		calls []int
	}{
		{2, []int{0, 0, 0, 0}},
		{2, []int{0, 6, 0, 1, 5, 0}},
		{2, []int{5, 3, 1, 1, 1, 2}},
		{3, []int{0, 0, 0, 0}},
		{3, []int{7}},
		{3, []int{0, 5, 0}},
		{3, []int{1, 4}},
		{3, []int{1, 1, 1, 1, 1, 1}},
		{4, []int{0, 2}},
		{2, []int{placedCall, placedCall, 0, placedCall}},
		{2, []int{3, placedCall, 5, readCall, 2}},
		{2, []int{readCall - 2, readCall - 1, 0, placedCall, readCall}},
		{3, []int{placedCall, placedCall}},
		{3, []int{readCall - 1}},
		{3, []int{placedCall, readCall}},
		{3, []int{2, placedCall}},
	} {
		t.Run(fmt.Sprint(c.size, " ranks ", c.calls), func(t *testing.T) {
			fault, seen := modelOf(c.size, stageSlots, c.calls, none).check()
			require.Empty(t, fault)
			t.Logf("%d positions", seen)
			require.Greater(t, seen, 50)
		})
	}
}

func modelOf(size int, slots uint64, calls []int, without act) *model {
	m := &model{size: size}
	for r := range size {
		m.programs = append(m.programs, program(r, size, slots, calls, without))
	}
	return m
}

// Every wait of the course is needed: without any one of them, some
// interleaving goes wrong. So it does with fewer slots.
func TestCourseWithoutAWait(t *testing.T) {
	for _, size := range []int{2, 3} {
		for _, c := range []struct {
			without act
			calls   []int
		}{
			{meet, []int{0, 0, 5}},
			{fold, []int{0, 0, 5}},
			{gather, []int{0, 0, 5}},
			{meet, []int{placedCall}},
			{rest, []int{placedCall}},
			{meet, []int{readCall}},
			{readOther, []int{readCall}},
			{rest, []int{readCall, readCall}},
		} {
			if size == 2 && c.without == gather {
				continue // two ranks have nothing to gather
			}
			fault, _ := modelOf(size, stageSlots, c.calls, c.without).check()
			require.NotEmpty(t, fault, "%d ranks, act %d does not wait in %v", size, c.without, c.calls)
		}
	}
	fault, _ := modelOf(2, stageSlots-1, []int{5, 5}, none).check()
	require.NotEmpty(t, fault)
}

// Parts cover a chunk without gaps, each element once.
func TestPartsCoverAChunk(t *testing.T) {
	for size := 2; size <= 9; size++ {
		for _, n := range []int{0, 1, 63, 64, 65, 1000, 65536} {
			at := 0
			for r := range size {
				lo, hi := part(n, size, r)
				require.Equal(t, at, lo)
				require.LessOrEqual(t, lo, hi)
				at = hi
			}
			require.Equal(t, n, at)
		}
	}
}

// Nothing in the memory lies on anything else.
func TestLayoutsDoNotOverlap(t *testing.T) {
	for _, size := range []int{2, 3, 4, 8, 16, 64} {
		l := newLayout(size)
		end := 0
		next := func(at, n int, what string) {
			require.GreaterOrEqual(t, at, end, "%s of %d ranks", what, size)
			require.Zero(t, at%lineBytes, what)
			end = at + n
		}
		for r := range size {
			for parity := range 2 {
				next(l.flag(r, shown, parity), lineBytes, "shown")
			}
			for f := staged; f < flags; f++ {
				next(l.flag(r, f, 0), pairBytes, "flag")
			}
			next(l.sleep(r), lineBytes, "sleep")
			next(l.proof(r), lineBytes, "proof")
			next(l.door(r), doorBytes, "door")
			next(l.header(r, 0), lineBytes, "header")
			next(l.header(r, 1), lineBytes, "header")
		}
		for from := range size {
			for to := range size {
				next(l.lane(from, to), atRingData+l.ring, "ring")
			}
		}
		for r := range size {
			next(l.small(r, 0), smallBytes, "small")
			next(l.small(r, 1), smallBytes, "small")
		}
		for r := range size {
			for n := range uint64(stageSlots) {
				next(l.stage(r, n), l.chunk, "stage")
			}
		}
		for r := range size {
			for n := range uint64(stageSlots) {
				if size > 2 {
					next(l.result(r, n), l.part, "result")
				}
			}
		}
		require.Equal(t, end, l.total)
		for _, width := range []int{1, 2, 4, 8} {
			lo, hi := part(l.chunk/width, size, 0)
			require.True(t, size == 2 || (hi-lo)*width <= l.part, "%d ranks, %d bytes", size, width)
		}
		require.Less(t, l.total, 160<<20, "%d ranks", size)
	}
}
