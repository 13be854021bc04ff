package membership

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ringtrain/ringtrain/collective"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("membership: the agent is closed")
	// ErrComplete is what errors.Is finds when a process came after the first
	// View of its job was agreed.
	ErrComplete = errors.New("the job has already started without this process")
	// ErrPortInUse is what errors.Is finds when another process listens on the
	// port that gossip should use.
	ErrPortInUse = errors.New("port in use")
	// ErrConfig is what errors.Is finds for a Config that cannot work.
	ErrConfig = errors.New("bad membership config")
)

// CompleteError says that this process is not in the View that others hold.
type CompleteError struct {
	Member collective.Member // this process
	By     string            // the name of the member that said so
	Job    uint64            // of the View
}

// Error is one line with a way out.
func (e *CompleteError) Error() string {
	return fmt.Sprintf("%s: %v (job %016x, says %s): start it again when that job is over, or start all workers together with the right number of machines",
		e.Member.Name, ErrComplete, e.Job, e.By)
}

// Is makes errors.Is(err, ErrComplete) true.
func (e *CompleteError) Is(target error) bool { return target == ErrComplete }

// PortInUseError names the address that gossip could not listen on.
type PortInUseError struct {
	Addr netip.AddrPort
	Err  error // of the listener
}

// Error is one line with a way out.
func (e *PortInUseError) Error() string {
	return fmt.Sprintf("membership: gossip cannot listen on %v (TCP and UDP): another process has the port: end that one, or choose another port (0 is any free one)", e.Addr)
}

// Unwrap is the listener's error.
func (e *PortInUseError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrPortInUse) true.
func (e *PortInUseError) Is(target error) bool { return target == ErrPortInUse }

// WaitError says whom View was waiting for when its context ended.
type WaitError struct {
	Waiting Waiting
	Err     error // of the context
}

// Error is one line.
func (e *WaitError) Error() string {
	return fmt.Sprintf("membership: no first View yet: %v: %v", e.Waiting, e.Err)
}

// Unwrap is the context's error.
func (e *WaitError) Unwrap() error { return e.Err }
