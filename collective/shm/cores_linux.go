package shm

import "sync/atomic"

// cores is what a rank knows about the cores that it and its peers run on.
//
// If there are more ranks than cores, a rank shows its core with each call. A
// rank that waits for a peer on its own core yields that core at once. A rank
// that waits for a peer on another core keeps polling for a while, because
// yielding its own core would not help the peer. What it knows may be up to
// lookEveryCalls calls old.
//
// Ranks that have enough cores may still be on the same core, because other
// processes use the others. They publish their core only in a longer wait, which
// costs nothing while calls are fast.
type cores struct {
	named  bool     // the processor can report the current core
	shared bool     // named, and there are more ranks than cores
	core   uint64   // of this rank when it last looked around, if shared
	near   []int    // indices of the ranks that were on this core then
	on     []uint64 // of all ranks, see spread

	sameCore      bool // the rank of the last longer wait was on this core
	sameCoreWaits uint // number of such waits

	parting    parting
	apartWaits uint // longer waits for ranks on other cores, while parting.apart
}

const (
	// leaveEvery: one of this many waits for a rank on this core leaves the core, or at
	// least sleeps. The kernel may move a process that it wakes to an idle core. A process
	// that only yields stays on its core.
	leaveEvery = 64
	lookEvery  = 8 // apartWaits between looks whether parting pays; a look takes some 10 µs
)

// lookEveryCalls is how many small calls pass until ranks that share cores look around.
const lookEveryCalls = 16

// lookAround finds out which core this rank is on, and which ranks showed their last call
// there. It leaves the core if there are too many. The kernel moves ranks rarely, and to
// ask the processor for the core takes 15 ns, so a rank does so in only one of many small
// calls, unless it knows of no other rank on its core.
func (r *run) lookAround(call uint64) {
	t := r.t
	if call%lookEveryCalls == 0 {
		r.spread()
	}
	t.core = core()
	t.near = t.near[:0]
	for peer := range t.ranks {
		if peer != t.self && !t.onOtherCore(peer, 1-r.parity) {
			t.near = append(t.near, peer)
		}
	}
}

// yieldToPeers yields to the ranks on this core that this one awaits, until they have shown this
// call. Then it polls for the others.
func (r *run) yieldToPeers(call uint64) {
	t := r.t
	for _, peer := range t.near {
		if t.rooted.awaits(peer) {
			yield(t.slots[peer][r.parity].shown, call, yieldsAtOnce)
		}
	}
	for peer := range t.ranks {
		if peer != t.self && t.rooted.awaits(peer) && !spin(t.slots[peer][r.parity].shown, call, t.polls) {
			return
		}
	}
}

// yieldUntil yields this core until the word is at least least, or up to w.yields
// times. It reports whether the word got there.
func (w *waiter) yieldUntil(word *uint64, least uint64) bool {
	for n := 0; n < w.yields; n += yieldsAtOnce {
		if yield(word, least, yieldsAtOnce) {
			return true
		}
	}
	return atomic.LoadUint64(word) >= least
}

// onThisCore publishes this rank's core, and reports whether a peer was on the
// same core in its own last longer wait.
func (w *waiter) onThisCore(peer int) bool {
	if w.named {
		here := core()
		atomic.StoreUint64(w.where(w.self), here)
		w.sameCore = atomic.LoadUint64(w.where(peer)) == here
	}
	return w.sameCore
}

func (h *hostRanks) where(peer int) *uint64 { return h.mem.word(h.mem.sleep(peer) + 16) }

// onOtherCore reports whether a rank showed its last even or odd call on another
// core.
func (w *waiter) onOtherCore(peer, parity int) bool {
	return atomic.LoadUint64(w.slots[peer][parity].core) != w.core
}
