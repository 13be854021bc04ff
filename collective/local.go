package collective

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Local makes the views and transports of a job whose n ranks are goroutines of
// this process. A message is copied once, from the sender's memory to the
// receiver's. An AllReduce, a Barrier and all other small calls with pieces of one length need
// no messages.
func Local(n int) ([]View, []Transport) {
	members := make([]Member, n)
	for r := range members {
		members[r] = Member{Name: fmt.Sprintf("local/%d", r), Nonce: uint64(r + 1), Node: "local", Local: r, LocalSize: n}
	}
	hub := &localHub{size: n, pairs: make([]pairChannel, n*n), broken: make(chan struct{})}
	for i := range hub.pairs {
		hub.pairs[i] = pairChannel{offer: make(chan *localMessage), copied: make(chan error, 1)}
	}
	hub.rendezvous.init(n)
	views, ts := make([]View, n), make([]Transport, n)
	hub.ranks = make([]*local, n)
	for r := range n {
		views[r] = View{Job: 1, Epoch: 1, Self: r, Members: members}
		l := &local{hub: hub, rank: r, left: make(chan struct{})}
		hub.ranks[r], ts[r] = l, l
	}
	return views, ts
}

// localHub is the state that the ranks of one Local job share.
type localHub struct {
	size  int
	pairs []pairChannel // [from*size+to]
	ranks []*local

	mu         sync.Mutex    // guards what follows
	broken     chan struct{} // closed after cause was set
	cause      *RankError
	by         int
	rendezvous rendezvous
}

// A pairChannel carries the messages from one rank to another. The sender offers its
// message and waits until the receiver has copied it.
type pairChannel struct {
	offer  chan *localMessage
	copied chan error
	m      localMessage // the message being sent; belongs to the sender
}

type localMessage struct {
	h     *Header
	parts [][]byte
}

// wait waits until the receiver has copied the message, and forgets its memory.
func (p *pairChannel) wait() error {
	err := <-p.copied
	p.m = localMessage{}
	return err
}

type local struct {
	hub  *localHub
	rank int
	left chan struct{} // closed by Close, under the hub's mutex

	called atomic.Uint64 // the number of the last call of all ranks that this rank began
	waits  *Waits
	folding
}

var (
	_ Able    = (*local)(nil)
	_ Reducer = (*local)(nil)
)

func (l *local) Send(ctx context.Context, to int, h *Header, parts [][]byte) error {
	l.begun(h)
	pair := &l.hub.pairs[l.rank*l.hub.size+to]
	pair.m = localMessage{h, parts}
	select {
	case pair.offer <- &pair.m:
		return pair.wait()
	default:
	}
	if err := l.await(sending, to, h); err != nil {
		return err
	}
	select {
	case pair.offer <- &pair.m:
		// The receiver is copying now, which never blocks. Waiting for it, whatever
		// else happens, keeps the caller from changing parts.
		return pair.wait()
	case <-l.hub.broken:
	case <-l.left:
	case <-l.hub.ranks[to].left:
	case <-ctx.Done():
	}
	return l.broke(ctx, sending, to)
}

func (l *local) Recv(ctx context.Context, from int, h *Header, parts [][]byte) error {
	l.begun(h)
	pair := &l.hub.pairs[from*l.hub.size+l.rank]
	select {
	case m := <-pair.offer:
		return l.accept(pair, from, m, h, parts)
	default:
	}
	if err := l.await(receiving, from, h); err != nil {
		return err
	}
	select {
	case m := <-pair.offer:
		return l.accept(pair, from, m, h, parts)
	case <-l.hub.broken:
	case <-l.left:
	case <-l.hub.ranks[from].left:
	case <-ctx.Done():
	}
	return l.broke(ctx, receiving, from)
}

// accept copies a message that was offered and releases its sender.
func (l *local) accept(pair *pairChannel, from int, m *localMessage, h *Header, parts [][]byte) error {
	l.hub.mu.Lock()
	l.hub.rendezvous.forget(receiving, l.rank) // neither rank waits from here on
	l.hub.rendezvous.forget(sending, from)
	l.hub.mu.Unlock()
	err := h.Match(m.h, l.rank, from)
	if err != nil {
		l.Abort(&RankError{Rank: from, Phase: "mismatch", Err: err})
		pair.copied <- l.hub.error(from)
		return err
	}
	copyParts(parts, m.parts)
	pair.copied <- nil
	return nil
}

