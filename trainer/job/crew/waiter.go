package crew

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/membership"
)

// When the user is told for whom a job waits: first after patience, then every
// waitEvery, and in between when something has changed, calm apart at least. Who
// was turned away is told of at once.
const (
	patience  = 2 * time.Second
	waitEvery = 10 * time.Second
	calm      = time.Second
)

// A waiter tells the user for whom a job waits, if it does for long.
type waiter struct {
	w     io.Writer
	begun time.Time

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	now   membership.Waiting
	last  time.Time // when the user was told; zero for never
	told  string
	shown int // visitors that the user was told of
}

func newWaiter(w io.Writer) *waiter {
	a := &waiter{w: w, begun: time.Now()}
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
	a.tell()
}

// tell says what is due, and looks again when more may be. It is called with mu
// held.
func (a *waiter) tell() {
	if a.over {
		return
	}
	if left := a.due(); left > 0 {
		a.timer.Reset(left)
		return
	}
	if a.now.Nodes > 0 {
		fmt.Fprintln(a.w, waitLine(a.now, time.Since(a.begun)))
	}
	a.last, a.told, a.shown = time.Now(), a.now.String(), len(a.now.Visitors)
	a.timer.Reset(waitEvery)
}

// due is how long it is until the user is to be told.
func (a *waiter) due() time.Duration {
	switch {
	case len(a.now.Visitors) > a.shown:
		return 0 // a warning, of which there are a few at most
	case a.last.IsZero():
		return patience - time.Since(a.begun)
	case a.now.String() != a.told:
		return calm - time.Since(a.last)
	}
	return waitEvery - time.Since(a.last)
}

// end silences the waiter. Calling it twice is fine.
func (a *waiter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
}

// waitLine says for whom a job waits, and what the user can try.
func waitLine(w membership.Waiting, waited time.Duration) string {
	line := w.After(waited)
	if len(w.Differ) > 0 || len(w.Visitors) > 0 {
		return line // it says what to do
	}
	for _, s := range w.Seeds {
		if !s.Rejected {
			return line + "; try: ringtrain doctor " + s.Addr
		}
	}
	if w.MissingNodes > 0 && len(w.Seeds) == 0 && len(w.Trying) == 0 {
		line += fmt.Sprintf("; there, try: ringtrain doctor %v", w.Addr)
	}
	return line
}

// givenUp is the error of a job whose members have not come in time.
func givenUp(err error, timeout time.Duration) error {
	var wait *membership.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, ErrJoinTimeout) {
		return err
	}
	return fmt.Errorf("gave up after %v (--join-timeout) %s", timeout, waitLine(wait.Waiting, 0))
}
