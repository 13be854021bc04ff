package crew

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/membership"
)

// When the user is told what a job waits for: first after firstAfter, then every
// repeatEvery, and in between after a change, at least minPause apart. Visitors that were
// turned away are reported at once.
const (
	firstAfter  = 2 * time.Second
	repeatEvery = 10 * time.Second
	minPause    = time.Second
)

// A waitReporter tells the user which workers a job waits for, if it waits for long.
type waitReporter struct {
	w     io.Writer
	begun time.Time

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	now   membership.Waiting
	last  time.Time // of the last line; zero before the first
	said  string    // what the last line was about
	shown int       // visitors in the last line
}

func newWaitReporter(w io.Writer) *waitReporter {
	a := &waitReporter{w: w, begun: time.Now()}
	a.timer = time.AfterFunc(firstAfter, a.onTimer)
	return a
}

// changed receives the current state of the wait.
func (a *waitReporter) changed(now membership.Waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = now
	a.report()
}

func (a *waitReporter) onTimer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report()
}

// report writes a line if one is due, and sets the timer for the next. The caller holds
// mu.
func (a *waitReporter) report() {
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
	a.last, a.said, a.shown = time.Now(), a.now.String(), len(a.now.Visitors)
	a.timer.Reset(repeatEvery)
}

// due returns the time until the next line; 0 or less means now.
func (a *waitReporter) due() time.Duration {
	switch {
	case len(a.now.Visitors) > a.shown:
		return 0 // there are at most a few such warnings
	case a.last.IsZero():
		return firstAfter - time.Since(a.begun)
	case a.now.String() != a.said:
		return minPause - time.Since(a.last)
	}
	return repeatEvery - time.Since(a.last)
}

// end stops all reports. It may be called more than once.
func (a *waitReporter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
}

// waitLine says which workers a job waits for, and what the user can try.
func waitLine(w membership.Waiting, waited time.Duration) string {
	line := w.After(waited)
	if len(w.Differ) > 0 || len(w.Visitors) > 0 {
		return line // which says what to do
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

// joinTimedOut returns the error of Form: which workers are missing, if err is a timeout.
func joinTimedOut(err error, timeout time.Duration) error {
	var wait *membership.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, ErrJoinTimeout) {
		return err
	}
	return fmt.Errorf("gave up after %v (--join-timeout) %s", timeout, waitLine(wait.Waiting, 0))
}
