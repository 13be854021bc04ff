package cuda

import (
	"errors"
	"fmt"
)

// ErrUnavailable is wrapped by every error that means that no GPU can be used. The text
// of such an error says in one line what is missing and how to get it.
var ErrUnavailable = errors.New("no GPU can be used")

// ErrNotInstalled is wrapped, together with ErrUnavailable, if a library was not found at
// all. If a library exists but does not work, the error wraps only ErrUnavailable.
var ErrNotInstalled = errors.New("not installed")

// notInstalled makes an error match ErrNotInstalled without changing its text.
type notInstalled struct{ error }

// Unwrap returns the original error.
func (e notInstalled) Unwrap() error { return e.error }

// Is reports whether target is ErrNotInstalled.
func (e notInstalled) Is(target error) bool { return target == ErrNotInstalled }

// ErrClosed is the error of Device.Do after Close.
var ErrClosed = errors.New("cuda: the device is closed")

// Errors of the driver that callers act on, for errors.Is.
var (
	ErrOutOfMemory        = &Error{Name: "CUDA_ERROR_OUT_OF_MEMORY"}
	ErrCaptureInvalidated = &Error{Name: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}
	ErrIllegalAddress     = &Error{Name: "CUDA_ERROR_ILLEGAL_ADDRESS"}
	ErrInvalidContext     = &Error{Name: "CUDA_ERROR_INVALID_CONTEXT"}
)

// An Error is the failure of a function of the driver or of one of CUDA's libraries.
type Error struct {
	Call string // the function
	Name string // CUDA's own name, such as CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // CUDA's own text, may be ""
	Code int    // CUDA's number; each library has its own numbering
}

// Error returns the call, the name and the text.
func (e *Error) Error() string {
	text := e.Call + ": " + e.Name
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Is reports whether target is an *Error with the same name and, if target has a call,
// the same call.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Name == e.Name && (t.Call == "" || t.Call == e.Call)
}

// unavailablef returns ErrUnavailable with a reason.
func unavailablef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, args...))
}
