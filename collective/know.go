package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// know leaves rank r's piece in piece(r) on every rank, for all r, by Bruck's
// algorithm or directly.
func (m *mover) know(h *Header, method schedule.Method, piece func(rank int) []byte) error {
	if method == schedule.Bruck {
		return m.learn(h, m.expecting(h), piece)
	}
	return m.tell(h, m.expecting(h), piece)
}

// learn is Bruck's algorithm. In each round, a rank sends all pieces that it
// has to a rank twice as far away as in the round before.
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

// below returns the pieces that a rank sends in a round. The list is valid
// until the next call.
func (m *mover) below(rank, round int, piece func(rank int) []byte) [][]byte {
	m.in = m.in[:0]
	for k := range schedule.Told(m.size, round) {
		m.in = append(m.in, piece((rank-k+m.size)%m.size))
	}
	return m.in
}

// tell sends this rank's piece to every other rank. Before each receive, it has
// as many messages posted as the outbox has slots for.
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
