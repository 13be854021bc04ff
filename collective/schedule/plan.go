package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Method is an algorithm. The numbers are part of the wire format: a rank that
// chose another one is found out at the first message.
type Method uint8

// The algorithms. All of them keep ring order, but for Halving, Tree and
// Hierarchical, which have Moves and run only under AnyOrder.
const (
	OneShot       Method = iota + 1 // everybody sends everything to everybody and folds for itself: one latency
	Ring                            // chunks go round: the fewest bytes
	Chain                           // segments go from the root from rank to rank: Broadcast of large vectors
	Star                            // the root sends to everybody: Broadcast of small vectors
	Dissemination                   // Barrier
	Direct                          // each piece goes to its owner from every rank, who folds it and gives it to all: the ring's bytes, two latencies
	Shared                          // the transport does it in memory that all ranks share
	Halving                         // halves go between partners at growing distance, and back: the ring's bytes in a logarithm of steps
	Tree                            // segments go up and down two complementary binary trees, each for one half
	Hierarchical                    // inside the hosts, round a ring across them, and inside again
	Collected                       // everything goes up a binomial tree to rank 0, who folds it, and the result down again: the fewest messages
	Bruck                           // who knows some vectors tells them on, at doubling distance, until everybody knows all and folds for itself: a logarithm of messages for each
)

// String is the name of the algorithm.
func (m Method) String() string {
	switch m {
	case OneShot:
		return "one-shot"
	case Ring:
		return "ring"
	case Chain:
		return "chain"
	case Star:
		return "star"
	case Dissemination:
		return "dissemination"
	case Direct:
		return "direct"
	case Shared:
		return "shared"
	case Halving:
		return "halving-doubling"
	case Tree:
		return "double-tree"
	case Hierarchical:
		return "hierarchical"
	case Collected:
		return "collected"
	case Bruck:
		return "bruck"
	}
	return fmt.Sprintf("method(%d)", uint8(m))
}

// reducing are the algorithms of AllReduce, those of ring order first.
var reducing = [...]Method{OneShot, Bruck, Collected, Direct, Ring, Shared, Halving, Tree, Hierarchical}

// ParseMethod reads what String writes of a method of AllReduce.
func ParseMethod(name string) (Method, error) {
	var names []string
	for _, m := range reducing {
		if name == m.String() {
			return m, nil
		}
		names = append(names, m.String())
	}
	return 0, fmt.Errorf("algorithm %q is not known; there are %s", name, strings.Join(names, ", "))
}

// Ranks of one host, which share its cores, that send to each other directly at
// most; that learn everybody's few bytes; and of several hosts, that tell
// everybody.
const (
	mostNear    = 4
	mostLearned = 8
	mostFar     = 16

	collectBytes = 4 << 10 // of a vector, by the ranks of one host: more is collected in vain

	manyRanks = "few bytes of many ranks: a tree has the fewest messages"
	someRanks = "few bytes of ranks that share cores: fewer messages than to everybody"
)

// Limits of the plan, in bytes. A one-shot moves (size-1) times the vector
// through every rank, so what counts is that product.
const (
	SmallBytes   = 64 << 10  // at most this through each rank: latency decides, not bandwidth
	learnedBytes = 96 << 10  // the same of ranks of one host by Bruck
	SegmentBytes = 256 << 10 // of one message of a large transfer
	leastPair    = 128 << 10 // of one between two ranks that are alone on one host,
	mostPair     = 512 << 10 // at least and at most,
	leastNear    = 32 << 10  // between more ranks of one host,
	leastFar     = 64 << 10  // and of different ones
)

// RingAhead is how many messages a rank of a ring sends beyond those that it has
// received, so that its link has something to carry while it folds.
const RingAhead = 2

