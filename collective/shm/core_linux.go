package shm

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// sharing is what ranks do that share cores, because there are more of them: each
// shows with a call on which core it was. Who waits for a rank of its own core
// gives that core away at once; who waits for one of another core keeps looking
// for a while, since what runs here meanwhile could not hasten it.
//
// Ranks that have enough cores may find themselves on one all the same, because
// somebody else is busy on the others. They say where they are only when they
// have waited for a while, which costs nothing while all goes well.
type sharing struct {
	named  bool   // cores have names
	shared bool   // and there are more ranks than cores
	core   uint64 // where this rank showed its call, if shared

	mated    bool // the rank that was last waited for longer was on this very core
	together uint // how often one was
}

// elsewhere is how often to look at a rank of another core, some 20 ns each,
// before this core is given away all the same.
const elsewhere = 200

// partEvery is how many waits for a rank of this core go by until one of them
// sleeps: who wakes is given an idle core, if there is one, and who only yields
// stays where it is.
const partEvery = 64

// giveWay lets those run that have not yet shown a call and were on this core at
// the one before, and then looks at the others.
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

// giveUp gives this core away until a word is at least least, or it has done so
// often.
func (w *waiter) giveUp(word *uint64, least uint64) bool {
	for range w.yields {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		if spin(word, least, spinBrief) {
			return true
		}
	}
	return false
}

// mates reports whether a rank was on this core when it last waited for a while,
// and says where this one is.
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
