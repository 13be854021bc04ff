package bench

import (
	"sync"
	"time"
)

// What Spec.Garbage counts, how often it is made, and the most there may be.
const (
	garbagePiece = 64 << 10
	garbageEvery = time.Millisecond
	garbageMost  = 1000
)

// A litterer allocates memory and drops it, as work beside the calls would, so
// that the collector runs. Only its goroutine touches it.
type litterer struct {
	last []byte // keeps a piece on the heap
	made int    // pieces
}

// litter makes so many pieces of garbage each millisecond, until stop, which
// waits for it.
func litter(pieces int) (stop func()) {
	if pieces == 0 {
		return func() {}
	}
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(garbageEvery)
		defer ticker.Stop()
		var l litterer
		for begin := time.Now(); ; {
			select {
			case <-end:
				return
			case <-ticker.C:
				l.makeUpTo(pieces * int(time.Since(begin)/garbageEvery))
			}
		}
	})
	return func() {
		close(end)
		done.Wait()
	}
}

// makeUpTo catches up with what is owed, for a ticker skips what nobody waits
// for.
func (l *litterer) makeUpTo(owed int) {
	for ; l.made < owed; l.made++ {
		l.last = make([]byte, garbagePiece)
	}
}
