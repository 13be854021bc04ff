package schedule

import "fmt"

// Method is an algorithm. The numbers are part of the wire format: a rank that
// chose another one is found out at the first message.
type Method uint8

// The algorithms. All of them keep ring order.
const (
	OneShot       Method = iota + 1 // everybody sends everything to everybody and folds for itself: one latency
	Ring                            // chunks go round: the fewest bytes
	Chain                           // segments go from the root from rank to rank: Broadcast of large vectors
	Star                            // the root sends to everybody: Broadcast of small vectors
	Dissemination                   // Barrier
	Direct                          // each piece goes to its owner from every rank, who folds it and gives it to all: the ring's bytes, two latencies
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
	}
	return fmt.Sprintf("method(%d)", uint8(m))
}

// Limits of the plan, in bytes. A one-shot moves (size-1) times the vector
// through every rank, so what counts is that product.
const (
	SmallBytes   = 64 << 10  // at most this through each rank: latency decides, not bandwidth
	SegmentBytes = 256 << 10 // of one message of a large transfer
)

// A Plan says how an operation is done and why. It depends only on what all
// ranks know alike, so all ranks have the same plan.
type Plan struct {
	Method  Method
	Segment int // elements of one message at most, a multiple of BlockLen
	Why     string
}

// PlanReduce is the plan of an AllReduce of count elements of width bytes.
// partial says whether partial results can travel as elements; if not, every
// operand has to reach whoever folds.
func PlanReduce(size, count, width int, partial bool) Plan {
	if !partial {
		return plan(size, count, width, OneShot, Direct)
	}
	return plan(size, count, width, OneShot, Ring)
}

// PlanGather is the plan of an AllGather in which every rank gives count
// elements of width bytes.
func PlanGather(size, count, width int) Plan { return plan(size, count, width, OneShot, Ring) }

// PlanBroadcast is the plan of a Broadcast of count elements of width bytes.
func PlanBroadcast(size, count, width int) Plan { return plan(size, count, width, Star, Chain) }

// PlanBarrier is the plan of a Barrier.
func PlanBarrier() Plan {
	return Plan{Method: Dissemination, Segment: BlockLen, Why: "log2(size) rounds without payload"}
}

func plan(size, count, width int, small, large Method) Plan {
	through := (size - 1) * count * width
	p := Plan{Method: small, Segment: max(BlockLen, SegmentBytes/width/BlockLen*BlockLen)}
	if through > SmallBytes {
		p.Method = large
		p.Why = "over 64 KiB through each rank: bandwidth decides"
		return p
	}
	p.Why = "latency decides"
	return p
}
