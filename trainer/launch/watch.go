package launch

import (
	"slices"
	"syscall"
	"time"
)

// A watch decides which workers are asked to end, and when. It is a plain state machine:
// every method takes the time since the start of the job and returns the signals to send
// now. It never blocks and is not safe for concurrent use.
//
//	running --failure--> grace --Grace--> terminating --Term--> killing
//	   \---------stop-------\---------------^
//
// Once it leaves running, no worker may be added. A worker that outlives the deadlines is
// sent SIGTERM and then SIGKILL.
type watch struct {
	grace, term time.Duration

	phase   phase
	due     time.Duration // when the phase ends; used in grace and terminating
	cause   error         // of the first stop during which a worker was alive
	workers []worker      // in the order they were started
}

type phase uint8

const (
	running phase = iota
	grace
	terminating
	killing
)

type worker struct {
	exit  Exit
	alive bool
	asked []syscall.Signal // signals sent to it that ask it to end
	spare func(Exit) bool  // whether the job survives its failure; may be nil
}

// An order is a signal to send to the process group of one worker.
type order struct {
	id  int
	sig syscall.Signal
}

// started adds a worker and returns its number, counted from 0.
func (w *watch) started(name string, pid int, spare func(Exit) bool) int {
	w.workers = append(w.workers, worker{exit: Exit{Name: name, Pid: pid}, alive: true, spare: spare})
	return len(w.workers) - 1
}

// exited records how a worker ended. The first failure that the job did not ask for, and
// does not survive, starts the end of all workers.
func (w *watch) exited(now time.Duration, id, code int, sig syscall.Signal) []order {
	one := &w.workers[id]
	one.alive = false
	one.exit.Code, one.exit.Signal, one.exit.At = code, sig, now
	// A worker that handles the signal ends with any exit code, and one that does not
	// dies of it. Death by another signal is a failure of its own.
	one.exit.ByUs = len(one.asked) > 0 && (sig == 0 || slices.Contains(one.asked, sig))
	if w.phase == running && one.exit.Failed() && !one.exit.ByUs {
		if one.spare != nil && one.spare(one.exit) {
			one.exit.Spared = true
		} else {
			w.phase, w.due = grace, now+w.grace
		}
	}
	return w.tick(now)
}

// stop starts the end from outside. There is no grace period: unlike after a failure, no
// worker can have noticed anything on its own.
func (w *watch) stop(now time.Duration, cause error) []order {
	if w.cause == nil && (w.alive() > 0 || len(w.workers) == 0) {
		w.cause = cause
	}
	if w.phase == running || w.phase == grace {
		w.phase, w.due = grace, now
	}
	return w.tick(now)
}

// signal sends a signal to all live workers. A signal that asks them to end makes their
// exits count as ByUs, but sets no deadline.
func (w *watch) signal(sig syscall.Signal) []order {
	var orders []order
	for id := range w.workers {
		one := &w.workers[id]
		if !one.alive {
			continue
		}
		if meansEnd(sig) && !slices.Contains(one.asked, sig) {
			one.asked = append(one.asked, sig)
		}
		orders = append(orders, order{id, sig})
	}
	return orders
}

// kill sends SIGKILL to one worker, if it is alive.
func (w *watch) kill(id int) []order {
	one := &w.workers[id]
	if !one.alive {
		return nil
	}
	one.asked, one.exit.Spared = append(one.asked, syscall.SIGKILL), true
	return []order{{id, syscall.SIGKILL}}
}

// tick enters the next phases if their time has come.
func (w *watch) tick(now time.Duration) []order {
	var orders []order
	if w.phase == grace && now >= w.due {
		w.phase, w.due = terminating, now+w.term
		orders = append(orders, w.signal(syscall.SIGTERM)...)
	}
	if w.phase == terminating && now >= w.due {
		w.phase = killing
		orders = append(orders, w.signal(syscall.SIGKILL)...)
	}
	return orders
}

// next returns when tick must be called next, if at all.
func (w *watch) next() (due time.Duration, ok bool) {
	return w.due, (w.phase == grace || w.phase == terminating) && w.alive() > 0
}

func (w *watch) alive() int {
	n := 0
	for _, one := range w.workers {
		if one.alive {
			n++
		}
	}
	return n
}

// outcome returns the report on all workers. Call it when none is alive.
func (w *watch) outcome(window time.Duration) Outcome {
	exits := make([]Exit, len(w.workers))
	for i, one := range w.workers {
		exits[i] = one.exit
	}
	return Outcome{Exits: exits, Root: rootCause(exits, window), Cause: w.cause}
}

func meansEnd(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGKILL, syscall.SIGABRT:
		return true
	}
	return false
}
