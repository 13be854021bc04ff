package collective

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// An executor carries out all calls: it adds those that combine operands to
// those of a copier.
type executor struct {
	copier
	scratch   []uint64 // operands that arrive; aligned for every element type
	chain     Chain
	operands  [][]byte // of the current fold
	moves     []schedule.Move
	exchanged []messageCounts // messages of a call that makes moves, by rank
}

// perform carries out one call.
func (e *executor) perform(o *Operation) error {
	switch o.Call.Kind {
	case KindAllReduce:
		return e.allReduce(o)
	case KindBroadcast:
		return e.broadcast(o)
	case KindAllGather:
		return e.allGather(o)
	case KindBarrier:
		return e.barrier(o)
	case KindReduceScatter:
		return e.reduceScatter(o)
	case KindReduce:
		return e.reduce(o)
	case KindGather:
		return e.gather(o)
	case KindScatter:
		return e.scatter(o)
	case KindAllToAll:
		return e.allToAll(o)
	case KindSend:
		if int(o.Call.Root) == e.rank {
			return e.sendRecv(o, nil)
		}
		return e.sendRecv(nil, o)
	}
	return fmt.Errorf("collective: %v: %w", o.Call.Kind, ErrUnsupported)
}

// performShared has the Reducer carry out a call that is marked.
func (e *executor) performShared(o *Operation) error {
	switch o.Call.Kind {
	case KindAllReduce:
		return e.reduces.AllReduce(o)
	case KindBarrier:
		return e.reduces.Barrier(o)
	}
	return e.exchangeSmall(o)
}

// plan returns how v is reduced over all ranks. It is the same on every rank.
func (e *executor) plan(v Vector, op Op) schedule.Plan {
	return e.situation.Plan(v.n, v.dtype.Size(), !widened(v.dtype, op))
}

// room returns n bytes of scratch memory, reused from call to call.
func (e *executor) room(n int) []byte {
	if words := (n + 7) / 8; words > len(e.scratch) {
		e.scratch = make([]uint64, words)
	}
	return bytesOf(e.scratch)[:n]
}
