package schedule

// Act is the kind of a Move.
type Act uint8

// The acts.
const (
	Send    Act = iota + 1 // send the elements to the peer
	Keep                   // receive the peer's elements and overwrite the own
	Combine                // receive the peer's elements and combine them with the own
	Finish                 // the elements are complete on this rank alone: a Mean divides them now
)

// A Move is one action of a rank on the elements [Lo, Hi) of its vector. A
// message may be empty.
type Move struct {
	Act    Act
	Peer   int // the other rank; unused by Finish
	Lo, Hi int
}

// Moves appends the moves of a rank, in order, in an AllReduce of count
// elements by the plan. Only the methods that do not keep ring order have
// moves: Halving, Tree and Hierarchical. hosts has the host of every rank;
// equal numbers are equal hosts.
//
// A Send need not have left when the next move is made, but Sends leave in
// order, and up to Outstanding of them may be in progress while the rank
// receives. Then no rank waits forever, even if a message leaves only when it
// is received. A message may be read from the vector until it has left: only
// results made from a sent element overwrite it.
func (p Plan) Moves(moves []Move, rank int, hosts []int, count int) []Move {
	size := len(hosts)
	whole := extent{0, count}
	c := moveList{moves: moves, segment: max(p.Segment, 1)}
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

// Outstanding is the number of messages that a rank must be able to have in
// progress while it receives.
const Outstanding = 4

// An extent is a run of elements [lo, hi) of a vector.
type extent struct{ lo, hi int }

// part returns the i-th of n parts. Their lengths differ by at most one
// element.
func (x extent) part(i, n int) extent {
	length := x.hi - x.lo
	return extent{x.lo + length*i/n, x.lo + length*(i+1)/n}
}

// A moveList collects the moves of one rank.
type moveList struct {
	moves   []Move
	segment int
}

// segments returns the number of messages that carry an extent. It is at least
// one, so that every rank is heard.
func (c *moveList) segments(x extent) int {
	return max(1, (x.hi-x.lo+c.segment-1)/c.segment)
}

// add appends the move for the k-th segment of an extent.
func (c *moveList) add(a Act, peer int, x extent, k int) {
	lo := min(x.lo+k*c.segment, x.hi)
	c.moves = append(c.moves, Move{Act: a, Peer: peer, Lo: lo, Hi: min(lo+c.segment, x.hi)})
}

func (c *moveList) finish(x extent) {
	c.moves = append(c.moves, Move{Act: Finish, Lo: x.lo, Hi: x.hi})
}

// noPeer stands for a missing peer.
const noPeer = -1

// exchange sends one extent to a rank while it receives another. Sends are one
// segment ahead, which keeps the link busy while a segment is folded.
func (c *moveList) exchange(to int, out extent, from int, in extent, act Act) {
	sends, recvs, sent := 0, 0, 0
	if to != noPeer {
		sends = c.segments(out)
	}
	if from != noPeer {
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
