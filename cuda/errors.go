package cuda

import (
	"errors"
	"fmt"
)

// ErrUnavailable is in every error that says that no GPU can be used here. The
// text says what is missing and how to get it, in one line.
var ErrUnavailable = errors.New("no GPU can be used")

// ErrNotInstalled is in an error, beside ErrUnavailable, if this machine does not have a
// library at all. A library that is there but does not work has only ErrUnavailable.
var ErrNotInstalled = errors.New("not installed")

// notInstalled adds ErrNotInstalled to an error, and not to its text.
type notInstalled struct{ error }

// Unwrap is the error that it was.
func (e notInstalled) Unwrap() error { return e.error }

// Is reports whether target is ErrNotInstalled.
func (e notInstalled) Is(target error) bool { return target == ErrNotInstalled }

// ErrClosed is returned by Do after Close.
var ErrClosed = errors.New("cuda: the device is closed")

// Errors of the driver that callers act on, for errors.Is.
var (
	ErrOutOfMemory        = &Error{Name: "CUDA_ERROR_OUT_OF_MEMORY"}
	ErrCaptureInvalidated = &Error{Name: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}
	ErrIllegalAddress     = &Error{Name: "CUDA_ERROR_ILLEGAL_ADDRESS"}
	ErrInvalidContext     = &Error{Name: "CUDA_ERROR_INVALID_CONTEXT"}
)

// An Error is what a function of CUDA's libraries returned instead of success.
type Error struct {
	Call string // the function, and what of ours it was called for
	Name string // CUDA's own name, CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // CUDA's own text, may be ""
	Code int    // CUDA's number; each library counts for itself
}

// Error is the call, the name and the text.
func (e *Error) Error() string {
	text := e.Call + ": " + e.Name
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Is reports whether target is an Error of the same name and, where target has
// one, the same call.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Name == e.Name && (t.Call == "" || t.Call == e.Call)
}

// unavailablef is ErrUnavailable with a reason.
func unavailablef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, args...))
}
