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

// wait waits until a peer's word is at least least. For room it returns also
// when there is nothing left to send. What is there within the first stretch of
// looks is no wait in the flight record.
func (t *Transport) wait(word *uint64, least uint64, peer int, n need) error {
	if atomic.LoadUint64(word) >= least {
		return nil
	}
	if t.queued.Load() == 0 {
		looks := spinOnce
		if t.rounds == 0 || n != room && t.mated {
			looks = spinBrief
		}
		if spin(word, least, looks) {
			return nil
		}
	}
	if n == room && !t.oneHost { // another goroutine than that of the call sends
		return t.outlast(word, least, peer, n)
	}
	t.wake()
	rank, cause := t.ranks[peer], n.cause()
	began := t.waits.Begin(rank, cause)
	err := t.outlast(word, least, peer, n)
	t.waits.End(rank, cause, began)
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
func (t *Transport) outlast(word *uint64, least uint64, peer int, n need) error {
	tries := 1
	switch {
	case t.queued.Load() != 0 || t.rounds == 0:
	case n != room && t.mates(peer): // room may be waited for by another goroutine
		if t.together++; t.together%partEvery == 0 {
			tries = t.yields
		} else if t.giveUp(word, least) {
			return nil
		}
	default:
		for range t.rounds - 1 {
			if spin(word, least, spinOnce) {
				return nil
			}
		}
	}
	if n == progress && t.shared && t.apart(peer, int(t.calls&1)) && spin(word, least, elsewhere) {
		return nil
	}
	for ; ; tries++ {
		if t.queued.Load() != 0 {
			if t.push() {
				tries = 1
			}
			if n == room && t.queued.Load() == 0 {
				return nil
			}
		}
		if spin(word, least, spinBrief) {
			return nil
		}
		if tries%shareEvery == 0 || t.rounds == 0 && tries%lookEvery == 0 {
			runtime.Gosched() // to heartbeats, and to ranks that are goroutines of this very process
		}
		if tries%lookEvery == 0 {
			if err := t.judge(word, least, peer, n); err != nil {
				return err
			}
		}
		if tries < t.yields {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		if err := t.judge(word, least, peer, n); err != nil {
			return err
		}
		t.sleep(word, least)
	}
}

// judge says why a wait cannot end, or nil.
func (t *Transport) judge(word *uint64, least uint64, peer int, n need) error {
	if err := t.under.Err(); err != nil {
		return err
	}
	rank := t.ranks[peer]
	left := t.under.Left(rank)
	odd, differs := t.otherCall(peer, n)
	switch {
	case !left && !differs:
		return nil
	case atomic.LoadUint64(word) >= least:
		return nil // it came before that
	case differs:
		return t.mismatch(peer, &odd)
	}
	phase := "receive"
	if n == room {
		phase = "send"
	}
	t.under.Abort(&collective.RankError{Rank: rank, Phase: phase, Err: collective.ErrLeft})
	return t.failure()
}

// otherCall is the header of a call that a peer makes by the other way than this
// rank waits for it, if it does: in order, so what is waited for will not come.
func (t *Transport) otherCall(peer int, n need) (h collective.Header, differs bool) {
	switch n {
	case aMessage:
		last := t.calls
		if parity := int((last + 1) & 1); atomic.LoadUint64(t.desks[peer][parity].shown) > last {
			h.Get(t.desks[peer][parity].header)
			return h, true
		}
	case aCall:
		in := &t.in[peer]
		if atomic.LoadUint64(in.head) >= in.taken+collective.HeaderSize {
			h.Get(in.at(in.taken, collective.HeaderSize))
			return h, true
		}
	}
	return h, false
}

// sleep waits until somebody rings this rank's bell, unless what is waited for
// has come meanwhile. Whatever woke it, the caller looks again.
func (t *Transport) sleep(word *uint64, least uint64) {
	atomic.AddUint32(t.asleep(t.self), 1) // from here on whoever changes something rings
	bell := t.bell(t.self)
	rung := atomic.LoadUint32(bell)
	moved := t.queued.Load() != 0 && t.push()
	if !moved && atomic.LoadUint64(word) < least && t.under.Err() == nil {
		limit := unix.NsecToTimespec(int64(sleepMost))
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWait, uintptr(rung), uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
	atomic.AddUint32(t.asleep(t.self), ^uint32(0))
}

const futexWait, futexWake = 0, 1 // linux/futex.h: between processes

// rouse wakes a rank if it sleeps. What it may be waiting for has been done: of
// two that do this and that, one sees the other's.
func (t *Transport) rouse(peer int) {
	if atomic.LoadUint32(t.asleep(peer)) != 0 {
		t.ring(peer)
	}
}

func (t *Transport) ring(peer int) {
	bell := t.bell(peer)
	atomic.AddUint32(bell, 1)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWake, 1<<30)
}

func (t *Transport) bell(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(t.mem.word(t.mem.sleep(peer))))
}

func (t *Transport) asleep(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(t.mem.word(t.mem.sleep(peer) + 8)))
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
func (t *Transport) mismatch(peer int, theirs *collective.Header) error {
	mine := t.now
	err := mine.Match(theirs, t.view.Self, t.ranks[peer])
	if err == nil {
		err = fmt.Errorf("shm: rank %d is in %v #%d, and did not show it where rank %d looked", t.ranks[peer], mine.Call, mine.Seq, t.view.Self)
	}
	return t.differ(peer, err)
}

func (t *Transport) differ(peer int, err error) error {
	t.under.Abort(&collective.RankError{Rank: t.ranks[peer], Phase: "mismatch", Err: err})
	return err
}
