package collective

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// moveReduce carries out the moves of a method that does not keep ring order.
// In such a method, a rank may exchange nothing with its ring neighbours, so
// the ranks compare calls first.
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

// traffic counts the messages that a call exchanges with one rank.
type traffic struct{ sent, got int }

// arrange returns what plans depend on: the View, and whether its Transport
// reduces in shared memory. It uses nothing that differs between ranks. Where
// ranks are on several hosts, some may have no peer to share memory with, so
// links inside a host then get the cost of loopback TCP.
func arrange(v View, reduces bool) schedule.Situation {
	s := schedule.Situation{Hosts: v.hosts(), Near: schedule.Loopback, Far: schedule.Network}
	if reduces {
		s.Near, s.Shared = schedule.SharedMemory, true
	}
	if !slices.ContainsFunc(v.Members, func(m Member) bool { return len(m.Addrs) > 0 }) {
		s.Near = schedule.InProcess // without addresses, no rank could be reached from another process
	}
	return s
}

// streams is Abilities.Streams, or 1 if the Transport lacks it.
func (e *HostEngine) streams(bytes int) int {
	if e.can.Streams == nil {
		return 1
	}
	return e.can.Streams(bytes)
}
