package collective

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// A rendezvous is where the ranks of a Local job meet to carry out a call in
// memory that all of them can reach. Until the last rank has arrived, a waiting
// rank can still leave: the job may break, or the rank may be closed. Once all
// have arrived, the call cannot fail and no rank leaves before it is done. So no
// rank's memory is touched outside its own call. The hub's mutex guards
// everything that is not atomic.
type rendezvous struct {
	participants []participant // by rank
	round        uint64        // number of the current call, from 1
	order        []int         // ranks that have arrived in this round
	waits        [directions][]messageWait
	nexts        []nextWait // by rank
	nexting      int        // how many ranks wait in next
	left         int        // number of closed ranks
	src          [][]byte   // each rank's Src and Dst in this round
	dst          [][]byte
	sharedWork
}

// A participant is the state of one rank at the rendezvous.
type participant struct {
	o       *Operation    // of the round
	round   uint64        // in which the rank arrived last
	err     error         // the result of the call, once state is over
	state   atomic.Uint32 // written by the rank until it is asleep, and by the goroutine that ends its wait
	wake    chan struct{} // wakes a sleeper, which then loads state again
	awaited int           // number of messageWaits whose peer is this rank
	_       [64]byte      // padding: each rank polls its own state
}

// The states of a participant.
const (
	over    = uint32(iota) // the call has ended, the rank may return
	waiting                // the rank polls its state
	asleep                 // the rank is blocked on wake
	helping                // the rank works on pieces, or is about to
)

// A direction is that of a message for which a rank waits instead of waiting at
// the rendezvous.
type direction int

const (
	sending direction = iota
	receiving
	directions
)

// String returns the Phase that an error reports.
func (d direction) String() string {
	if d == sending {
		return "send"
	}
	return "receive"
}

// A messageWait is a rank's wait for a peer to receive its message or to send
// one.
type messageWait struct {
	peer int
	h    *Header // nil if the rank does not wait
}

func (rv *rendezvous) init(n int) {
	rv.participants, rv.round, rv.order = make([]participant, n), 1, make([]int, 0, n)
	rv.src, rv.dst = make([][]byte, n), make([][]byte, n)
	for r := range rv.participants {
		rv.participants[r].wake = make(chan struct{}, 1)
	}
	for d := range rv.waits {
		rv.waits[d] = make([]messageWait, n)
	}
	rv.nexts = make([]nextWait, n)
	for r := range rv.nexts {
		rv.nexts[r].look = make(chan struct{}, 1)
	}
}

// at returns the call in which a rank waits at the rendezvous for others to
// arrive, or nil.
func (rv *rendezvous) at(rank int) *Operation {
	if p := &rv.participants[rank]; p.round == rv.round && !rv.working {
		return p.o
	}
	return nil
}

func (rv *rendezvous) wait(d direction, rank, peer int, h *Header) {
	rv.waits[d][rank] = messageWait{peer, h}
	rv.participants[peer].awaited++
	if d == sending && rv.nexts[peer].h != nil {
		rv.wakeNext(peer)
	}
}

func (rv *rendezvous) forget(d direction, rank int) {
	if m := &rv.waits[d][rank]; m.h != nil {
		rv.participants[m.peer].awaited--
		m.h = nil
	}
}

// AllReduce is part of Reducer.
func (l *local) AllReduce(o *Operation) error { return l.meet(o) }

// Exchange is part of Reducer.
func (l *local) Exchange(o *Operation) error { return l.meet(o) }

// Barrier is part of Reducer.
func (l *local) Barrier(o *Operation) error { return l.meet(o) }

// meet carries out a call together with all other ranks. The last rank to
// arrive carries out a small call alone.
func (l *local) meet(o *Operation) error {
	l.begun(&o.Header)
	h, p := l.hub, &l.hub.rendezvous.participants[l.rank]
	rv := &h.rendezvous
	h.mu.Lock()
	if err := l.admit(&o.Header); err != nil {
		h.mu.Unlock()
		return err
	}
	p.o, p.round, p.err = o, rv.round, nil
	rv.dst[l.rank], rv.src[l.rank] = o.Memory()
	p.state.Store(waiting)
	rv.order = append(rv.order, l.rank)
	if len(rv.order) < h.size {
		h.mu.Unlock()
		return l.waitUntilOver(p)
	}
	rv.divide(o)
	if !rv.working {
		l.workAlone(o)
		rv.end()
		h.mu.Unlock()
		rv.release(l.rank)
		return nil
	}
	p.state.Store(helping)
	h.mu.Unlock()
	rv.wakeHelpers()
	l.pieceDone()
	return l.waitUntilOver(p)
}