// await records that this rank waits for a peer's Send or Recv. It fails if the
// peer waits at the rendezvous, because such a peer sends and receives nothing.
func (l *local) await(d direction, peer int, h *Header) error {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if o := l.hub.rendezvous.at(peer); o != nil {
		return l.differ(peer, h, &o.Header)
	}
	l.hub.rendezvous.wait(d, l.rank, peer, h)
	return nil
}

// broke returns why a wait for a peer ended without a message, and breaks the
// job if that is new.
func (l *local) broke(ctx context.Context, d direction, peer int) error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rendezvous.forget(d, l.rank)
	switch {
	case h.cause != nil:
	case h.ranks[l.rank].gone():
		return ErrClosed
	case h.ranks[peer].gone():
		h.abort(&RankError{Rank: peer, Phase: d.String(), Err: ErrLeft}, l.rank)
	default:
		h.abort(&RankError{Rank: l.rank, Phase: "cancelled", Err: context.Cause(ctx)}, l.rank)
	}
	return h.error(l.rank)
}

// differ breaks the job because a peer makes a different call. The hub's mutex
// is held.
func (l *local) differ(peer int, mine, theirs *Header) error {
	if l.hub.cause != nil {
		return l.hub.error(l.rank)
	}
	err := mine.Match(theirs, l.rank, peer)
	if err == nil {
		err = errors.New("one rank sent a message for a call that another rank carries out in shared memory: create the engines the same way on all ranks")
	}
	l.hub.abort(&RankError{Rank: peer, Phase: "mismatch", Err: err}, l.rank)
	return err
}

func (l *local) Abort(cause *RankError) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.hub.abort(cause, l.rank)
}

// Abilities is part of Able.
func (l *local) Abilities() Abilities {
	return Abilities{Reduce: l, NoteWaits: l.noteWaits, Next: l.next, Behind: l.behind, Failed: l.hub.broken, Err: l.err}
}

// err returns what broke the transport, or nil.
func (l *local) err() error {
	select {
	case <-l.hub.broken:
		return l.hub.error(l.rank)
	default:
		return nil
	}
}

func (l *local) Close() error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.gone() {
		return nil
	}
	close(l.left)
	h.leave(l.rank)
	return nil
}

// gone reports whether the rank has been closed.
func (l *local) gone() bool {
	select {
	case <-l.left:
		return true
	default:
		return false
	}
}

// begun records that this rank has begun a call.
func (l *local) begun(h *Header) {
	if h.OfAll() && l.called.Load() < h.Seq {
		l.called.Store(h.Seq)
	}
}

// behind is Abilities.Behind.
func (l *local) behind(seq uint64) (rank int, ok bool) {
	least := seq
	for r, peer := range l.hub.ranks {
		if n := peer.called.Load(); r != l.rank && n < least {
			least, rank, ok = n, r, true
		}
	}
	return rank, ok
}

// noteWaits is Abilities.NoteWaits.
func (l *local) noteWaits(w *Waits) (recv bool) {
	l.waits = w
	w.waitsFor = l.waitsFor
	return false
}

// abort breaks the job, unless it is already broken. The hub's mutex is held.
func (h *localHub) abort(cause *RankError, by int) {
	if h.cause != nil {
		return
	}
	h.cause, h.by = cause, by
	close(h.broken)
	h.fail()
}

// error returns the cause as rank sees it: directly if the rank reported it,
// and otherwise as a ReportedError. A rank that has closed its end learns that,
// even if another noticed it first.
func (h *localHub) error(rank int) error {
	<-h.broken
	switch {
	case rank == h.by:
		return h.cause
	case rank == h.cause.Rank && h.cause.Err == ErrLeft && h.ranks[rank].gone():
		return ErrClosed
	}
	reported := *h.cause
	reported.Err = &ReportedError{By: h.by, Err: h.cause.Err}
	return &reported
}

// copyParts copies bytes between two lists of parts. The lists have the same
// total length, but may be cut differently.
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
