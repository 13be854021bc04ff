package bench

import (
	"sync"
	"time"
)

const (
	garbagePiece = 64 << 10         // bytes of a piece of garbage
	garbageEvery = time.Millisecond // period in which Spec.Garbage pieces are made
	garbageMost  = 1000             // maximum of Spec.Garbage
)

// A litterer allocates memory and drops it, so that the collector runs, as in a
// program that does other work too. Only its goroutine uses it.
type litterer struct {
	last []byte // keeps a piece on the heap
	made int    // pieces
}

// litter makes a number of pieces of garbage each millisecond. stop ends that and
// waits.
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

// makeUpTo catches up, because a ticker drops ticks that are not received in time.
func (l *litterer) makeUpTo(owed int) {
	for ; l.made < owed; l.made++ {
		l.last = make([]byte, garbagePiece)
	}
}
