package shm

import "github.com/ringtrain/ringtrain/collective"

// rooted lets a small call with a root end on a rank that has what it needs: the root of a
// Broadcast waits for no other rank, and the others only for the root. Every rank compares its
// call with all others nevertheless, at the latest before its next one.
type rooted struct {
	t    *Transport
	last collective.Header // of the call that matchLast compares
}

// awaits reports whether the call in progress waits for a peer to show its own.
func (o *rooted) awaits(peer int) bool {
	r := &o.t.run
	c := &r.h.Call
	return !r.hasRoot || c.Gives(o.t.ranks[peer]) && c.Takes(o.t.view.Self)
}

// matchLast waits until all ranks have shown the last call, and compares them. Then all ranks
// have left the call before, so the next call may overwrite its slot.
//
//go:noinline
func (o *rooted) matchLast() error {
	t, r := o.t, &o.t.run
	o.last.Get(t.slots[t.self][r.parity].header) // the caller may have changed its own
	r.h, r.hasRoot, t.now, t.unmatched = &o.last, false, &o.last, false
	return r.matchCalls(t.calls)
}
