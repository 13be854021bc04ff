package collective

import (
	"runtime"
	"slices"
	"sync/atomic"
)

// A board is where the ranks of a Local job meet to carry out a call in memory
// that all of them reach. Until the last has come, who stands at the board can
// go again: the job is broken, or the rank is closed. From then on the call
// cannot fail and nobody goes before it is done, so nobody's memory is touched
// outside of its call. What is not atomic is guarded by the hub's mutex.
type board struct {
	seats []seat // by rank
	round uint64 // counts the calls
	order []int  // the ranks that have come in this round
	waits [ways][]messageWait
	left  int      // ranks that were closed
	src   [][]byte // memory of the calls, by rank
	dst   [][]byte
	shared
}

// A seat is a rank's place at the board.
type seat struct {
	o       *Operation    // of the round
	round   uint64        // in which the rank came last
	err     error         // how the call ended, once state is over
	state   atomic.Uint32 // written by the rank, until it is asleep, and by who ends its wait
	wake    chan struct{} // takes a value when a sleeper is to look at its state again
	awaited int           // how many messageWaits there are for the rank
	_       [64]byte      // ranks look at their states often
}

// The states of a seat.
const (
	over    = uint32(iota) // the rank may go
	waiting                // it looks at its state now and then,
	asleep                 // or waits for wake
	helping                // it shall take its share in the work, or does
)

// A way is what a rank waits for that does not stand at the board.
type way int

const (
	sending way = iota
	receiving
	ways
)

// String is the phase of an error.
func (w way) String() string {
	if w == sending {
		return "send"
	}
	return "receive"
}

// A messageWait is a rank's wait for another to take or to send a message.
type messageWait struct {
	peer int
	h    *Header // nil: it does not wait
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

// at is the call for which a rank stands at the board and waits for others to
// come, or nil.
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

// meet has a call carried out by all ranks together. The last to come does all
// of it if it is little.
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

// admit finds what is wrong with a rank's coming to the board for a call.
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

// looks is how often a rank looks whether its wait is over, and lets others run
// in between, before it sleeps. Ranks that have nothing else to do come sooner.
const looks = 20

// stay waits until the call is over, and helps where it is told to.
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

// sleep waits until there is something else to do than to wait.
func (l *local) sleep(s *seat) {
	rank, c, ok := l.whom()
	if !ok { // it is over, or about to be
		runtime.Gosched()
		return
	}
	began := l.waits.Begin(rank, c)
	if s.state.CompareAndSwap(waiting, asleep) {
		<-s.wake
	}
	b := &l.hub.board
	switch state := s.state.Load(); {
	case state != over: // it helps, so all have come
		l.waits.endMeeting(began, b.met, b.last, b.last)
	case s.err == nil:
		l.waits.endMeeting(began, b.met, b.last, b.slowest)
	default:
		l.waits.End(rank, c, began)
	}
}

// whom is for whom this rank waits at the board, if it does.
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

// end ends the round: who has come may go once its seat says so.
func (b *board) end() {
	b.working, b.order = false, b.order[:0]
	b.round++
}

// release lets all others than rank go.
func (b *board) release(rank int) {
	for r := range b.seats {
		if r != rank {
			b.seats[r].become(over)
		}
	}
}

// become ends a wait. The caller must be the only one who can.
func (s *seat) become(state uint32) {
	if s.state.Swap(state) == asleep {
		s.wake <- struct{}{}
	}
}

// dismiss sends who has come away, because the job is broken, unless all have
// come. It is called under the mutex.
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

// leave takes a rank that was closed off the board, and breaks the job for those
// who wait for it. It is called under the mutex.
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
