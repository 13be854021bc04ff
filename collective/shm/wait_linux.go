package shm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// How long somebody looks before they sleep. While every rank has a core,
// looking finds what comes soon at once. Where there are more ranks than cores,
// who is waited for may be waiting for this very core, so it is given away.
const (
	spinOnce   = 250 // looks of one stretch, of some 20 ns each
	spinRounds = 8
	spinBrief  = 5

	yieldsAlone   = 50  // then sleep, where every rank has a core,
	yieldsCrowded = 500 // and where not
	lookEvery     = 8   // yields, for what seldom changes
	shareEvery    = 64  // where every rank has a core: another goroutine that is busy may keep the only thread for 10 ms

	sleepMost = 100 * time.Millisecond // then look whether the others live
)

// What a rank waits for from a peer.
type need uint8

const (
	aMessage need = iota // in the ring from it
	room                 // in the ring to it
	aCall                // that it shows its call
	progress             // in a call that both are in
)

// A waiter waits for words in the shared memory. Meanwhile it sends what is on its
// way, and before that it wakes whoever may wait for this rank.
type waiter struct {
	hostRanks
	outgoing
	sharing

	rounds, yields int // see patience
	waits          *collective.Waits

	in     []inlane           // by index, used by the goroutine that receives
	posted [flags]*uint64     // the own flags; of shown, that of this call
	desks  [][2]desk          // by index
	now    *collective.Header // of the call in progress
	calls  uint64             // that were shown

	posting bool // see post; last, next to what small calls use of a reduction
}

// wait waits until a peer's word is at least least. For room it returns also
// when there is nothing left to send. What is there within the first stretch of
// looks is no wait in the flight record.
func (w *waiter) wait(word *uint64, least uint64, peer int, n need) error {
	if atomic.LoadUint64(word) >= least {
		return nil
	}
	if w.queued.Load() == 0 {
		looks := spinOnce
		if w.rounds == 0 || n != room && w.mated {
			looks = spinBrief
		}
		if spin(word, least, looks) {
			return nil
		}
	}
	if n == room && !w.oneHost { // another goroutine than that of the call sends
		return w.outlast(word, least, peer, n)
	}
	w.wake()
	rank, cause := w.ranks[peer], n.cause()
	began := w.waits.Begin(rank, cause)
	err := w.outlast(word, least, peer, n)
	w.waits.End(rank, cause, began)
	return err
}

// cause is what the flight record calls a need.
func (n need) cause() collective.Cause {
	switch n {
	case aMessage:
		return collective.AsExpected
	case aCall:
		return collective.LateToCall
	}
	return collective.SlowToMove
}

