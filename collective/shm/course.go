package shm

// A flag is a word that counts what a rank has done. It only grows.
type flag uint8

// The flags of a rank.
const (
	shown  flag = iota // calls whose header, and small data, can be read
	staged             // chunks whose operands can be read
	folded             // chunks whose own part can be read; unused by copy between two ranks
	taken              // chunks that this rank has read from all others' memory
	flags
)

// An act is what a rank does in one step of a reduction.
type act uint8

// The acts.
const (
	stage     act = iota // copies the operands of a chunk to where the others read them
	meet                 // compares the call with all other ranks'
	fold                 // folds its own part of a chunk; with two ranks, each folds all of it
	gather               // copies another rank's part of a chunk
	foldAll              // folds its own part of all ranks' vectors, into all of them
	readOwn              // reads the others' operands of a chunk of its own part, and folds it
	readOther            // reads a chunk of another rank's part
	rest                 // only waits
)

// A way is how operands get to the ranks that fold them, and results to all
// ranks.
type way uint8

// The ways. All ranks take the same way in a call.
const (
	byCopy  way = iota // copied through the region that all ranks share
	inPlace            // the vectors themselves lie in shared memory
	byRead             // read from the memory of other processes
)

// everybody stands for all ranks except this one.
const everybody = -1

// A step is an act, what it waits for, and what it publishes.
type step struct {
	act   act
	chunk int // number within the call

	wait  flag
	from  int    // a rank whose flag to wait for, or everybody
	least uint64 // what the flag must have reached; 0 means not to wait

	post  flag
	value uint64 // 0 means not to post
}

// A course is the steps of one rank in one reduction, after it has shown its
// call: a state machine without memory or clocks.
//
// By copy: while a chunk is folded the one after it is staged already, and
// gathered is the one before it, so that a rank seldom waits for the very thing
// another is about to do. A rank stages into stageSlots slots in turn. It need
// not ask whether the others are done with what was there: that they have
// staged, or folded, what this rank has waited for meanwhile says so.
//
// In place there is one chunk, the vector. A part belongs to one rank from when
// all have shown their calls to when that rank has folded it.
//
// By read each rank has its own chunks, of its own part: the k-th chunks of all
// parts are no more than each other's neighbours in time. Nobody returns before
// all have taken what they need, because then the vector is the caller's.
type course struct {
	way        way
	self, size int
	call       uint64 // the number of the call
	met        bool   // the call has been compared with the others
	base       uint64 // number of chunks in all earlier calls
	chunks     int

	turn, place int
}

// next returns the next step, or false after the last one.
func (c *course) next() (s step, ok bool) {
	for c.turn <= c.last() {
		at := c.place
		c.place++
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
		case at == 1 && c.turn == 0 && !c.met:
			return step{act: meet, wait: shown, from: everybody, least: c.call}, true
		case at == 2 && c.turn >= 1 && c.turn <= c.chunks:
			return c.fold(c.turn - 1), true
		case at >= 3 && at < 2+c.size && c.size > 2 && c.turn >= 2:
			return c.gather(c.turn-2, at-2), true
		case at >= 2+c.size:
			c.turn, c.place = c.turn+1, 0
		}
	}
	return step{}, false
}

// last returns the turn in which the last chunk is done.
func (c *course) last() int {
	if c.way == byCopy && c.size == 2 {
		return c.chunks
	}
	return c.chunks + 1
}

// inPlace returns the at-th step.
func (c *course) inPlace(at int) (s step, ok bool) {
	switch at {
	case 0:
		return step{act: foldAll, post: folded, value: c.base + 1}, true
	case 1:
		return step{act: rest, wait: folded, from: everybody, least: c.base + 1}, true
	}
	return step{}, false
}

// byRead returns the at-th step of a turn.
func (c *course) byRead(at int) (s step, ok bool) {
	n := c.base + uint64(c.turn)
	switch {
	case at == 0 && c.turn < c.chunks:
		return step{act: readOwn, chunk: c.turn, post: folded, value: n + 1}, true
	case at == 0 && c.turn > c.chunks:
		return step{act: rest, wait: taken, from: everybody, least: n - 1}, true
	case at > 0 && at < c.size && c.turn > 0 && c.turn <= c.chunks:
		s = step{act: readOther, chunk: c.turn - 1, wait: folded, from: (c.self + at) % c.size, least: n}
		if c.turn == c.chunks && at == c.size-1 {
			s.post, s.value = taken, n
		}
		return s, true
	case at >= c.size:
		c.turn, c.place = c.turn+1, 0
	}
	return step{}, false
}

func (c *course) stage(k int) step {
	return step{act: stage, chunk: k, post: staged, value: c.base + uint64(k) + 1}
}

func (c *course) fold(k int) step {
	n := c.base + uint64(k) + 1
	s := step{act: fold, chunk: k, wait: staged, from: everybody, least: n}
	if c.size > 2 {
		s.post, s.value = folded, n
	}
	return s
}

// gather returns the step that copies the part of the i-th other rank, from 1.
func (c *course) gather(k, i int) step {
	return step{act: gather, chunk: k, wait: folded, from: (c.self + i) % c.size, least: c.base + uint64(k) + 1}
}