// admit returns why a rank cannot join the round: the job is broken, a rank has
// been closed, or the rank's call differs from another's. The hub's mutex is
// held.
func (l *local) admit(mine *Header) error {
	h, rv := l.hub, &l.hub.rendezvous
	if h.cause != nil {
		return h.error(l.rank)
	}
	if l.gone() {
		return ErrClosed
	}
	if rv.left > 0 {
		gone := slices.IndexFunc(h.ranks, (*local).gone)
		h.abort(&RankError{Rank: gone, Phase: receiving.String(), Err: ErrLeft}, l.rank)
		return h.error(l.rank)
	}
	if len(rv.order) > 0 {
		if first := rv.order[0]; !mine.same(&rv.participants[first].o.Header) {
			return l.differ(first, mine, &rv.participants[first].o.Header)
		}
	}
	if rv.participants[l.rank].awaited > 0 {
		for _, waits := range rv.waits {
			for r, m := range waits {
				if m.h != nil && m.peer == l.rank {
					return l.differ(r, mine, m.h)
				}
			}
		}
	}
	if r := rv.awaiter(l.rank); r >= 0 {
		return l.differ(r, mine, rv.nexts[r].h)
	}
	return nil
}

// polls is the number of times a rank polls its state before it sleeps. It
// yields the processor in between, so ranks that have nothing else to do arrive
// sooner.
const polls = 20

// waitUntilOver waits until the call is over, and works on pieces when asked to.
func (l *local) waitUntilOver(p *participant) error {
	for n := 0; ; n++ {
		switch p.state.Load() {
		case over:
			return p.err
		case helping:
			l.work()
			p.state.CompareAndSwap(helping, waiting)
			n = 0
		}
		if n < polls {
			runtime.Gosched()
			continue
		}
		l.sleep(p)
	}
}

// sleep blocks until the state changes. It returns at once if the call is over.
func (l *local) sleep(p *participant) {
	rank, c, ok := l.waitsFor()
	if !ok { // over, or about to be
		runtime.Gosched()
		return
	}
	began := l.waits.Begin(rank, c)
	if p.state.CompareAndSwap(waiting, asleep) {
		<-p.wake
	}
	rv := &l.hub.rendezvous
	switch state := p.state.Load(); {
	case state != over: // asked to help, so all ranks have arrived
		l.waits.endMeeting(began, rv.met, rv.last, rv.last)
	case p.err == nil:
		l.waits.endMeeting(began, rv.met, rv.last, rv.slowest)
	default:
		l.waits.End(rank, c, began)
	}
}

// waitsFor returns the rank that this one waits for at the rendezvous, and why. ok is
// false if it does not wait there.
func (l *local) waitsFor() (rank int, c Cause, ok bool) {
	h, rv := l.hub, &l.hub.rendezvous
	h.mu.Lock()
	defer h.mu.Unlock()
	if rv.participants[l.rank].round != rv.round {
		return 0, AsExpected, false
	}
	for r := range rv.participants {
		p := &rv.participants[r]
		if rv.working && r != l.rank && p.state.Load() == helping {
			return r, SlowToMove, true
		}
		if p.round != rv.round {
			return r, LateToCall, true
		}
	}
	return 0, AsExpected, false
}

// end ends the round. The ranks in it return once their state is over.
func (rv *rendezvous) end() {
	rv.working, rv.order = false, rv.order[:0]
	rv.round++
}

// release ends the wait of every rank but the given one; -1 excludes none.
func (rv *rendezvous) release(rank int) {
	for r := range rv.participants {
		if r != rank {
			rv.participants[r].become(over)
		}
	}
}

// become changes the state of a rank that waits, and wakes it if necessary.
// Only one goroutine at a time may be entitled to call it.
func (p *participant) become(state uint32) {
	if p.state.Swap(state) == asleep {
		p.wake <- struct{}{}
	}
}

// fail makes the ranks that wait at the rendezvous return the error that broke
// the job, unless all have arrived. The hub's mutex is held.
func (h *localHub) fail() {
	rv := &h.rendezvous
	if rv.working {
		return
	}
	for _, r := range rv.order {
		p := &rv.participants[r]
		p.err = h.error(r)
		p.become(over)
	}
	rv.end()
}

// leave removes a closed rank from the rendezvous, and breaks the job if others
// wait there. The hub's mutex is held.
func (h *localHub) leave(rank int) {
	rv := &h.rendezvous
	rv.left++
	for r := range rv.nexts {
		rv.wakeNext(r)
	}
	if rv.working {
		return
	}
	if i := slices.Index(rv.order, rank); i >= 0 {
		rv.order = slices.Delete(rv.order, i, i+1)
		p := &rv.participants[rank]
		p.round, p.err = 0, ErrClosed
		p.become(over)
	}
	if len(rv.order) > 0 {
		h.abort(&RankError{Rank: rank, Phase: receiving.String(), Err: ErrLeft}, rv.order[0])
	}
}
