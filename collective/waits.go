package collective

import (
	"sync/atomic"
	"time"
)

// A Cause says why a call waits for a peer.
type Cause uint8

// The causes.
const (
	// AsExpected leaves it to the engine, which knows the message that is waited
	// for: a Transport that moves messages cannot tell.
	AsExpected Cause = iota
	// LateToCall is waiting for a peer's first sign in a call: it has not made the
	// call yet, or its sign is still on the way.
	LateToCall
	// SlowToMove is waiting for a peer that is in the call: for later data, or for
	// room for what it is sent.
	SlowToMove
)

// String is "late to call" or "slow to move".
func (c Cause) String() string {
	switch c {
	case LateToCall:
		return "late to call"
	case SlowToMove:
		return "slow to move"
	}
	return "waited for"
}

// Waits is where the waits of a group's call in progress are noted: by the
// engine, or by a Transport that can, see Abilities.Tell. One goroutine notes
// them, in the call; anybody may read meanwhile.
type Waits struct {
	spans []span                              // by rank, of the call in progress; nil if there is none
	noted bool                                // something was, in this call
	whom  func() (rank int, c Cause, ok bool) // who is waited for just now, of a Transport that knows; or nil

	expected atomic.Uint64 // 1 + the rank whose message is awaited, and the cause above; 0: none
	since    atomic.Int64  // after origin, of the wait in progress; 0: none, or not for long yet
}

// A span is for how long a call has waited for one peer, in nanoseconds.
type span struct{ late, slow atomic.Int64 }

// Begin notes that a wait for a rank begins, and returns what End takes. It
// reads the clock: call it once a wait turns out not to be over at once.
func (w *Waits) Begin(rank int, c Cause) time.Duration {
	if w == nil || w.spans == nil {
		return 0
	}
	if c != AsExpected {
		w.expect(rank, c)
	}
	now := time.Since(origin)
	w.since.Store(int64(now))
	w.noted = true
	return now
}

// End notes that a wait for a rank, which Begin said had begun then, is over.
func (w *Waits) End(rank int, c Cause, began time.Duration) {
	if w == nil || w.spans == nil {
		return
	}
	w.since.Store(0)
	if c == AsExpected {
		_, c = w.announced()
	} else {
		w.expected.Store(0)
	}
	took := int64(time.Since(origin) - began)
	if s := &w.spans[rank]; c == LateToCall {
		s.late.Add(took)
	} else {
		s.slow.Add(took)
	}
}

// endMeeting notes the end of a wait for all others, which Begin said had begun
// then: for the last to call until all had called, if it is known when that was,
// and for the slowest from then on.
func (w *Waits) endMeeting(began, met time.Duration, last, slowest int) {
	if w == nil || w.spans == nil {
		return
	}
	w.since.Store(0)
	w.expected.Store(0)
	now := time.Since(origin)
	all := now
	if met != 0 {
		all = max(began, met)
	}
	w.spans[last].late.Add(int64(all - began))
	w.spans[slowest].slow.Add(int64(now - all))
}

const causeShift = 32

// expect notes whose message is awaited from now on.
func (w *Waits) expect(rank int, c Cause) {
	w.expected.Store(uint64(rank) + 1 | uint64(c)<<causeShift)
}

// expecting is who is waited for, or -1.
func (w *Waits) expecting() (rank int, c Cause) {
	rank, c = w.announced()
	if rank >= 0 && w.whom != nil {
		if r, why, ok := w.whom(); ok {
			return r, why
		}
	}
	return rank, c
}

// announced is who was waited for when the wait began, or -1.
func (w *Waits) announced() (rank int, c Cause) {
	x := w.expected.Load()
	return int(uint32(x)) - 1, Cause(x >> causeShift)
}

// nothing notes that no message is awaited any more.
func (w *Waits) nothing() {
	if w.expected.Load() != 0 {
		w.expected.Store(0)
	}
}
