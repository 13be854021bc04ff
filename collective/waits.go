package collective

import (
	"sync/atomic"
	"time"
)

// A Cause says why a call waits for a peer.
type Cause uint8

// The causes.
const (
	// AsExpected stands for the cause that the engine announced. A Transport that
	// moves messages uses it, because it does not know which message of a call
	// it waits for.
	AsExpected Cause = iota
	// LateToCall is a wait for a peer's first message in a call. The peer has
	// not made the call yet, or its message is on the way.
	LateToCall
	// SlowToMove is a wait for a peer that is already in the call: for more
	// data, or for room for what it receives.
	SlowToMove
)

// String returns "late to call" or "slow to move".
func (c Cause) String() string {
	switch c {
	case LateToCall:
		return "late to call"
	case SlowToMove:
		return "slow to move"
	}
	return "waited for"
}

// Waits records the waits of a group's call in progress. The engine notes them,
// or a Transport that can; see Abilities.NoteWaits. One goroutine notes waits,
// during the call. Any goroutine may read them.
type Waits struct {
	spans    []span                              // by rank, of the call in progress; nil between calls
	noted    bool                                // a wait of this call was noted
	waitsFor func() (rank int, c Cause, ok bool) // the rank waited for now, if the Transport knows; or nil

	expected atomic.Uint64 // 1 + the awaited rank, with the Cause in the upper bits; 0 if none
	since    atomic.Int64  // beginning of the wait in progress, after origin; 0 if none, or none that is long enough yet
}

// A span is how long a call has waited for one peer, in nanoseconds.
type span struct{ late, slow atomic.Int64 }

// Begin records the beginning of a wait for a rank, and returns it for End. It
// reads the clock, so call it only once a wait is not over at once.
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

// End records the end of a wait for a rank. began is the result of Begin.
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

// endMeeting records the end of a wait for all other ranks, which began at
// began. It counts as waiting for the rank that called last, until met, when
// all had called, and for the slowest rank after that. If met is 0, all of it
// counts for the last rank.
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

// expect records the rank whose message is awaited from now on.
func (w *Waits) expect(rank int, c Cause) {
	w.expected.Store(uint64(rank) + 1 | uint64(c)<<causeShift)
}

// expecting returns the rank that is waited for, or -1.
func (w *Waits) expecting() (rank int, c Cause) {
	rank, c = w.announced()
	if rank >= 0 && w.waitsFor != nil {
		if r, why, ok := w.waitsFor(); ok {
			return r, why
		}
	}
	return rank, c
}

// announced returns the rank that was waited for when the wait began, or -1.
func (w *Waits) announced() (rank int, c Cause) {
	x := w.expected.Load()
	return int(uint32(x)) - 1, Cause(x >> causeShift)
}

// nothing records that no message is awaited.
func (w *Waits) nothing() {
	if w.expected.Load() != 0 {
		w.expected.Store(0)
	}
}
