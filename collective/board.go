package collective

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// A board is where the ranks of a Local job meet to carry out a call in memory
// that all of them can reach. Until the last rank has arrived, a waiting rank
// can still leave: the job may break, or the rank may be closed. Once all have
// arrived, the call cannot fail and no rank leaves before it is done. So no
// rank's memory is touched outside its own call. The hub's mutex guards
// everything that is not atomic.
type board struct {
	seats []seat // by rank
	round uint64 // number of the current call, from 1
	order []int  // ranks that have arrived in this round
	waits [ways][]messageWait
	left  int      // number of closed ranks
	src   [][]byte // each rank's Src and Dst in this round
	dst   [][]byte
	shared
}

// A seat is a rank's place at the board.
type seat struct {
	o       *Operation    // of the round
	round   uint64        // in which the rank arrived last
	err     error         // the result of the call, once state is over
	state   atomic.Uint32 // written by the rank until it is asleep, and by the goroutine that ends its wait
	wake    chan struct{} // wakes a sleeper, which then loads state again
	awaited int           // number of messageWaits whose peer is this rank
	_       [64]byte      // padding: each rank polls its own state
}

// The states of a seat.
const (
	over    = uint32(iota) // the call has ended, the rank may return
	waiting                // the rank polls its state
	asleep                 // the rank is blocked on wake
	helping                // the rank works on pieces, or is about to
)

// A way is the direction of a message that a rank waits for instead of standing
// at the board.
type way int

const (
	sending way = iota
	receiving
	ways
)

