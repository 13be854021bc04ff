package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// withdraw ends a call that has failed with err. When it returns, the vector is
// the caller's alone. A rank that was stopped during the call may continue later.
// It then writes to pages that are no longer those of the vector. It may still
// read the vector, but finds this rank's mark afterwards, and its call fails too.
func (t *Transport) withdraw(err error) error {
	atomic.AddUint64(t.mem.word(t.mem.withdrawn(t.self)), 1) // before the caller can change the vector
	if !t.lent {
		return err
	}
	t.lent = false
	at := &t.locations[t.self]
	if why := t.arenas.reclaim(at.arena, int(at.offset), len(t.run.out)); why != nil {
		return fmt.Errorf("%w; do not use the vector again, because other processes may still write to it: making it private failed: %w", err, why)
	}
	return err
}

// checkWithdrawn returns why a call that this rank has completed may have a wrong
// result, or nil. A rank that has withdrawn may have changed its vector while
// others were reading it. Its mark is stored before any such change and loaded
// here after the vectors, so a rank that has read a change, or a result made from
// one, sees the mark. By copy, no rank reads another's vector.
func (t *Transport) checkWithdrawn(w way) error {
	if w == byCopy {
		return nil
	}
	for peer := range t.ranks {
		if peer != t.self && publish.LoadLast(t.mem.word(t.mem.withdrawn(peer))) != 0 {
			return t.failure()
		}
	}
	return nil
}
