package shm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/calibration"
)

// A model is a set of ranks that make the same calls. Each step has a beginning
// and an end, between which the other ranks may do anything. The positions of all
// ranks determine what every flag and every cell of the memory holds, so visiting
// all reachable positions covers all interleavings.
type model struct {
	size     int
	programs [][]event // by rank
}

// An event is what others can observe of a rank's step: what it waits for, what
// it reads and writes, and which flag it raises.
type event struct {
	waits  []flagValue
	reads  []cell
	writes []cell
	raise  flagValue
}

type flagValue struct {
	rank  int
	flag  flag
	value uint64
}

// A cell is a piece of memory and what it holds: the call or chunk that wrote it.
type cell struct {
	name  string
	holds uint64
}

// none is no act.
const none act = 255

// In a list of calls, a positive number is a call by copy in that many chunks,
// and 0 is a small call. These are the others.
const (
	inPlaceCall = -1
	readCall    = -10 // by read in one chunk; -11 is in two
)

// program returns what a rank does in the calls. Rank 0 skips the wait before the
// act without.
func program(self, size int, slots uint64, calls []int, without act) []event {
	var all []event
	base := uint64(0)
	for i, chunks := range calls {
		way := byCopy
		switch {
		case chunks <= readCall:
			way, chunks = byRead, readCall-chunks+1
		case chunks == inPlaceCall:
			way, chunks = inPlace, 1
		}
		call := uint64(i + 1)
		line := func(r int) cell { return cell{fmt.Sprint("line ", r, call%2), call} }
		vector := vectors{call, chunks}
		add := func(s step) {
			e := eventOf(s, self, size, slots, base, line, vector)
			if s.act == without && self == 0 {
				e.waits = nil
			}
			all = append(all, e)
		}
		if way != byCopy { // the vector is the caller's between calls
			all = append(all, event{writes: vector.all(self, size, vector.operand())})
		}
		all = append(all, event{writes: []cell{line(self)}, raise: flagValue{self, shown, call}})
		c := steps{way: way, self: self, size: size, call: call, base: base, chunks: chunks, matched: way != byCopy}
		if c.matched {
			add(step{act: match, wait: shown, from: allOthers, least: call})
		}
		for s, ok := c.next(); ok; s, ok = c.next() {
			add(s)
		}
		if way != byCopy {
			all = append(all, event{reads: vector.all(self, size, vector.result())})
		}
		base += uint64(chunks)
	}
	return all
}

// vectors are the ranks' vectors in a call. Each cell holds an operand of the call
// or a result.
type vectors struct {
	call   uint64
	chunks int
}

func (v vectors) operand() uint64 { return 2 * v.call }
func (v vectors) result() uint64  { return 2*v.call + 1 }

// at returns the k-th chunk of a part of a rank's vector.
func (v vectors) at(rank, part, k int, holds uint64) cell {
	return cell{fmt.Sprint("vector ", rank, part, k), holds}
}

func (v vectors) all(rank, size int, holds uint64) (all []cell) {
	for part := range size {
		for k := range v.chunks {
			all = append(all, v.at(rank, part, k, holds))
		}
	}
	return all
}

func eventOf(s step, self, size int, slots, base uint64, line func(int) cell, v vectors) event {
	n := base + uint64(s.chunk)
	// Results and operands are in separate memory.
	operands := func(r int) cell { return cell{fmt.Sprint("operands ", r, n%slots), n + 1} }
	part := func(r int) cell { return cell{fmt.Sprint("part ", r, n%slots), n + 1} }
	var e event
	if s.value != 0 {
		e.raise = flagValue{self, s.raise, s.value}
	}
	for r := range size {
		if r == self || s.from != allOthers && r != s.from {
			continue
		}
		if s.least > 0 {
			e.waits = append(e.waits, flagValue{r, s.wait, s.least})
		}
		switch s.act {
		case match:
			e.reads = append(e.reads, line(r))
		case fold:
			e.reads = append(e.reads, operands(r))
		case copyResult:
			e.reads = append(e.reads, part(r))
		}
	}
	switch {
	case s.act == stage:
		e.writes = []cell{operands(self)}
	case s.act == fold && size > 2:
		e.writes = []cell{part(self)}
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

// check visits every interleaving. It returns a fault of one of them, or "", and
// the number of positions that it has visited.
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
			return "deadlock at " + key
		}
		return ""
	}
	return walk(make([]int, m.size)), len(visited)
}

// ready reports whether the flags that a rank's next event waits for have been
// raised.
func (m *model) ready(at []int, rank int) bool {
	for _, w := range m.programs[rank][at[rank]/2].waits {
		have := uint64(0)
		for _, e := range m.programs[w.rank][:at[w.rank]/2] {
			// shown is two words, one for even calls and one for odd calls.
			if e.raise.flag == w.flag && e.raise.value != 0 && (w.flag != shown || e.raise.value%2 == w.value%2) {
				have = e.raise.value
			}
		}
		if have < w.value {
			return false
		}
	}
	return true
}

