package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// A mover carries out calls that combine nothing: each by a schedule over a wire,
// or by a Reducer.
type mover struct {
	wire
	situation schedule.Situation // what plans depend on
	reduces   Reducer            // nil without that ability

	reduced, gathered int // bytes that this rank gave to the Reducer
}

// reducer is the Reducer unless a method is forced that is not its own.
func (m *mover) reducer() Reducer {
	if m.situation.Force != 0 && m.situation.Force != schedule.Shared {
		return nil
	}
	return m.reduces
}

// compare is how operations begin in which a rank may have nothing to receive:
// with a message to the rank above, by which neighbours compare calls.
func (m *mover) compare(h, want *Header) error {
	if m.size == 1 {
		return nil
	}
	m.post(h, schedule.Up(m.rank, m.size), 0)
	return m.receiveParts(want, schedule.Down(m.rank, m.size), 0, nil)
}

// rooted begins a direct operation between a root and all others: h is what
// this rank sends, want what it receives.
func (m *mover) rooted(h *Header) (root int, want *Header, err error) {
	h.Call.Method = uint8(schedule.Direct)
	want = m.expecting(h)
	err = m.compare(h, want)
	return int(h.Call.Root), want, err
}
