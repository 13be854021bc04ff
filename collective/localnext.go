package collective

import (
	"context"
	"slices"
)

// A nextWait is a rank's wait for a message from any of some ranks.
type nextWait struct {
	from []int
	h    *Header       // nil if the rank does not wait
	look chan struct{} // gets a value when there may be something to see
}

// next is Abilities.Next.
func (l *local) next(ctx context.Context, from []int, h *Header) (rank int, err error) {
	rv := &l.hub.rendezvous
	for {
		if rank, err := l.offered(from, h); rank >= 0 || err != nil {
			return rank, err
		}
		select {
		case <-rv.nexts[l.rank].look:
		case <-l.hub.broken:
		case <-l.left:
		case <-ctx.Done():
			l.hub.mu.Lock()
			rv.forgetNext(l.rank)
			l.hub.mu.Unlock()
			return -1, nil
		}
	}
}

// offered returns the first rank of from that waits for this one to receive, and copies
// the header of its message to h. If there is none, it records that this rank waits, and
// returns -1.
func (l *local) offered(from []int, h *Header) (rank int, err error) {
	hub, rv := l.hub, &l.hub.rendezvous
	hub.mu.Lock()
	defer hub.mu.Unlock()
	rv.forgetNext(l.rank)
	switch {
	case hub.cause != nil:
		return -1, hub.error(l.rank)
	case l.gone():
		return -1, ErrClosed
	}
	for _, r := range from {
		if m := rv.waits[sending][r]; m.h != nil && m.peer == l.rank {
			*h = *m.h
			return r, nil
		}
	}
	for _, r := range from {
		if o := rv.at(r); o != nil {
			return -1, l.differ(r, h, &o.Header)
		}
		if hub.ranks[r].gone() {
			hub.abort(&RankError{Rank: r, Phase: receiving.String(), Err: ErrLeft}, l.rank)
			return -1, hub.error(l.rank)
		}
	}
	rv.nexts[l.rank].from, rv.nexts[l.rank].h = from, h
	rv.nexting++
	return -1, nil
}

// forgetNext ends the record of a wait in next. The hub's mutex is held.
func (rv *rendezvous) forgetNext(rank int) {
	if w := &rv.nexts[rank]; w.h != nil {
		rv.nexting--
		w.h = nil
	}
}

// awaiter returns a rank that waits in next for a message of the given rank, or -1. The
// hub's mutex is held.
func (rv *rendezvous) awaiter(rank int) int {
	if rv.nexting == 0 {
		return -1
	}
	return slices.IndexFunc(rv.nexts, func(w nextWait) bool { return w.h != nil && slices.Contains(w.from, rank) })
}

// wakeNext makes a rank that waits in next look again.
func (rv *rendezvous) wakeNext(rank int) {
	select {
	case rv.nexts[rank].look <- struct{}{}:
	default:
	}
}