// enters describes what is wrong with a rank's next event, or returns "": another rank is
// using the memory, or the memory does not hold what the event expects to read.
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
						holds = max(holds, w.holds) // later writes have higher numbers
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

func touches(cells []cell, name string) bool {
	for _, p := range cells {
		if p.name == name {
			return true
		}
	}
	return false
}

// In every interleaving, no rank reads data too early or too late, none writes
// what another is reading, and all finish. Small calls alternate with short and
// long ones.
func TestStepsInEveryInterleaving(t *testing.T) {
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
		{2, []int{inPlaceCall, inPlaceCall, 0, inPlaceCall}},
		{2, []int{3, inPlaceCall, 5, readCall, 2}},
		{2, []int{readCall - 2, readCall - 1, 0, inPlaceCall, readCall}},
		{3, []int{inPlaceCall, inPlaceCall}},
		{3, []int{readCall - 1}},
		{3, []int{inPlaceCall, readCall}},
		{3, []int{2, inPlaceCall}},
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

// Every wait is necessary: without any one of them, some interleaving fails. The
// same is true of every slot.
func TestStepsWithoutAWait(t *testing.T) {
	for _, size := range []int{2, 3} {
		for _, c := range []struct {
			without act
			calls   []int
		}{
			{match, []int{0, 0, 5}},
			{fold, []int{0, 0, 5}},
			{copyResult, []int{0, 0, 5}},
			{match, []int{inPlaceCall}},
			{waitOnly, []int{inPlaceCall}},
			{match, []int{readCall}},
			{readOther, []int{readCall}},
			{waitOnly, []int{readCall, readCall}},
		} {
			if size == 2 && c.without == copyResult {
				continue // two ranks copy no results
			}
			fault, _ := modelOf(size, stageSlots, c.calls, c.without).check()
			require.NotEmpty(t, fault, "%d ranks, no wait before act %d, calls %v", size, c.without, c.calls)
		}
	}
	fault, _ := modelOf(2, stageSlots-1, []int{5, 5}, none).check()
	require.NotEmpty(t, fault)
}

// The parts of a chunk cover each element exactly once.
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

// No two things share memory.
func TestLayoutsDoNotOverlap(t *testing.T) {
	for _, size := range []int{2, 3, 4, 8, 16, 64} {
		layoutDoesNotOverlap(t, newLayout(size))
		for chunk := 16 << 10; chunk <= calibration.MostChunk; chunk += 12 << 10 {
			l := newLayout(size)
			require.LessOrEqual(t, l.stageIn(chunk), l.total)
			layoutDoesNotOverlap(t, l)
			for _, room := range []int{l.slot, l.part} {
				staysInSlot(t, &l, room)
			}
		}
	}
}

// staysInSlot tests that chunks and parts of results lie in their slot, and in different places
// in turn if their call is short.
func staysInSlot(t *testing.T, l *layout, room int) {
	if room == 0 { // there are no results of two ranks
		return
	}
	places := func(bytes, call int) (n int) {
		seen := map[int]bool{}
		for turn := range uint64(2 * room / pageBytes) {
			at := l.turn(turn*stageSlots, bytes, room, call)
			if at < 0 || at+bytes > room || at%pageBytes != 0 {
				t.Fatalf("%d bytes at %d in a slot of %d", bytes, at, room)
			}
			seen[at] = true
		}
		return len(seen)
	}
	short := min(l.rotateMost, l.chunkOf(1))
	for _, bytes := range []int{0, 1, pageBytes, pageBytes + 1, room / 3, room/2 + pageBytes, room} {
		require.Equal(t, max(1, room/pages(max(1, bytes))), places(bytes, short), "%d bytes", bytes)
		require.Equal(t, 1, places(bytes, l.rotateMost+1), "%d bytes of a longer call", bytes)
		require.Equal(t, 1, places(bytes, calibration.MostChunk+1), "%d bytes of a call of several chunks", bytes)
	}
}

func layoutDoesNotOverlap(t *testing.T, l layout) {
	size := l.size
	end := 8 * (calibration.Words + 2) // the choices
	require.LessOrEqual(t, end, atWakeUp)
	require.LessOrEqual(t, atAwake+lineBytes, l.ranks)
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
		next(l.serverAddress(r), addressBytes, "address of the server")
		next(l.header(r, 0), lineBytes, "header")
		next(l.header(r, 1), lineBytes, "header")
	}
	for from := range size {
		for to := range size {
			if to != from {
				next(l.ringAt(from, to), atRingData+l.ring, "ring")
			}
		}
	}
	for r := range size {
		next(l.small(r, 0), calibration.MostSmall, "small")
		next(l.small(r, 1), calibration.MostSmall, "small")
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
	require.LessOrEqual(t, end, l.total)
	for _, width := range []int{1, 2, 4, 8} {
		lo, hi := part(l.chunk/width, size, 0)
		require.True(t, size == 2 || (hi-lo)*width <= l.part, "%d ranks, %d bytes", size, width)
	}
	require.Less(t, l.total, 160<<20, "%d ranks", size)
}
