package collective

import (
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// An activeCall records the call in progress in the engine. It lets Close wait for
// that call. Either Close sees the call, or the call sees that the engine is
// closing, because each stores its own flag before it loads the other's.
type activeCall struct {
	now     publish.Word // the call in progress, see inCall; 0 if there is none
	closing atomic.Bool
	left    chan struct{} // gets a value when a call ends and has seen that closing is set
}

// lookAgain is how long Close waits for a call that may have ended unseen.
const lookAgain = time.Millisecond

// Bits of activeCall.now, below the number of the call.
const (
	inCall   = 1 << iota
	ofAll    // all ranks of the View make the call, so its number is comparable
	callBits = iota
)

func (a *activeCall) enter(h *Header) {
	call := h.Seq<<callBits | inCall
	if h.OfAll() {
		call |= ofAll
	}
	a.now.Store(call)
}

// leave ends the call. It does not wait until others can see that, because the wait
// would be part of every call. So it may miss that the engine has just begun to close.
func (a *activeCall) leave() {
	a.now.Publish(0)
	if a.closing.Load() {
		select {
		case a.left <- struct{}{}:
		default:
		}
	}
}

// call returns the number of the call in progress, and whether all ranks of the
// View make it.
func (a *activeCall) call() (seq uint64, all bool) {
	call := a.now.Load()
	return call >> callBits, call&ofAll != 0
}

// end refuses later calls and waits for the one in progress. It looks again after a
// while, in case that call ended without seeing closing.
func (a *activeCall) end() {
	a.closing.Store(true)
	for a.now.Load() != 0 {
		select {
		case <-a.left:
		case <-time.After(lookAgain):
		}
	}
}
