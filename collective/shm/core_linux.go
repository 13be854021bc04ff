package shm

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// sharing is what ranks do that share cores, because there are more of them: each
// shows with a call on which core it was. Who waits for a rank of its own core
// gives that core away at once; who waits for one of another core keeps looking
// for a while, since what runs here meanwhile could not hasten it.
type sharing struct {
	shared bool   // there are more ranks than cores, and cores have names
	core   uint64 // where this rank showed its call
}

// elsewhere is how often to look at a rank of another core, some 20 ns each,
// before this core is given away all the same.
const elsewhere = 200

// giveWay lets those run that have not yet shown a call and were on this core at
// the one before, and then looks at the others.
func (r *run) giveWay(call uint64) {
	t := r.t
	for peer := range t.ranks {
		if peer == t.self || t.apart(peer, 1-r.parity) {
			continue
		}
		for range spinBrief {
			if atomic.LoadUint64(t.shown(peer, r.parity)) >= call {
				break
			}
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	for peer := range t.ranks {
		if peer != t.self && !spin(t.shown(peer, r.parity), call, elsewhere) {
			return
		}
	}
}

// apart reports whether a rank was on another core at its last even or odd call.
func (t *Transport) apart(peer, parity int) bool {
	return atomic.LoadUint64(t.mem.word(t.mem.core(peer, parity))) != t.core
}
