package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// withdraw ends a call that has failed with err. From here on, the vector is
// the caller's alone. A rank that was stopped during the call and continues
// later still writes to where the vector was, and may still read the vector.
// The mark makes the call of such a reader fail.
func (t *Transport) withdraw(err error) error {
	atomic.AddUint64(t.mem.word(t.mem.left(t.self)), 1)
	if !t.lent {
		return err
	}
	t.lent = false
	at := &t.places[t.self]
	if why := t.arenas.takeBack(at.arena, int(at.offset), len(t.run.out)); why != nil {
		return fmt.Errorf("%w; do not use the vector again: other processes may still write to it, because it cannot be taken back from them: %w", err, why)
	}
	return err
}

// whole returns why a call that this rank has completed may still have gone
// wrong. A rank whose call had failed may have changed its vector while others
// read it. By copy, no rank reads another's vector.
func (t *Transport) whole(w way) error {
	if w == byCopy {
		return nil
	}
	for peer := range t.ranks {
		if peer != t.self && publish.LoadLast(t.mem.word(t.mem.left(peer))) != 0 {
			return t.failure()
		}
	}
	return nil
}
