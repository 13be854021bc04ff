package collective

import (
	"fmt"

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
	if e.exchanged == nil {
		e.exchanged = make([]messageCounts, e.size)
	}
	clear(e.exchanged)
	mem, width := v.bytes(), v.dtype.Size()
	for _, m := range e.moves {
		operand := mem[m.Lo*width : m.Hi*width]
		switch m.Act {
		case schedule.Send:
			e.exchanged[m.Peer].sent++
			e.post(h, m.Peer, e.exchanged[m.Peer].sent, operand)
		case schedule.Finish:
			if h.Call.Op == Mean {
				scaleBytes(v.dtype, operand, e.size)
			}
		default:
			e.exchanged[m.Peer].got++
			e.in = append(e.in[:0], operand)
			if err := e.receiveSegment(want, m.Peer, e.exchanged[m.Peer].got, m.Act == schedule.Combine); err != nil {
				return err
			}
		}
	}
	return nil
}

// messageCounts counts the messages that a call exchanges with one rank.
type messageCounts struct{ sent, got int }
