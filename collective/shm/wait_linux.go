package shm

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// How long a rank polls before it sleeps. If every rank has a core, a polling
// rank sees a change at once. If there are more ranks than cores, the awaited
// rank may itself be waiting for this core, so a waiting rank yields it.
const (
	spinBrief    = 5 // polls between other attempts
	yieldsAtOnce = 5 // yields of one call of yield

	yieldsCrowded = 500 // yields before sleep, if there are more ranks than cores; each may let another rank work
	judgeEvery    = 8   // tries between calls of judge
	goschedEvery  = 64  // tries between calls of Gosched, if every rank has a core; without them, a goroutine may keep the only thread for 10 ms
)

// What a rank waits for from a peer.
type need uint8

const (
	aMessage need = iota // a message in the ring from the peer
	room                 // room in the ring to the peer
	aCall                // the peer's call to be shown
	progress             // progress of the peer in a call that both are in
)

// A waiter waits for words in the shared memory. Before a long wait, it wakes the
// ranks that may be waiting for this one. While it waits, it sends the messages that
// are queued.
type waiter struct {
	hostRanks
	outgoing
	cores

	polls, rounds, yields int // see calibration.Choices
	waits                 *collective.Waits

	in      []inRing           // by index, used by the goroutine that receives
	far     farListener        // to other hosts
	myFlags [flags]*uint64     // for shown, that of this call
	slots   [][2]callSlot      // by index
	now     *collective.Header // of the call in progress
	calls   uint64             // number of calls shown

	wakeDue bool // see raise; last, to lie next to the fields of reduction that small calls use
}

// wait waits until a peer's word is at least least. For room, it also returns
// when nothing is left to send. The flight record does not count a wait that ends
// within the first polls.
func (w *waiter) wait(word *uint64, least uint64, peer int, n need) error {
	if atomic.LoadUint64(word) >= least {
		return nil
	}
	if !w.queues.Unsent() {
		polls := w.polls
		if w.rounds == 0 || n != room && w.sameCore {
			polls = spinBrief
		}
		if spin(word, least, polls) {
			return nil
		}
	}
	if n == room && !w.oneHost { // this may not be the goroutine of the call, so keep off its fields
		return w.waitLong(word, least, peer, n)
	}
	w.wakeSleepers()
	rank, cause := w.ranks[peer], n.cause()
	began := w.waits.Begin(rank, cause)
	err := w.waitLong(word, least, peer, n)
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

// waitLong continues wait after the first polls.
func (w *waiter) waitLong(word *uint64, least uint64, peer int, n need) error {
	tries := 1
	switch {
	case w.queues.Unsent() || w.rounds == 0:
	case n != room && w.onThisCore(peer): // a wait for room may be in another goroutine
		if w.sameCoreWaits++; w.sameCoreWaits%leaveEvery == 0 {
			if !w.part() {
				tries = w.yields
			}
		} else if w.yieldUntil(word, least) {
			return nil
		}
	default:
		if n != room && w.parting.apart {
			if w.apartWaits++; w.apartWaits%lookEvery == 0 {
				w.returnIfQueued()
			}
		}
		for range w.rounds - 1 {
			if spin(word, least, w.polls) {
				return nil
			}
		}
	}
	if n == progress && w.shared && w.onOtherCore(peer, int(w.calls&1)) && spin(word, least, w.polls) {
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
		if tries%goschedEvery == 0 || w.rounds == 0 && tries%judgeEvery == 0 {
			runtime.Gosched() // for heartbeats, and for ranks that are goroutines of this process
		}
		if tries%judgeEvery == 0 {
			if err := w.judge(word, least, peer, n); err != nil {
				return err
			}
		}
		if tries < w.yields {
			yield(word, least, 1)
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
		return nil // the word was stored before the peer left or made the other call
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

// otherCall returns the header of a call that a peer makes by messages although
// this rank expects it in the call slot, or the reverse. Calls are in order, so what
// this rank waits for will never come.
func (w *waiter) otherCall(peer int, n need) (h collective.Header, differs bool) {
	switch n {
	case aMessage:
		last := w.calls
		if parity := int((last + 1) & 1); atomic.LoadUint64(w.slots[peer][parity].shown) > last {
			h.Get(w.slots[peer][parity].header)
			return h, true
		}
	case aCall:
		in := &w.in[peer]
		if atomic.LoadUint64(in.head) >= in.consumed+collective.HeaderSize {
			h.Get(in.at(in.consumed, collective.HeaderSize))
			return h, true
		}
	}
	return h, false
}

// mismatch breaks the View because a peer's call differs from this rank's.
func (w *waiter) mismatch(peer int, theirs *collective.Header) error {
	mine := w.now
	err := mine.Match(theirs, w.view.Self, w.ranks[peer])
	if err == nil {
		err = fmt.Errorf("shm: ranks %d and %d make %v #%d differently, one by messages and one in shared memory: run the same version with the same options on all ranks", w.view.Self, w.ranks[peer], mine.Call, mine.Seq)
	}
	return w.differ(peer, err)
}

func (h *hostRanks) differ(peer int, err error) error {
	h.under.Abort(&collective.RankError{Rank: h.ranks[peer], Phase: "mismatch", Err: err})
	return err
}
