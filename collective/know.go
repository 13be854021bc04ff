package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// know leaves in piece(r) what rank r has there, of every r, by one of the two
// methods of few bytes.
func (e *HostEngine) know(h *Header, m schedule.Method, piece func(rank int) []byte) error {
	if m == schedule.Bruck {
		return e.learn(h, e.expecting(h), piece)
	}
	return e.tell(h, e.expecting(h), piece)
}

// learn tells on, in each round to a rank twice as far away, all that was told
// before.
func (e *HostEngine) learn(h, want *Header, piece func(rank int) []byte) error {
	for i := range schedule.Rounds(e.size) {
		to, from := schedule.Round(e.rank, e.size, i)
		e.post(h, to, i, e.below(e.rank, i, piece)...)
		if err := e.receive(want, from, i, e.below(from, i, piece)); err != nil {
			return err
		}
	}
	return nil
}

// below are the pieces that a rank tells on in a round, valid until the next.
func (e *HostEngine) below(rank, round int, piece func(rank int) []byte) [][]byte {
	e.in = e.in[:0]
	for k := range schedule.Told(e.size, round) {
		e.in = append(e.in, piece((rank-k+e.size)%e.size))
	}
	return e.in
}

// tell sends the own piece to every rank, to as many before it must receive as
// the outbox has slots for.
func (e *HostEngine) tell(h, want *Header, piece func(rank int) []byte) error {
	posted := 0
	for i := 1; i < e.size; i++ {
		for ; posted < min(e.size-1, i-1+outboxSlots); posted++ {
			to, _ := schedule.Pair(e.rank, e.size, posted+1)
			e.post(h, to, 0, piece(e.rank))
		}
		_, from := schedule.Pair(e.rank, e.size, i)
		e.whole[0] = piece(from)
		if err := e.receive(want, from, 0, e.whole[:]); err != nil {
			return err
		}
	}
	return nil
}
