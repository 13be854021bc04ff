package shm

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// sharing is the state of ranks that share cores, because there are more ranks
// than cores. With each call, a rank shows the core that it ran on. A rank that
// waits for one on its own core yields that core at once. A rank that waits for
// one on another core keeps polling for a while, because yielding its own core
// would not speed up the other.
//
// Ranks that have enough cores may still be on the same core, because other
// processes use the others. They publish their core only after waiting for a
// while, which costs nothing while all goes well.
type sharing struct {
	named  bool   // the processor can report the current core
	shared bool   // named, and there are more ranks than cores
	core   uint64 // the core where this rank showed its call, if shared

	mated    bool // the rank of the last longer wait was on this core
	together uint // number of such waits
}

// elsewhere is the number of polls, of some 20 ns each, while the awaited rank
// is on another core. After that, this core is yielded all the same.
const elsewhere = 200

// partEvery: one of this many waits for a rank on this core sleeps. A woken
// process gets an idle core if there is one, while a process that only yields
// stays on its core.
const partEvery = 64

// giveWay yields to the ranks that have not yet shown this call and were on
// this core at the previous one. Then it polls the others.
func (r *run) giveWay(call uint64) {
	t := r.t
	for peer := range t.ranks {
		if peer == t.self || t.apart(peer, 1-r.parity) {
			continue
		}
		for range spinBrief {
			if atomic.LoadUint64(t.desks[peer][r.parity].shown) >= call {
				break
			}
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	for peer := range t.ranks {
		if peer != t.self && !spin(t.desks[peer][r.parity].shown, call, elsewhere) {
			return
		}
	}
}

// giveUp yields this core until the word is at least least, or up to w.yields
// times. It reports whether the word got there.
func (w *waiter) giveUp(word *uint64, least uint64) bool {
	for range w.yields {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		if spin(word, least, spinBrief) {
			return true
		}
	}
	return false
}

// mates reports whether a rank was on this core when it last waited for a
// while, and publishes this rank's core.
func (w *waiter) mates(peer int) bool {
	if w.named {
		here := core()
		atomic.StoreUint64(w.where(w.self), here)
		w.mated = atomic.LoadUint64(w.where(peer)) == here
	}
	return w.mated
}

func (h *hostRanks) where(peer int) *uint64 { return h.mem.word(h.mem.sleep(peer) + 16) }

// apart reports whether a rank was on another core at its last even or odd call.
func (w *waiter) apart(peer, parity int) bool {
	return atomic.LoadUint64(w.desks[peer][parity].core) != w.core
}
