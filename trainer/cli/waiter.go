package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/membership"
)

// patience is how long a job may take to find its members before the user is
// told for whom it waits.
const patience = 2 * time.Second

// A waiter tells the user for whom a job waits, if it does for long.
type waiter struct {
	w io.Writer

	mu    sync.Mutex
	timer *time.Timer
	loud  bool // patience is over
	over  bool
	now   membership.Waiting
}

func newWaiter(w io.Writer) *waiter {
	a := &waiter{w: w}
	a.timer = time.AfterFunc(patience, a.speak)
	return a
}

// changed takes the news of who is there.
func (a *waiter) changed(now membership.Waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = now
	a.tell()
}

func (a *waiter) speak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loud = true
	a.tell()
}

// tell is called with mu held.
func (a *waiter) tell() {
	if a.loud && !a.over && a.now.Nodes > 0 {
		fmt.Fprintln(a.w, a.now)
	}
}

// end silences the waiter. Calling it twice is fine.
func (a *waiter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
}
