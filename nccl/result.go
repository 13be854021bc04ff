package nccl

import "fmt"

// Result is ncclResult_t.
type Result int32

// NCCL's results.
const (
	Success Result = iota
	UnhandledCudaError
	SystemError
	InternalError
	InvalidArgument
	InvalidUsage
	RemoteError
	InProgress
	Timeout
)

var resultNames = [...]string{
	Success: "ncclSuccess", UnhandledCudaError: "ncclUnhandledCudaError", SystemError: "ncclSystemError",
	InternalError: "ncclInternalError", InvalidArgument: "ncclInvalidArgument", InvalidUsage: "ncclInvalidUsage",
	RemoteError: "ncclRemoteError", InProgress: "ncclInProgress", Timeout: "ncclTimeout",
}

// String returns NCCL's own name for the result.
func (r Result) String() string {
	if r >= 0 && int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("ncclResult(%d)", int32(r))
}

// An Error is the failure of a function of NCCL.
type Error struct {
	Call   string // the function
	Result Result
	Text   string // NCCL's own text, may be ""
}

// Error returns the function, NCCL's name for the result, and its text.
func (e *Error) Error() string {
	text := e.Call + ": " + e.Result.String()
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Is reports whether target is an *Error with the same result and, if target has a call, the
// same call.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Result == e.Result && (t.Call == "" || t.Call == e.Call)
}

// ErrInProgress is the error of AsyncError while a communicator is busy with the last call.
var ErrInProgress error = &Error{Result: InProgress}
