package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// know leaves in piece(r) what rank r has there, of every r, by one of the two
// methods of few bytes.
func (m *mover) know(h *Header, method schedule.Method, piece func(rank int) []byte) error {
	if method == schedule.Bruck {
		return m.learn(h, m.expecting(h), piece)
	}
	return m.tell(h, m.expecting(h), piece)
}

// learn tells on, in each round to a rank twice as far away, all that was told
// before.
func (m *mover) learn(h, want *Header, piece func(rank int) []byte) error {
	for i := range schedule.Rounds(m.size) {
		to, from := schedule.Round(m.rank, m.size, i)
		m.post(h, to, i, m.below(m.rank, i, piece)...)
		if err := m.receiveParts(want, from, i, m.below(from, i, piece)); err != nil {
			return err
		}
	}
	return nil
}

// below are the pieces that a rank tells on in a round, valid until the next.
func (m *mover) below(rank, round int, piece func(rank int) []byte) [][]byte {
	m.in = m.in[:0]
	for k := range schedule.Told(m.size, round) {
		m.in = append(m.in, piece((rank-k+m.size)%m.size))
	}
	return m.in
}

// tell sends the own piece to every rank, to as many before it must receive as
// the outbox has slots for.
func (m *mover) tell(h, want *Header, piece func(rank int) []byte) error {
	posted := 0
	for i := 1; i < m.size; i++ {
		for ; posted < min(m.size-1, i-1+outboxSlots); posted++ {
			to, _ := schedule.Pair(m.rank, m.size, posted+1)
			m.post(h, to, 0, piece(m.rank))
		}
		_, from := schedule.Pair(m.rank, m.size, i)
		if err := m.receive(want, from, 0, piece(from)); err != nil {
			return err
		}
	}
	return nil
}
