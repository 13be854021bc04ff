package launch

import (
	"fmt"
	"syscall"
	"time"
)

// An Exit is how one worker ended.
type Exit struct {
	Name      string
	Pid       int
	Code      int            // exit code; -1 if a signal killed it
	Signal    syscall.Signal // the signal that killed it, or 0
	At        time.Duration  // when it ended, counted from Start
	LastLines []string       // the end of its stderr, at most Options.Tail lines
	ByUs      bool           // it ended as the job had asked it to
}

// Failed reports whether the worker ended in any way but with exit code 0.
func (e Exit) Failed() bool { return e.Code != 0 || e.Signal != 0 }

// String says in one line how the worker ended, for example
// "worker 2 (pid 4711) was killed by signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("%s (pid %d) was killed by signal %d (%v)", e.Name, e.Pid, int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("%s (pid %d) ended with exit code %d", e.Name, e.Pid, e.Code)
}

// An ExitError is the failure of one worker. Its LastLines often say why.
type ExitError struct{ Exit }

// Error is the worker's Exit in one line.
func (e *ExitError) Error() string { return e.Exit.String() }

// An Outcome is how a whole job ended.
type Outcome struct {
	Exits []Exit // in the order of Run
	Root  *Exit  // the failure that began the end, one of Exits; nil if none did
	Cause error  // why the job was stopped from outside: the cause of the context or of Stop; nil if it was not
}

// Err is nil if every worker ended with exit code 0 and nobody stopped the job.
// Otherwise it is, in this order: the root failure as an [*ExitError]; the
// Cause; the first worker that failed after a signal passed on by Job.Signal.
func (o Outcome) Err() error {
	if o.Root != nil {
		return &ExitError{*o.Root}
	}
	if o.Cause != nil {
		return fmt.Errorf("the job was stopped: %w", o.Cause)
	}
	if e := earliest(o.Exits, Exit.Failed); e != nil {
		return &ExitError{*e}
	}
	return nil
}

// rootCause picks the failure that the others follow from. Failures that the
// job asked for do not count. Peers of a killed worker see its connections
// close and exit, sometimes before the kernel reports the killed one, so a
// death by signal within the window after the first failure goes before it.
func rootCause(exits []Exit, window time.Duration) *Exit {
	own := func(e Exit) bool { return e.Failed() && !e.ByUs }
	first := earliest(exits, own)
	if first == nil {
		return nil
	}
	killed := earliest(exits, func(e Exit) bool { return own(e) && e.Signal != 0 && e.At <= first.At+window })
	if killed != nil {
		return killed
	}
	return first
}

// earliest returns the first in time of the exits that match, or nil; of equal
// times the one that was started first.
func earliest(exits []Exit, match func(Exit) bool) *Exit {
	var found *Exit
	for i := range exits {
		if match(exits[i]) && (found == nil || exits[i].At < found.At) {
			found = &exits[i]
		}
	}
	return found
}
