package schedule

// Act is what a Move does.
type Act uint8

// The acts.
const (
	Send    Act = iota + 1 // send the elements to the peer
	Keep                   // receive them from the peer in place of the own
	Combine                // receive the peer's and combine them with the own
	Finish                 // the elements are complete here, and nowhere else yet: what a Mean does last is done now
)

// A Move is one thing that a rank does with the elements [Lo, Hi) of its
// vector. A message may be empty.
type Move struct {
	Act    Act
	Peer   int // who sends or receives; not of Finish
	Lo, Hi int
}

// Moves appends to moves what a rank does, in this order, in an AllReduce of
// count elements by the plan, if its method keeps another order than ring order:
// Halving, Tree or Hierarchical. Other methods have no moves. hosts says for every
// rank which host it is on; equal numbers are equal hosts.
//
// Sends need not have left when the next move is made, but they leave in their
// order, and Outstanding of them may be on their way while the rank receives.
// Then no rank waits for ever, even if a message is sent only when it is
// received. A message can still be read from the vector until it has left: what
// was sent is overwritten by nothing but what was made of it.
func (p Plan) Moves(moves []Move, rank int, hosts []int, count int) []Move {
	size := len(hosts)
	whole := extent{0, count}
	c := course{moves: moves, segment: max(p.Segment, 1)}
	switch {
	case size == 1:
		c.finish(whole)
	case p.Method == Halving:
		c.halving(rank, size, whole)
	case p.Method == Tree:
		c.trees(rank, size, whole)
	case p.Method == Hierarchical:
		c.hierarchy(rank, hosts, whole)
	}
	return c.moves
}

// Outstanding is how many messages a rank must be able to have on their way
// while it receives.
const Outstanding = 4

// An extent is a run of elements [lo, hi) of a vector.
type extent struct{ lo, hi int }

// part is the i-th of n parts, which differ by one element at most.
func (x extent) part(i, n int) extent {
	length := x.hi - x.lo
	return extent{x.lo + length*i/n, x.lo + length*(i+1)/n}
}

// A course collects the moves of one rank.
type course struct {
	moves   []Move
	segment int
}

// segments is the number of messages that an extent travels in: at least one,
// so that every rank is heard from.
func (c *course) segments(x extent) int {
	return max(1, (x.hi-x.lo+c.segment-1)/c.segment)
}

// add appends what is done with the k-th segment of an extent.
func (c *course) add(a Act, peer int, x extent, k int) {
	lo := min(x.lo+k*c.segment, x.hi)
	c.moves = append(c.moves, Move{Act: a, Peer: peer, Lo: lo, Hi: min(lo+c.segment, x.hi)})
}

func (c *course) finish(x extent) {
	c.moves = append(c.moves, Move{Act: Finish, Lo: x.lo, Hi: x.hi})
}

// nobody is the peer of a half of an exchange that is not there.
const nobody = -1

// exchange sends one extent to a rank while another comes from one. The sends
// are one segment ahead, so that the link has something to carry while a
// segment is folded.
func (c *course) exchange(to int, out extent, from int, in extent, act Act) {
	sends, recvs, sent := 0, 0, 0
	if to != nobody {
		sends = c.segments(out)
	}
	if from != nobody {
		recvs = c.segments(in)
	}
	for k := range recvs {
		for ; sent < min(sends, k+2); sent++ {
			c.add(Send, to, out, sent)
		}
		c.add(act, from, in, k)
	}
	for ; sent < sends; sent++ {
		c.add(Send, to, out, sent)
	}
}
