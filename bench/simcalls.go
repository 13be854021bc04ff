package bench

import (
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// mostSimulated is the most nodes that are simulated one by one in a call that is the same
// for all of them. With more, one node that sends to itself stands for all.
const mostSimulated = 64

// A simulation predicts how long the calls of n nodes take, in nanoseconds. Lengths are in
// elements of 4 bytes.
type simulation struct {
	Fabric
	nodes int
}

// situation is what the planner knows.
func (s simulation) situation() *schedule.Situation {
	hosts := make([]int, s.nodes)
	for i := range hosts {
		hosts[i] = i
	}
	c := s.cost(s.nodes)
	return &schedule.Situation{Hosts: hosts, Links: schedule.Links{Near: c, Far: c}}
}

// run carries out moves of all nodes.
func (s simulation) run(moves func(rank int) []schedule.Move) float64 {
	all := make([][]schedule.Move, s.nodes)
	for rank := range all {
		all[rank] = moves(rank)
	}
	return s.carry(all, s.slowdown(s.nodes))
}

// uniform is run for moves that are the same on all nodes, except for peers.
func (s simulation) uniform(moves func(rank int) []schedule.Move) float64 {
	if s.nodes <= mostSimulated {
		return s.run(moves)
	}
	one := moves(0)
	for i := range one {
		one[i].Peer = 0 // what it sends is what it gets
	}
	return s.carry([][]schedule.Move{one}, s.slowdown(s.nodes))
}

// allReduce is the time of an AllReduce of count elements by a plan.
func (s simulation) allReduce(p schedule.Plan, count int) float64 {
	if s.nodes < 2 {
		return 0
	}
	switch p.Method {
	case schedule.Ring:
		if s.nodes > mostSimulated { // the longest chunk delays the others
			count = s.nodes * schedule.Chunk{Len: count, Size: s.nodes}.Blocks() * schedule.BlockLen
		}
		return s.uniform(func(rank int) []schedule.Move { return ringMoves(rank, s.nodes, count, p) })
	case schedule.Direct:
		return s.uniform(func(rank int) []schedule.Move { return directMoves(rank, s.nodes, count, p) })
	case schedule.OneShot:
		return s.uniform(func(rank int) []schedule.Move { return oneShotMoves(rank, s.nodes, count) })
	case schedule.Collected:
		return s.run(func(rank int) []schedule.Move { return collectedMoves(rank, s.nodes, count, count) })
	}
	hosts := s.situation().Hosts
	return s.run(func(rank int) []schedule.Move { return p.Moves(nil, rank, hosts, count) })
}

// gather is the time of an AllGather to which each node contributes count elements, few
// enough for one message.
func (s simulation) gather(count int) float64 {
	if s.nodes < 2 {
		return 0
	}
	switch schedule.PlanGather(s.nodes, count, 4, false).Method {
	case schedule.Collected:
		return s.run(func(rank int) []schedule.Move { return collectedMoves(rank, s.nodes, count, s.nodes*count) })
	case schedule.Ring:
		return s.uniform(func(rank int) []schedule.Move { return ringGatherMoves(rank, s.nodes, count) })
	}
	return s.uniform(func(rank int) []schedule.Move { return oneShotMoves(rank, s.nodes, count) })
}

// message returns the move of a message of n elements.
func message(a schedule.Act, peer, n int) schedule.Move {
	return schedule.Move{Act: a, Peer: peer, Hi: n}
}

// ringMoves returns the moves of a rank in a ring AllReduce.
func ringMoves(rank, size, count int, p schedule.Plan) []schedule.Move {
	var sends, receives, moves []schedule.Move
	own := 0 // messages of the first step, which can leave at any time
	for i := range schedule.RingSteps(size) {
		step := schedule.RingStep(rank, size, i)
		act := schedule.Keep
		if step.Fold {
			act = schedule.Combine
		}
		sends = appendChunk(sends, message(schedule.Send, schedule.Up(rank, size), 0), schedule.Chunk{Len: count, Residue: step.Send, Size: size}, p)
		receives = appendChunk(receives, message(act, schedule.Down(rank, size), 0), schedule.Chunk{Len: count, Residue: step.Recv, Size: size}, p)
		if i == 0 {
			own = len(sends)
		}
	}
	sent := 0
	post := func(most int) {
		for ; sent < min(most, len(sends)); sent++ {
			moves = append(moves, sends[sent])
		}
	}
	for got, m := range receives {
		post(min(got+1+p.Ahead, own+got))
		moves = append(moves, m)
	}
	post(len(sends))
	return moves
}

// appendChunk appends messages like m that carry a chunk.
func appendChunk(moves []schedule.Move, m schedule.Move, c schedule.Chunk, p schedule.Plan) []schedule.Move {
	blocks := max(p.Segment/schedule.BlockLen, 1)
	for k := range c.Segments(blocks) {
		n := 0
		first, last := c.Segment(k, blocks)
		for b := first; b < last; b++ {
			lo, hi := c.Block(b)
			n += hi - lo
		}
		m.Hi = n
		moves = append(moves, m)
	}
	return moves
}

// directMoves returns the moves of a rank in an AllReduce in which every rank owns an equal
// part.
func directMoves(rank, size, count int, p schedule.Plan) []schedule.Move {
	var moves []schedule.Move
	part := (count + size - 1) / size
	for _, act := range []schedule.Act{schedule.Combine, schedule.Keep} {
		for lo := 0; lo == 0 || lo < part; lo += p.Segment {
			for i := 1; i < size; i++ {
				to, from := schedule.Pair(rank, size, i)
				n := min(p.Segment, part-lo)
				moves = append(moves, message(schedule.Send, to, n), message(act, from, n))
			}
		}
	}
	return moves
}

// oneShotMoves returns the moves of a rank in a call in which every rank sends all it has to
// every other.
func oneShotMoves(rank, size, count int) []schedule.Move {
	var moves []schedule.Move
	posted := 0
	for i := 1; i < size; i++ {
		for ; posted < min(size-1, i-1+schedule.Outstanding); posted++ {
			to, _ := schedule.Pair(rank, size, posted+1)
			moves = append(moves, message(schedule.Send, to, count))
		}
		_, from := schedule.Pair(rank, size, i)
		moves = append(moves, message(schedule.Combine, from, count))
	}
	return moves
}

// ringGatherMoves returns the moves of a rank in an AllGather of count elements of each.
func ringGatherMoves(rank, size, count int) []schedule.Move {
	var moves []schedule.Move
	for range size - 1 {
		moves = append(moves, message(schedule.Send, schedule.Up(rank, size), count), message(schedule.Keep, schedule.Down(rank, size), count))
	}
	return moves
}

// collectedMoves returns the moves of a rank in a call in which count elements of every rank
// go up a binomial tree, and result elements come down.
func collectedMoves(rank, size, count, result int) []schedule.Move {
	var moves []schedule.Move
	held := func(rank int) int { return count * (schedule.Through(rank, size) - rank) }
	children := schedule.Children(rank, size)
	for i := range children {
		moves = append(moves, message(schedule.Combine, rank+1<<i, held(rank+1<<i)))
	}
	if rank > 0 {
		moves = append(moves, message(schedule.Send, schedule.Parent(rank), held(rank)), message(schedule.Keep, schedule.Parent(rank), result))
	}
	for i := children - 1; i >= 0; i-- {
		moves = append(moves, message(schedule.Send, rank+1<<i, result))
	}
	return moves
}

// allToAllMoves returns the moves of a rank in an AllToAllV. sends has the elements that a
// rank sends to another. Every pair exchanges at least an empty message.
func allToAllMoves(rank, size int, sends func(from, to int) int) []schedule.Move {
	const most = schedule.SegmentBytes / 4
	var moves []schedule.Move
	for i := 1; i < size; i++ {
		to, from := schedule.Pair(rank, size, i)
		out, in := sends(rank, to), sends(from, rank)
		for k := 0; k == 0 || k*most < max(out, in); k++ {
			if k == 0 || k*most < out {
				moves = append(moves, message(schedule.Send, to, max(0, min(most, out-k*most))))
			}
			if k == 0 || k*most < in {
				moves = append(moves, message(schedule.Keep, from, max(0, min(most, in-k*most))))
			}
		}
	}
	return moves
}