// outlast is the part of wait that may be long.
func (w *waiter) outlast(word *uint64, least uint64, peer int, n need) error {
	tries := 1
	switch {
	case w.queued.Load() != 0 || w.rounds == 0:
	case n != room && w.mates(peer): // room may be waited for by another goroutine
		if w.together++; w.together%partEvery == 0 {
			tries = w.yields
		} else if w.giveUp(word, least) {
			return nil
		}
	default:
		for range w.rounds - 1 {
			if spin(word, least, spinOnce) {
				return nil
			}
		}
	}
	if n == progress && w.shared && w.apart(peer, int(w.calls&1)) && spin(word, least, elsewhere) {
		return nil
	}
	for ; ; tries++ {
		if w.queued.Load() != 0 {
			if w.push() {
				tries = 1
			}
			if n == room && w.queued.Load() == 0 {
				return nil
			}
		}
		if spin(word, least, spinBrief) {
			return nil
		}
		if tries%shareEvery == 0 || w.rounds == 0 && tries%lookEvery == 0 {
			runtime.Gosched() // to heartbeats, and to ranks that are goroutines of this very process
		}
		if tries%lookEvery == 0 {
			if err := w.judge(word, least, peer, n); err != nil {
				return err
			}
		}
		if tries < w.yields {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		if err := w.judge(word, least, peer, n); err != nil {
			return err
		}
		w.sleep(word, least)
	}
}

// judge says why a wait cannot end, or nil.
func (w *waiter) judge(word *uint64, least uint64, peer int, n need) error {
	if err := w.under.Err(); err != nil {
		return err
	}
	rank := w.ranks[peer]
	left := w.under.Left(rank)
	odd, differs := w.otherCall(peer, n)
	switch {
	case !left && !differs:
		return nil
	case atomic.LoadUint64(word) >= least:
		return nil // it came before that
	case differs:
		return w.mismatch(peer, &odd)
	}
	phase := "receive"
	if n == room {
		phase = "send"
	}
	w.under.Abort(&collective.RankError{Rank: rank, Phase: phase, Err: collective.ErrLeft})
	return w.failure()
}

// otherCall is the header of a call that a peer makes by the other way than this
// rank waits for it, if it does: in order, so what is waited for will not come.
func (w *waiter) otherCall(peer int, n need) (h collective.Header, differs bool) {
	switch n {
	case aMessage:
		last := w.calls
		if parity := int((last + 1) & 1); atomic.LoadUint64(w.desks[peer][parity].shown) > last {
			h.Get(w.desks[peer][parity].header)
			return h, true
		}
	case aCall:
		in := &w.in[peer]
		if atomic.LoadUint64(in.head) >= in.taken+collective.HeaderSize {
			h.Get(in.at(in.taken, collective.HeaderSize))
			return h, true
		}
	}
	return h, false
}

// sleep waits until somebody rings this rank's bell, unless what is waited for
// has come meanwhile. Whatever woke it, the caller looks again.
func (w *waiter) sleep(word *uint64, least uint64) {
	atomic.AddUint32(w.asleep(w.self), 1) // from here on whoever changes something rings
	bell := w.bell(w.self)
	rung := atomic.LoadUint32(bell)
	moved := w.queued.Load() != 0 && w.push()
	if !moved && atomic.LoadUint64(word) < least && w.under.Err() == nil {
		limit := unix.NsecToTimespec(int64(sleepMost))
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWait, uintptr(rung), uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
	atomic.AddUint32(w.asleep(w.self), ^uint32(0))
}

const futexWait, futexWake = 0, 1 // linux/futex.h: between processes

// rouse wakes a rank if it sleeps. What it may be waiting for has been done: of
// two that do this and that, one sees the other's.
func (h *hostRanks) rouse(peer int) {
	if atomic.LoadUint32(h.asleep(peer)) != 0 {
		h.ring(peer)
	}
}

func (h *hostRanks) ring(peer int) {
	bell := h.bell(peer)
	atomic.AddUint32(bell, 1)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWake, 1<<30)
}

func (h *hostRanks) bell(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(h.mem.word(h.mem.sleep(peer))))
}

func (h *hostRanks) asleep(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(h.mem.word(h.mem.sleep(peer) + 8)))
}

// patience is how many rounds to spin and how often to yield, for so many ranks
// that share this machine's cores.
func patience(ranks int) (rounds, yields int) {
	if ranks > runtime.NumCPU() {
		return 0, yieldsCrowded
	}
	return spinRounds, yieldsAlone
}

// mismatch breaks the View because a peer's call differs from the one in
// progress here.
func (w *waiter) mismatch(peer int, theirs *collective.Header) error {
	mine := w.now
	err := mine.Match(theirs, w.view.Self, w.ranks[peer])
	if err == nil {
		err = fmt.Errorf("shm: rank %d is in %v #%d, and did not show it where rank %d looked", w.ranks[peer], mine.Call, mine.Seq, w.view.Self)
	}
	return w.differ(peer, err)
}

func (h *hostRanks) differ(peer int, err error) error {
	h.under.Abort(&collective.RankError{Rank: h.ranks[peer], Phase: "mismatch", Err: err})
	return err
}
