package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// A mover carries out the calls that do not combine operands, each by an
// algorithm over a wire or by a Reducer.
type mover struct {
	wire
	situation schedule.Situation // what plans depend on
	reduces   Reducer            // nil if the transport has none

	reduced, gathered int // bytes that this rank gave to the Reducer
}

// reducer returns the Reducer, or nil if there is none or another method is
// forced.
func (m *mover) reducer() Reducer {
	if m.situation.Force != 0 && m.situation.Force != schedule.Shared {
		return nil
	}
	return m.reduces
}

// compare begins operations in which a rank may have nothing to receive. Each
// rank sends a message to the rank above, so that neighbours compare calls.
func (m *mover) compare(h, want *Header) error {
	if m.size == 1 {
		return nil
	}
	m.post(h, schedule.Up(m.rank, m.size), 0)
	return m.receiveParts(want, schedule.Down(m.rank, m.size), 0, nil)
}

// rooted begins a direct operation between a root and all others. h is the
// header that this rank sends, want the one that it expects.
func (m *mover) rooted(h *Header) (root int, want *Header, err error) {
	h.Call.Method = uint8(schedule.Direct)
	want = m.expecting(h)
	err = m.compare(h, want)
	return int(h.Call.Root), want, err
}
