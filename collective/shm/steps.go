package shm

// A flag is a word that counts what a rank has done. It only grows.
type flag uint8

// The flags of a rank.
const (
	shown   flag = iota // calls whose header, and small data, others can read
	staged              // chunks whose operands others can read
	folded              // chunks whose result of this rank's part others can read; unused by copy between two ranks
	fetched             // chunks whose results this rank has read from the memory of all others
	flags
)

// An act is what a rank does in one step of a reduction.
type act uint8

// The acts.
const (
	stage      act = iota // copies the operands of a chunk to where the others read them
	match                 // compares the call with those of all other ranks
	fold                  // folds its own part of a chunk; with two ranks, each folds the whole chunk
	copyResult            // copies the result of another rank's part of a chunk
	foldAll               // folds its own part of all ranks' vectors, and writes the result into all of them
	readOwn               // reads the others' operands of a chunk of its own part, and folds it
	readOther             // reads the result of a chunk of another rank's part
	waitOnly
)

// A way is how operands get to the ranks that fold them, and results to all
// ranks.
type way uint8

// The ways. All ranks go the same way in a call.
const (
	byCopy  way = iota // copied through the region that all ranks share
	inPlace            // the vectors themselves lie in shared memory
	byRead             // read from the memory of other processes
)

// allOthers stands for all ranks except this one.
const allOthers = -1

// A step is what a rank does next. The rank waits for a flag, acts, and then
// raises one of its own flags.
type step struct {
	act   act
	chunk int // number within the call

	wait  flag
	from  int    // the rank whose flag to wait for, or allOthers
	least uint64 // the value to wait for; 0 means do not wait

	raise flag
	value uint64 // 0 means raise none
}

// steps yields the steps of one rank in one reduction, after the rank has shown
// its call. It is a state machine without memory or clocks.
//
// By copy, a rank works on three chunks per turn: it stages one, folds the one
// before, and copies the results of the one before that. So it seldom waits for
// what another rank is about to do. It stages into stageSlots slots in turn, and
// need not check that the others are done with a slot: before it writes to the
// slot again, it has waited for flags that each of them raises only after it has
// read the slot.
//
// In place there is one chunk, the whole vector. Each part belongs to one rank,
// from when all ranks have shown their calls until that rank has folded the part.
//
// By read, each rank divides its own part into chunks. It folds a chunk of its
// part in each turn, and reads the results of the previous turn from the others.
// No rank returns before all have fetched all results, because from then on the
// vector is the caller's.
type steps struct {
	way        way
	self, size int
	call       uint64 // the number of the call
	matched    bool   // the call has been compared with the others
	base       uint64 // number of chunks in all earlier calls
	chunks     int

	turn, at int // the next step is step at of this turn
}

// next returns the next step, or false after the last one.
func (c *steps) next() (s step, ok bool) {
	for c.turn <= c.last() {
		at := c.at
		c.at++
		switch c.way {
		case inPlace:
			return c.inPlace(at)
		case byRead:
			if s, ok := c.byRead(at); ok {
				return s, true
			}
			continue
		}
		switch {
		case at == 0 && c.turn < c.chunks:
			return c.stage(c.turn), true
		case at == 1 && c.turn == 0 && !c.matched:
			return step{act: match, wait: shown, from: allOthers, least: c.call}, true
		case at == 2 && c.turn >= 1 && c.turn <= c.chunks:
			return c.fold(c.turn - 1), true
		case at >= 3 && at < 2+c.size && c.size > 2 && c.turn >= 2:
			return c.copyResult(c.turn-2, at-2), true
		case at >= 2+c.size:
			c.turn, c.at = c.turn+1, 0
		}
	}
	return step{}, false
}

// last returns the turn in which the last chunk is done.
func (c *steps) last() int {
	if c.way == byCopy && c.size == 2 {
		return c.chunks
	}
	return c.chunks + 1
}

// inPlace returns the at-th step.
func (c *steps) inPlace(at int) (s step, ok bool) {
	switch at {
	case 0:
		return step{act: foldAll, raise: folded, value: c.base + 1}, true
	case 1:
		return step{act: waitOnly, wait: folded, from: allOthers, least: c.base + 1}, true
	}
	return step{}, false
}

// byRead returns the at-th step of a turn.
func (c *steps) byRead(at int) (s step, ok bool) {
	n := c.base + uint64(c.turn)
	switch {
	case at == 0 && c.turn < c.chunks:
		return step{act: readOwn, chunk: c.turn, raise: folded, value: n + 1}, true
	case at == 0 && c.turn > c.chunks:
		return step{act: waitOnly, wait: fetched, from: allOthers, least: n - 1}, true
	case at > 0 && at < c.size && c.turn > 0 && c.turn <= c.chunks:
		s = step{act: readOther, chunk: c.turn - 1, wait: folded, from: (c.self + at) % c.size, least: n}
		if c.turn == c.chunks && at == c.size-1 {
			s.raise, s.value = fetched, n
		}
		return s, true
	case at >= c.size:
		c.turn, c.at = c.turn+1, 0
	}
	return step{}, false
}

func (c *steps) stage(k int) step {
	return step{act: stage, chunk: k, raise: staged, value: c.base + uint64(k) + 1}
}

func (c *steps) fold(k int) step {
	n := c.base + uint64(k) + 1
	s := step{act: fold, chunk: k, wait: staged, from: allOthers, least: n}
	if c.size > 2 {
		s.raise, s.value = folded, n
	}
	return s
}

// copyResult returns the step that copies the part of the i-th other rank,
// counted from 1.
func (c *steps) copyResult(k, i int) step {
	return step{act: copyResult, chunk: k, wait: folded, from: (c.self + i) % c.size, least: c.base + uint64(k) + 1}
}
