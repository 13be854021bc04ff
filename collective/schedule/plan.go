package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Method is an algorithm. The numbers are part of the wire format, so the first
// message shows if ranks chose different ones.
type Method uint8

// The algorithms. All keep ring order except Halving, Tree and Hierarchical.
// Those have Moves and run only under AnyOrder.
const (
	OneShot       Method = iota + 1 // every rank sends everything to every rank, and each folds for itself: one latency
	Ring                            // chunks go round: the fewest bytes
	Chain                           // segments go from the root along the ranks: Broadcast of large vectors
	Star                            // the root sends to every rank: Broadcast of small vectors
	Dissemination                   // Barrier
	Direct                          // every rank sends each piece to its owner, which folds it and sends it to all: the ring's bytes, two latencies
	Shared                          // the transport reduces in memory that all ranks share
	Halving                         // partners at growing distance exchange halves, and back: the ring's bytes in a logarithmic number of steps
	Tree                            // segments go up and down two complementary binary trees, one for each half
	Hierarchical                    // inside hosts, by a ring across hosts, and inside hosts again
	Collected                       // everything goes up a binomial tree to rank 0, which folds it and sends the result down: the fewest messages
	Bruck                           // ranks forward the vectors that they have, at doubling distance, until each has all and folds for itself: a logarithmic number of messages per rank
)

// String returns the name of the algorithm.
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

// reducing lists the algorithms of AllReduce, those of ring order first.
var reducing = [...]Method{OneShot, Bruck, Collected, Direct, Ring, Shared, Halving, Tree, Hierarchical}

// ParseMethod returns the AllReduce algorithm with a name that String returns.
func ParseMethod(name string) (Method, error) {
	var names []string
	for _, m := range reducing {
		if name == m.String() {
			return m, nil
		}
		names = append(names, m.String())
	}
	return 0, fmt.Errorf("unknown algorithm %q; use one of %s", name, strings.Join(names, ", "))
}

// Limits of the plan, in ranks. The ranks of one host share its cores, so they
// change to methods with fewer messages earlier than the ranks of several hosts.
const (
	mostDirect  = 4  // most ranks on one host that use Direct
	mostBruck   = 8  // most ranks on one host that use Bruck
	mostOneShot = 16 // most ranks on several hosts that use OneShot
	mostRivals  = 8  // most ranks on one host that compare methods when their group forms
)

// Reasons of plans.
const (
	manyRanks = "few bytes of many ranks: a tree has the fewest messages"
	someRanks = "few bytes of ranks that share cores: fewer messages than one-shot"
)

// Limits of the plan, in bytes.
const (
	SmallBytes   = 64 << 10  // of (size-1) times the vector: up to this, latency dominates bandwidth
	bruckBytes   = 96 << 10  // the same limit for Bruck on one host
	collectBytes = 4 << 10   // per rank of the vector: up to this, many ranks of one host use Collected
	SegmentBytes = 256 << 10 // per message of a large transfer
	leastPair    = 128 << 10 // minimum per message between the only two ranks of one host
	mostPair     = 256 << 10 // most per message between them: a few stay in a core's cache
	longPair     = 512 << 10 // the same, if that takes less time, as with caches of 1 MB
	leastNear    = 32 << 10  // minimum per message between more ranks of one host
	leastFar     = 64 << 10  // minimum per message between hosts
)

// RingAhead is how many messages a rank of a ring sends ahead of those that it
// has received. It keeps the link busy while the rank folds.
const RingAhead = 2

// A Plan says how an operation is carried out, and why. It depends only on what
// all ranks know, so all ranks have the same plan.
type Plan struct {
	Method  Method
	Segment int // maximum elements per message, a multiple of BlockLen
	Ahead   int // for Ring: messages sent ahead of those received
	Streams int // connections that carry the longest message; set only by Group.PlanAllReduce
	Why     string

	Predicted time.Duration // duration by measurement, or else by the Cost model; set only by Group.PlanAllReduce
}

// PlanReduce returns the plan of an AllReduce of count elements of width bytes.
// near says that all ranks are on one host. partial says that partial results
// fit into elements; if not, every operand has to reach the rank that folds it.
func PlanReduce(size, count, width int, near, partial bool) Plan {
	p := plan(size, count, width, OneShot, Direct)
	switch {
	case near && size > 2 && size <= mostBruck && (size-1)*count*width <= bruckBytes:
		p.Method, p.Why = Bruck, someRanks
	case p.Method == OneShot:
		p.spare(size, near)
	case near && size > mostDirect && count*width <= size*collectBytes:
		p.Method, p.Why = Collected, manyRanks
	case near && size == 2 && partial:
		// One connection each way: long messages, the next in transit while one is
		// folded.
		p.Method, p.Segment, p.Ahead = Ring, elementsOf(min(max(count*width/4, leastPair), mostPair), width), RingAhead
		p.Why = "over 64 KiB between two ranks of one host: each sends while it folds"
	case near && size > mostDirect && partial:
		// Messages to all ranks would be too many for the shared cores.
		p = planNear(Ring, size, count, width)
		p.Why = "over 4 KiB for each of many ranks of one host: every rank talks to two others"
	case near:
		p = planNear(p.Method, size, count, width)
		p.Why = "over 64 KiB through each rank of one host: two latencies"
	case partial:
		half := count * width / size / 2 // of a chunk: one half is folded while the other is in transit
		p.Method, p.Segment, p.Ahead = Ring, elementsOf(min(max(half, leastFar), SegmentBytes), width), RingAhead
		p.Why = "over 64 KiB through each rank: every link carries the least, all the time"
	}
	return p
}

// planNear returns the plan of a method among ranks of one host.
func planNear(m Method, size, count, width int) Plan {
	p := Plan{Method: m, Segment: elementsOf(SegmentBytes, width)}
	if m == Ring {
		p.Segment, p.Ahead = elementsOf(min(max(count*width/size, leastFar), SegmentBytes), width), RingAhead
	}
	return p
}

// elementsOf returns the elements in a message of at most the given number of
// bytes: whole blocks, at least one.
func elementsOf(bytes, width int) int { return max(BlockLen, bytes/width/BlockLen*BlockLen) }

// PlanGather returns the plan of an AllGather in which every rank contributes
// count elements of width bytes. near says that all ranks are on one host.
func PlanGather(size, count, width int, near bool) Plan {
	p := plan(size, count, width, OneShot, Ring)
	if p.Method == OneShot {
		p.spare(size, near)
	}
	return p
}

// spare replaces a one-shot if its size*(size-1) messages would take longer
// than more steps with fewer messages.
func (p *Plan) spare(size int, near bool) {
	switch {
	case size > mostOneShot || near && size > mostBruck:
		p.Method, p.Why = Collected, manyRanks
	case near && size > 2:
		p.Method, p.Why = Bruck, someRanks
	}
}

// PlanBroadcast returns the plan of a Broadcast of count elements of width
// bytes.
func PlanBroadcast(size, count, width int) Plan { return plan(size, count, width, Star, Chain) }

// PlanShared returns the plan of an AllReduce between ranks that share memory.
func PlanShared() Plan {
	return Plan{Method: Shared, Segment: BlockLen, Why: "all ranks read each other's memory"}
}

// PlanBarrier returns the plan of a Barrier.
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