// A Plan says how an operation is done and why. It depends only on what all
// ranks know alike, so all ranks have the same plan.
type Plan struct {
	Method  Method
	Segment int // elements of one message at most, a multiple of BlockLen
	Ahead   int // messages sent beyond those received, if a Ring
	Streams int // connections that the longest message is spread over; 0 where nobody asked
	Why     string

	Predicted time.Duration // how long it takes by what was measured, or else by the model of Cost; 0 where nobody asked
}

// PlanReduce is the plan of an AllReduce of count elements of width bytes. near
// says whether all ranks are on one host. partial says whether partial results
// can travel as elements; if not, every operand has to reach whoever folds.
func PlanReduce(size, count, width int, near, partial bool) Plan {
	p := plan(size, count, width, OneShot, Direct)
	switch {
	case near && size > 2 && size <= mostLearned && (size-1)*count*width <= learnedBytes:
		p.Method, p.Why = Bruck, someRanks
	case p.Method == OneShot:
		p.spare(size, near)
	case near && size > mostNear && count*width <= size*collectBytes:
		p.Method, p.Why = Collected, manyRanks
	case near && size == 2 && partial:
		// One connection each way: long messages, and the next on its way while one is
		// folded.
		p.Method, p.Segment, p.Ahead = Ring, elementsOf(min(max(count*width/4, leastPair), mostPair), width), RingAhead
		p.Why = "over 64 KiB between two ranks of one host: each sends while it folds"
	case near && size > mostNear && partial:
		// Messages to everybody are too many for the cores that ranks share.
		p.Method, p.Segment, p.Ahead = Ring, elementsOf(min(max(count*width/size, leastFar), SegmentBytes), width), RingAhead
		p.Why = "over 4 KiB for each of many ranks of one host: every rank talks to two others"
	case near:
		// All operands of a segment are in the caches at the same time.
		p.Segment = elementsOf(max(leastNear, SegmentBytes/(size-1)), width)
		p.Why = "over 64 KiB through each rank of one host: two latencies"
	case partial:
		half := count * width / size / 2 // of a chunk: one is folded while the other is on its way
		p.Method, p.Segment, p.Ahead = Ring, elementsOf(min(max(half, leastFar), SegmentBytes), width), RingAhead
		p.Why = "over 64 KiB through each rank: every link carries the least, all the time"
	}
	return p
}

// elementsOf is the elements of a message of so many bytes: whole blocks.
func elementsOf(bytes, width int) int { return max(BlockLen, bytes/width/BlockLen*BlockLen) }

// PlanGather is the plan of an AllGather in which every rank gives count
// elements of width bytes.
// near says whether all ranks are on one host.
func PlanGather(size, count, width int, near bool) Plan {
	p := plan(size, count, width, OneShot, Ring)
	if p.Method == OneShot {
		p.spare(size, near)
	}
	return p
}

// spare makes something else of a one-shot of so many ranks that its messages,
// size*(size-1), would take longer than more steps with fewer of them.
func (p *Plan) spare(size int, near bool) {
	switch {
	case size > mostFar || near && size > mostLearned:
		p.Method, p.Why = Collected, manyRanks
	case near && size > 2:
		p.Method, p.Why = Bruck, someRanks
	}
}

// PlanBroadcast is the plan of a Broadcast of count elements of width bytes.
func PlanBroadcast(size, count, width int) Plan { return plan(size, count, width, Star, Chain) }

// PlanShared is the plan of an AllReduce between ranks that share memory.
func PlanShared() Plan {
	return Plan{Method: Shared, Segment: BlockLen, Why: "all ranks read each other's memory"}
}

// PlanBarrier is the plan of a Barrier.
func PlanBarrier() Plan {
	return Plan{Method: Dissemination, Segment: BlockLen, Why: "log2(size) rounds without payload"}
}

func plan(size, count, width int, small, large Method) Plan {
	through := (size - 1) * count * width
	p := Plan{Method: small, Segment: elementsOf(SegmentBytes, width)}
	if through > SmallBytes {
		p.Method = large
		p.Why = "over 64 KiB through each rank: bandwidth decides"
		return p
	}
	p.Why = "latency decides"
	return p
}