// String returns the Phase that an error reports.
func (w way) String() string {
	if w == sending {
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

func (b *board) init(n int) {
	b.seats, b.round, b.order = make([]seat, n), 1, make([]int, 0, n)
	b.src, b.dst = make([][]byte, n), make([][]byte, n)
	for r := range b.seats {
		b.seats[r].wake = make(chan struct{}, 1)
	}
	for w := range b.waits {
		b.waits[w] = make([]messageWait, n)
	}
}

// at returns the call for which a rank waits at the board for others to arrive,
// or nil.
func (b *board) at(rank int) *Operation {
	if s := &b.seats[rank]; s.round == b.round && !b.working {
		return s.o
	}
	return nil
}

func (b *board) wait(w way, rank, peer int, h *Header) {
	b.waits[w][rank] = messageWait{peer, h}
	b.seats[peer].awaited++
}

func (b *board) forget(w way, rank int) {
	if m := &b.waits[w][rank]; m.h != nil {
		b.seats[m.peer].awaited--
		m.h = nil
	}
}

// AllReduce is part of Reducer.
func (l *local) AllReduce(o *Operation) error { return l.meet(o) }

// AllGather is part of Reducer.
func (l *local) AllGather(o *Operation) error { return l.meet(o) }

// Barrier is part of Reducer.
func (l *local) Barrier(o *Operation) error { return l.meet(o) }

// meet carries out a call together with all other ranks. The last rank to
// arrive carries out a small call alone.
func (l *local) meet(o *Operation) error {
	l.begun(&o.Header)
	h, s := l.hub, &l.hub.board.seats[l.rank]
	b := &h.board
	h.mu.Lock()
	if err := l.admit(&o.Header); err != nil {
		h.mu.Unlock()
		return err
	}
	s.o, s.round, s.err = o, b.round, nil
	b.src[l.rank], b.dst[l.rank] = o.Src.bytes(), o.Dst.bytes()
	s.state.Store(waiting)
	b.order = append(b.order, l.rank)
	if len(b.order) < h.size {
		h.mu.Unlock()
		return l.stay(s)
	}
	b.share(o)
	if !b.working {
		l.workAlone(o)
		b.end()
		h.mu.Unlock()
		b.release(l.rank)
		return nil
	}
	s.state.Store(helping)
	h.mu.Unlock()
	b.enlist()
	l.did()
	return l.stay(s)
}

// admit returns why a rank cannot join the round: the job is broken, a rank has
// been closed, or the rank's call differs from another's. The hub's mutex is
// held.
func (l *local) admit(mine *Header) error {
	h, b := l.hub, &l.hub.board
	if h.cause != nil {
		return h.error(l.rank)
	}
	if l.gone() {
		return ErrClosed
	}
	if b.left > 0 {
		gone := slices.IndexFunc(h.ranks, (*local).gone)
		h.abort(&RankError{Rank: gone, Phase: receiving.String(), Err: ErrLeft}, l.rank)
		return h.error(l.rank)
	}
	if len(b.order) > 0 {
		if first := b.order[0]; !mine.same(&b.seats[first].o.Header) {
			return l.differ(first, mine, &b.seats[first].o.Header)
		}
	}
	if b.seats[l.rank].awaited > 0 {
		for _, waits := range b.waits {
			for r, m := range waits {
				if m.h != nil && m.peer == l.rank {
					return l.differ(r, mine, m.h)
				}
			}
		}
	}
	return nil
}

// looks is the number of times a rank polls its state before it sleeps. It
// yields the processor in between, so ranks that have nothing else to do arrive
// sooner.
const looks = 20

// stay waits until the call is over, and works on pieces when told to.
func (l *local) stay(s *seat) error {
	for n := 0; ; n++ {
		switch s.state.Load() {
		case over:
			return s.err
		case helping:
			l.work()
			s.state.CompareAndSwap(helping, waiting)
			n = 0
		}
		if n < looks {
			runtime.Gosched()
			continue
		}
		l.sleep(s)
	}
}

// sleep blocks until the state changes. It returns at once if the call is over.
func (l *local) sleep(s *seat) {
	rank, c, ok := l.whom()
	if !ok { // over, or about to be
		runtime.Gosched()
		return
	}
	began := l.waits.Begin(rank, c)
	if s.state.CompareAndSwap(waiting, asleep) {
		<-s.wake
	}
	b := &l.hub.board
	switch state := s.state.Load(); {
	case state != over: // told to help, so all ranks have arrived
		l.waits.endMeeting(began, b.met, b.last, b.last)
	case s.err == nil:
		l.waits.endMeeting(began, b.met, b.last, b.slowest)
	default:
		l.waits.End(rank, c, began)
	}
}

// whom returns the rank that this one waits for at the board, and why. ok is
// false if it does not wait there.
func (l *local) whom() (rank int, c Cause, ok bool) {
	h, b := l.hub, &l.hub.board
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.seats[l.rank].round != b.round {
		return 0, AsExpected, false
	}
	for r := range b.seats {
		s := &b.seats[r]
		if b.working && r != l.rank && s.state.Load() == helping {
			return r, SlowToMove, true
		}
		if s.round != b.round {
			return r, LateToCall, true
		}
	}
	return 0, AsExpected, false
}

// end ends the round. The ranks in it return once their seats say over.
func (b *board) end() {
	b.working, b.order = false, b.order[:0]
	b.round++
}

// release ends the wait of every rank but the given one; -1 excludes none.
func (b *board) release(rank int) {
	for r := range b.seats {
		if r != rank {
			b.seats[r].become(over)
		}
	}
}

// become changes the state of a rank that waits, and wakes it if necessary.
// Only one goroutine at a time may be entitled to call it.
func (s *seat) become(state uint32) {
	if s.state.Swap(state) == asleep {
		s.wake <- struct{}{}
	}
}

// dismiss makes the ranks that wait at the board return the error that broke
// the job, unless all have arrived. The hub's mutex is held.
func (h *localHub) dismiss() {
	b := &h.board
	if b.working {
		return
	}
	for _, r := range b.order {
		s := &b.seats[r]
		s.err = h.error(r)
		s.become(over)
	}
	b.end()
}

// leave removes a closed rank from the board, and breaks the job if others wait
// there. The hub's mutex is held.
func (h *localHub) leave(rank int) {
	b := &h.board
	b.left++
	if b.working {
		return
	}
	if i := slices.Index(b.order, rank); i >= 0 {
		b.order = slices.Delete(b.order, i, i+1)
		s := &b.seats[rank]
		s.round, s.err = 0, ErrClosed
		s.become(over)
	}
	if len(b.order) > 0 {
		h.abort(&RankError{Rank: rank, Phase: receiving.String(), Err: ErrLeft}, b.order[0])
	}
}
