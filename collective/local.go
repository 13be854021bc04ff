package collective

import (
	"context"
	"fmt"
	"sync"
)

// Local makes the views and transports of a job of n ranks that are goroutines
// of this process. Messages are copied once, from the sender's memory to the
// receiver's.
func Local(n int) ([]View, []Transport) {
	members := make([]Member, n)
	for r := range members {
		members[r] = Member{Name: fmt.Sprintf("local/%d", r), Nonce: uint64(r + 1), Node: "local", Local: r, LocalSize: n}
	}
	hub := &localHub{size: n, lanes: make([]lane, n*n), broken: make(chan struct{})}
	for i := range hub.lanes {
		hub.lanes[i] = lane{offer: make(chan *localMessage), taken: make(chan error, 1)}
	}
	views, ts := make([]View, n), make([]Transport, n)
	for r := range n {
		views[r] = View{Job: 1, Epoch: 1, Self: r, Members: members}
		ts[r] = &local{hub: hub, rank: r, left: make(chan struct{})}
	}
	hub.ranks = ts
	return views, ts
}

// localHub is what the ranks of one Local job share.
type localHub struct {
	size  int
	lanes []lane // [from*size+to]
	ranks []Transport

	broken chan struct{} // closed after cause was set
	once   sync.Once
	cause  *RankError
	by     int
}

// A lane carries the messages from one rank to another. The sender offers its
// message and waits until the receiver says that it was copied.
type lane struct {
	offer chan *localMessage
	taken chan error
	m     localMessage // the one in flight; belongs to the sender
}

type localMessage struct {
	h     *Header
	parts [][]byte
}

type local struct {
	hub  *localHub
	rank int
	left chan struct{} // closed by Close
	once sync.Once
}

func (l *local) Send(ctx context.Context, to int, h *Header, parts [][]byte) error {
	lane := &l.hub.lanes[l.rank*l.hub.size+to]
	lane.m = localMessage{h, parts}
	select {
	case lane.offer <- &lane.m:
		// The receiver is copying now, which waits for nothing, so parts stay
		// untouched until it is done whatever happens.
		return <-lane.taken
	case <-l.hub.broken:
		return l.hub.error(l.rank)
	case <-l.left:
		return ErrClosed
	case <-l.hub.peer(to).left:
		return l.leftError(to, "send")
	case <-ctx.Done():
		return l.cancelled(ctx)
	}
}

func (l *local) Recv(ctx context.Context, from int, h *Header, parts [][]byte) error {
	lane := &l.hub.lanes[from*l.hub.size+l.rank]
	select {
	case m := <-lane.offer:
		err := h.Match(m.h, l.rank, from)
		if err == nil {
			copyParts(parts, m.parts)
		}
		lane.taken <- nil
		if err != nil {
			l.Abort(&RankError{Rank: from, Phase: "mismatch", Err: err})
		}
		return err
	case <-l.hub.broken:
		return l.hub.error(l.rank)
	case <-l.left:
		return ErrClosed
	case <-l.hub.peer(from).left:
		return l.leftError(from, "receive")
	case <-ctx.Done():
		return l.cancelled(ctx)
	}
}

func (l *local) Abort(cause *RankError) {
	l.hub.once.Do(func() {
		l.hub.cause, l.hub.by = cause, l.rank
		close(l.hub.broken)
	})
}

// Failed is closed when the transport is broken, and then Err says by what.
func (l *local) Failed() <-chan struct{} { return l.hub.broken }

// Err is what broke the transport, nil while nothing has.
func (l *local) Err() error {
	select {
	case <-l.hub.broken:
		return l.hub.error(l.rank)
	default:
		return nil
	}
}

func (l *local) Close() error {
	l.once.Do(func() { close(l.left) })
	return nil
}

func (l *local) leftError(rank int, phase string) error {
	err := &RankError{Rank: rank, Phase: phase, Err: ErrLeft}
	l.Abort(err)
	return l.hub.error(l.rank)
}

func (l *local) cancelled(ctx context.Context) error {
	l.Abort(&RankError{Rank: l.rank, Phase: "cancelled", Err: context.Cause(ctx)})
	return l.hub.error(l.rank)
}

func (h *localHub) peer(rank int) *local { return h.ranks[rank].(*local) }

// error is the cause as rank sees it: its own, or another's report.
func (h *localHub) error(rank int) error {
	<-h.broken
	if rank == h.by {
		return h.cause
	}
	told := *h.cause
	told.Err = &ReportedError{By: h.by, Err: h.cause.Err}
	return &told
}

// copyParts copies bytes between two lists of the same total length that may
// be cut differently.
func copyParts(dst, src [][]byte) {
	var to []byte
	for _, from := range src {
		for len(from) > 0 {
			if len(to) == 0 {
				to, dst = dst[0], dst[1:]
				continue
			}
			n := copy(to, from)
			to, from = to[n:], from[n:]
		}
	}
}
