package schedule

import "math/bits"

// A node is a position in a binary tree over the positions 0 to size-1. noPeer
// stands for a missing parent or child.
type node struct {
	parent int
	below  [2]int // children at a lower and at a higher position
	depth  int    // 0 for the root
}

// nodeAt returns a position's node in the tree in which the trailing zeros of a
// position are its height. So odd positions are leaves. Position 0 is the root
// and has one child.
func nodeAt(position, size int) node {
	n := node{parent: noPeer, below: [2]int{noPeer, noPeer}}
	step := 1 << bits.Len(uint(size-1)) // for the root, the power of two at or above size
	if position > 0 {
		step = position & -position
		n.parent = above(position, size)
		if step > 1 {
			n.below[0] = position - step/2
		}
	}
	for half := step / 2; half > 0; half /= 2 {
		if child := position + half; child < size {
			n.below[1] = child
			break
		}
	}
	for at := position; at > 0; at = above(at, size) {
		n.depth++
	}
	return n
}

// above returns the parent of a position other than 0.
func above(position, size int) int {
	step := position & -position
	if up := position&^step | step<<1; up < size {
		return up
	}
	return position &^ step
}

// treeNode returns a rank's node in one of the two trees, with ranks for
// positions. The second tree is the first one mirrored, or shifted by one if
// size is odd. So a leaf of one tree is an inner node of the other, and no rank
// has more than two children in both trees together.
func treeNode(tree, rank, size int) node {
	if tree == 0 {
		return nodeAt(rank, size)
	}
	there := func(rank int) int {
		if size%2 == 0 {
			return size - 1 - rank
		}
		return mod(rank-1, size)
	}
	back := func(position int) int {
		switch {
		case position == noPeer:
			return noPeer
		case size%2 == 0:
			return size - 1 - position
		}
		return mod(position+1, size)
	}
	n := nodeAt(there(rank), size)
	n.parent, n.below[0], n.below[1] = back(n.parent), back(n.below[0]), back(n.below[1])
	return n
}

// trees reduces to the roots of two complementary binary trees and broadcasts
// from there. Each tree carries one half of the vector, by segments (Sanders,
// Speck and Träff, 2009; also used by NCCL). That combines the bandwidth of a
// pipeline with the latency of a tree.
//
// Every message has a moment. Segment s goes up from depth d at moment
// s+deepest-d, and down to depth d at moment s+deepest+d-1. What a rank sends
// at a moment arrived at an earlier one. At each moment, a rank first sends and
// then receives. Both follow an order that all ranks share: by tree, up before
// down, and by the position of the child. So the first of the pending messages
// can always be delivered, and there is no deadlock.
func (c *moveList) trees(rank, size int, whole extent) {
	deepest := bits.Len(uint(size - 1))
	nodes := [2]node{treeNode(0, rank, size), treeNode(1, rank, size)}
	halves := [2]extent{whole.part(0, 2), whole.part(1, 2)}
	last := max(c.segments(halves[0]), c.segments(halves[1])) - 1
	for moment := 0; moment <= last+2*deepest; moment++ {
		for tree, n := range nodes {
			at := branch{c, n, halves[tree], deepest, moment}
			at.complete()
			at.move(Send, n.parent, true)
			at.moveBelow(Send, false)
		}
		for tree, n := range nodes {
			at := branch{c, n, halves[tree], deepest, moment}
			at.moveBelow(Combine, true)
			at.move(Keep, n.parent, false)
		}
	}
}

// A branch is a node at one moment.
type branch struct {
	c       *moveList
	node    node
	half    extent
	deepest int
	moment  int
}

// complete finishes, at the root, the segment that has arrived from all
// children.
func (b branch) complete() {
	k := b.moment - b.deepest
	if b.node.parent != noPeer || k < 0 || k >= b.c.segments(b.half) {
		return
	}
	b.c.add(Finish, 0, b.half, k)
}

// moveBelow adds the messages to or from the children.
func (b branch) moveBelow(a Act, up bool) {
	child := b
	child.node.depth++
	for _, peer := range b.node.below {
		child.move(a, peer, up)
	}
}

// move adds the message between the node and its parent, if one is due. This
// rank is either of the two.
func (b branch) move(a Act, peer int, up bool) {
	k := b.moment - b.deepest + b.node.depth
	if !up {
		k = b.moment - b.deepest - b.node.depth + 1
	}
	if peer == noPeer || k < 0 || k >= b.c.segments(b.half) {
		return
	}
	b.c.add(a, peer, b.half, k)
}
