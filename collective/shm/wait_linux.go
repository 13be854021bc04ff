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

// How long a rank polls before it sleeps. If every rank has a core, polling
// notices at once what comes soon. If there are more ranks than cores, the
// awaited rank may itself be waiting for this core, so a waiting rank yields
// it.
const (
	spinOnce   = 250 // polls per round, of some 20 ns each
	spinRounds = 8
	spinBrief  = 5

	yieldsAlone   = 50  // yields before sleep, if every rank has a core
	yieldsCrowded = 500 // and if not
	lookEvery     = 8   // yields between checks of what seldom changes
	shareEvery    = 64  // tries between Gosched, if every rank has a core; without it, a busy goroutine may keep the only thread for 10 ms

	sleepMost = 100 * time.Millisecond // then check whether the View is broken
)

// What a rank waits for from a peer.
type need uint8

const (
	aMessage need = iota // a message in the ring from the peer
	room                 // room in the ring to the peer
	aCall                // the peer's call to be shown
	progress             // progress of the peer in a call that both are in
)

// A waiter waits for words in the shared memory. Before it waits for long, it
// wakes every rank that may wait for this one. While it waits, it sends what is
// queued.
type waiter struct {
	hostRanks
	outgoing
	sharing

	rounds, yields int // see patience
	waits          *collective.Waits

	in     []inlane           // by index, used by the goroutine that receives
	posted [flags]*uint64     // the own flags; for shown, the one of this call
	desks  [][2]desk          // by index
	now    *collective.Header // of the call in progress
	calls  uint64             // number of calls shown

	posting bool // see post; last, to lie next to the fields of reduction that small calls use
}

// wait waits until a peer's word is at least least. For room, it also returns
// once nothing is left to send. The flight record does not count a wait that is
// over within the first polls.
func (w *waiter) wait(word *uint64, least uint64, peer int, n need) error {
	if atomic.LoadUint64(word) >= least {
		return nil
	}
	if !w.queues.Unsent() {
		looks := spinOnce
		if w.rounds == 0 || n != room && w.mated {
			looks = spinBrief
		}
		if spin(word, least, looks) {
			return nil
		}
	}
	if n == room && !w.oneHost { // another goroutine than the call's may be sending
		return w.outlast(word, least, peer, n)
	}
	w.wake()
	rank, cause := w.ranks[peer], n.cause()
	began := w.waits.Begin(rank, cause)
	err := w.outlast(word, least, peer, n)
	w.waits.End(rank, cause, began)
	return err
}

// cause returns how the flight record classifies a need.
func (n need) cause() collective.Cause {
	switch n {
	case aMessage:
		return collective.AsExpected
	case aCall:
		return collective.LateToCall
	}
	return collective.SlowToMove
}

// outlast is the part of wait that may take long.
func (w *waiter) outlast(word *uint64, least uint64, peer int, n need) error {
	tries := 1
	switch {
	case w.queues.Unsent() || w.rounds == 0:
	case n != room && w.mates(peer): // another goroutine may wait for room
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
		if w.queues.Unsent() {
			if w.push() {
				tries = 1
			}
			if n == room && !w.queues.Unsent() {
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

// judge returns why a wait can never end, or nil.
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
		return nil // it came before the peer left or made another call
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

// otherCall returns the header of a call that a peer makes by other means than
// this rank waits for: by messages instead of shared memory, or the reverse.
// Calls are in order, so what this rank waits for will never come.
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

// sleep waits until a rank rings this rank's bell, unless the word has changed
// meanwhile. The caller checks the word again, whatever the reason for waking.
func (w *waiter) sleep(word *uint64, least uint64) {
	atomic.AddUint32(w.asleep(w.self), 1) // from here on, a rank that changes a word rings the bell
	bell := w.bell(w.self)
	rung := atomic.LoadUint32(bell)
	moved := w.queues.Unsent() && w.push()
	if !moved && atomic.LoadUint64(word) < least && w.under.Err() == nil {
		limit := unix.NsecToTimespec(int64(sleepMost))
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWait, uintptr(rung), uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
	atomic.AddUint32(w.asleep(w.self), ^uint32(0))
}

const futexWait, futexWake = 0, 1 // linux/futex.h, without the private flag: they work between processes

// rouse wakes a rank if it sleeps. Call it after the store that the rank may
// wait for: either we see the sleeper, or it sees the store.
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

// patience returns how many rounds to spin and how often to yield, for a number
// of ranks that share this machine's cores.
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
		err = fmt.Errorf("shm: rank %d is in %v #%d, and did not show it where rank %d expected it", w.ranks[peer], mine.Call, mine.Seq, w.view.Self)
	}
	return w.differ(peer, err)
}

func (h *hostRanks) differ(peer int, err error) error {
	h.under.Abort(&collective.RankError{Rank: h.ranks[peer], Phase: "mismatch", Err: err})
	return err
}
