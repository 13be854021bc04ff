package collective

import "sync/atomic"

// An activeCall records the call in progress in the engine. It lets Close wait for
// that call. Either Close sees the call, or the call sees that the engine is
// closing, because each stores its own flag before it loads the other's.
type activeCall struct {
	now     atomic.Uint64 // the call in progress, see inCall; 0 if there is none
	closing atomic.Bool
	left    chan struct{} // gets a value when a call ends and closing is set
}

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

func (a *activeCall) leave() {
	a.now.Store(0)
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

// end refuses later calls and waits for the one in progress.
func (a *activeCall) end() {
	a.closing.Store(true)
	for a.now.Load() != 0 {
		<-a.left
	}
}
