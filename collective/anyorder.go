package collective

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// moveReduce carries out the moves of a method that keeps another order than
// ring order. A rank may have nothing to do with its neighbours there, so these
// compare calls first.
func (e *executor) moveReduce(h *Header, v Vector, plan schedule.Plan) error {
	if plan.Method.RingOrdered() {
		return fmt.Errorf("collective: AllReduce by %v: %w", plan.Method, ErrUnsupported)
	}
	want := e.expecting(h)
	if err := e.compare(h, want); err != nil {
		return err
	}
	e.moves = plan.Moves(e.moves[:0], e.rank, e.situation.Hosts, v.n)
	if e.parts == nil {
		e.parts = make([]traffic, e.size)
	}
	clear(e.parts)
	mem, width := v.bytes(), v.dtype.Size()
	for _, m := range e.moves {
		place := mem[m.Lo*width : m.Hi*width]
		switch m.Act {
		case schedule.Send:
			e.parts[m.Peer].sent++
			e.post(h, m.Peer, e.parts[m.Peer].sent, place)
		case schedule.Finish:
			if h.Call.Op == Mean {
				scaleBytes(v.dtype, place, e.size)
			}
		default:
			e.parts[m.Peer].got++
			e.in = append(e.in[:0], place)
			if err := e.take(want, m.Peer, e.parts[m.Peer].got, m.Act == schedule.Combine); err != nil {
				return err
			}
		}
	}
	return nil
}

// traffic counts the messages of a call to and from a rank.
type traffic struct{ sent, got int }

// arrange finds what plans depend on in a View, and in whether its Transport
// reduces by itself. It looks at
// nothing in which ranks differ: where several hosts have ranks, not every
// rank has somebody to share memory with, so the cost of links inside a host is
// then taken to be that of TCP.
func arrange(v View, reduces bool) schedule.Situation {
	s := schedule.Situation{Hosts: v.hosts(), Near: schedule.Loopback, Far: schedule.Network}
	if reduces {
		s.Near, s.Shared = schedule.SharedMemory, true
	}
	if !slices.ContainsFunc(v.Members, func(m Member) bool { return len(m.Addrs) > 0 }) {
		s.Near = schedule.InProcess // nobody could be reached otherwise
	}
	return s
}

// streams is Abilities.Streams of any Transport.
func (e *HostEngine) streams(bytes int) int {
	if e.can.Streams == nil {
		return 1
	}
	return e.can.Streams(bytes)
}
