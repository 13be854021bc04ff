package launch

import (
	"fmt"
	"syscall"
	"time"
)

// An Exit describes how one worker ended.
type Exit struct {
	Name      string
	Pid       int
	Code      int            // exit code; -1 if a signal killed it
	Signal    syscall.Signal // the signal that killed it, or 0
	At        time.Duration  // when it ended, relative to Start
	LastLines []string       // the end of its stderr, at most Options.Tail lines
	ByUs      bool           // it ended because the job asked it to
	Spared    bool           // the job continued without it; see Command.Spare and Job.Kill
}

// Failed reports whether the worker ended in any way other than with exit code 0.
func (e Exit) Failed() bool { return e.Code != 0 || e.Signal != 0 }

// String describes in one line how the worker ended, such as "worker 2 (pid 4711) was
// killed by signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("%s (pid %d) was killed by signal %d (%v)", e.Name, e.Pid, int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("%s (pid %d) exited with code %d", e.Name, e.Pid, e.Code)
}

// An ExitError is the failure of one worker. Its LastLines often contain the reason.
type ExitError struct{ Exit }

// Error returns the worker's Exit in one line.
func (e *ExitError) Error() string { return e.Exit.String() }

// An Outcome describes how a whole job ended.
type Outcome struct {
	Exits []Exit // in the order of Run
	Root  *Exit  // the failure that ended the job, one of Exits; nil if there was none
	Cause error  // why the job was stopped from outside: the cause of the context or of Stop; nil if it was not
}

// Err returns nil if every worker ended with exit code 0 and the job was not stopped.
// Spared workers do not count. Otherwise it returns the first of: the root failure as an
// [*ExitError]; the Cause; the first worker that failed after a signal from Job.Signal.
func (o Outcome) Err() error {
	if o.Root != nil {
		return &ExitError{*o.Root}
	}
	if o.Cause != nil {
		return fmt.Errorf("the job was stopped: %w", o.Cause)
	}
	if e := earliest(o.Exits, func(e Exit) bool { return e.Failed() && !e.Spared }); e != nil {
		return &ExitError{*e}
	}
	return nil
}

// rootCause returns the failure that caused the others. Failures that the job asked for
// or survived do not count. The peers of a killed worker see its connections close and may exit
// before the kernel reports the killed one. A death by signal within window after the
// first failure therefore takes precedence over it.
func rootCause(exits []Exit, window time.Duration) *Exit {
	own := func(e Exit) bool { return e.Failed() && !e.ByUs && !e.Spared }
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

// earliest returns the earliest of the exits that match, or nil. If times are equal, it
// returns the one that was started first.
func earliest(exits []Exit, match func(Exit) bool) *Exit {
	var found *Exit
	for i := range exits {
		if match(exits[i]) && (found == nil || exits[i].At < found.At) {
			found = &exits[i]
		}
	}
	return found
}
