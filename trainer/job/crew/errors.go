package crew

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A UsageError is a mistake for the user to correct: wrong usage, config or data.
// Commands exit with code 2. Nothing was lost.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes err a UsageError.
func Usage(err error) error { return &UsageError{err} }

// Usagef makes a UsageError with fmt.Errorf.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// An EndError says how a job that had started ended before it was done.
type EndError struct {
	Err    error     // what went wrong; nil if nothing did, or if another error says it
	Signal os.Signal // the last one that asked the job to stop; nil if none came
	Forced bool      // the workers were killed before they stopped by themselves
	Usage  bool      // a worker failed with a UsageError
	Begun  bool      // the workers had met, so work may be lost
}

// Error returns the text of Err, if there is one.
func (e *EndError) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != nil:
		return fmt.Sprintf("stopped by the signal %q", e.Signal)
	}
	return "the worker has reported its error to its launcher"
}

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Reasons why jobs end.
var (
	// ErrTwice means that a second signal asked the job to stop at once.
	ErrTwice = errors.New("a second signal stopped the job at once, before everything was saved")
	// ErrElsewhere means that another process of the job was asked to stop.
	ErrElsewhere = errors.New("stopped because a worker, here or on another machine, received a stop signal")
	// ErrTooSlow means that a worker made no progress after it was asked to stop.
	ErrTooSlow = fmt.Errorf("no progress for %v after the stop signal: killed without saving", stallTime)
	// ErrEarly means that a worker was asked to stop before it had found the others,
	// which would wait for it.
	ErrEarly = errors.New("it received a stop signal before the job had formed")
	// ErrJoinTimeout means that members of the job did not join in time.
	ErrJoinTimeout = errors.New("--join-timeout expired")
)

// A WorkerError is what a worker said when it failed.
type WorkerError struct {
	Worker string       // as the launcher calls it, such as "worker 2"
	Said   event.Failed // in its own words
}

// Error names the worker as the launcher and as other workers call it.
func (e *WorkerError) Error() string {
	return fmt.Sprintf("%s (%s): %s", e.Worker, e.Said.Name, e.Said.Error)
}

// Explain writes to w why a job failed, in one line, and returns err. It writes nothing
// in a worker, which has told its launcher, or if the user stopped the job.
func Explain(w io.Writer, err error) error {
	var end *EndError
	if err != nil && !(errors.As(err, &end) && end.Err == nil) {
		fmt.Fprintln(w, err)
	}
	return err
}
