package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("membership: the agent is closed")
	// ErrComplete is what errors.Is finds when a process came after the first
	// View of its job was agreed.
	ErrComplete = errors.New("the job has already started without this process")
	// ErrMinority is what errors.Is finds when too few members of the last View
	// can be reached to agree on a later one.
	ErrMinority = errors.New("too few members of the last view are left to agree on another")
	// ErrExpelled is what errors.Is finds when a later View was agreed without
	// this process.
	ErrExpelled = errors.New("the job goes on without this process")
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

// MinorityError says who is missing for a later View. On the other side of a
// broken network there may be a majority that goes on.
type MinorityError struct {
	View      collective.View     // the last
	Reachable []collective.Member // of the View, this process included
	Missing   []collective.Member // of the View: lost by the data plane, or given up by gossip
	Need      int                 // members that a later View takes
	Err       error               // of the context; nil where patience came to its end before
}

// Error is one line with a way out.
func (e *MinorityError) Error() string {
	text := fmt.Sprintf("membership: %v: %d of the %d members of epoch %d can be reached, %d are needed; missing: %s: mend the network or start the job again from its last checkpoint",
		ErrMinority, len(e.Reachable), e.View.Size(), e.View.Epoch, e.Need, names(e.Missing))
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap is the context's error.
func (e *MinorityError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrMinority) true.
func (e *MinorityError) Is(target error) bool { return target == ErrMinority }

// names lists members for a line.
func names(members []collective.Member) string {
	var list []string
	for _, m := range firstFew(members) {
		list = append(list, m.Name)
	}
	if n := len(members) - shown; n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, ", ")
}

// ExpelledError says that the members of a later View left this process out:
// they had lost it, or it did not answer them in time.
type ExpelledError struct {
	Member collective.Member // this process
	By     string            // the name of the member that said so
	Job    uint64
	Epoch  uint64 // of the View that By holds
}

// Error is one line with a way out.
func (e *ExpelledError) Error() string {
	return fmt.Sprintf("%s: %v (job %016x is at epoch %d, says %s): it was stopped or cut off for too long; end it, the others have taken over its work",
		e.Member.Name, ErrExpelled, e.Job, e.Epoch, e.By)
}

// Is makes errors.Is(err, ErrExpelled) true.
func (e *ExpelledError) Is(target error) bool { return target == ErrExpelled }

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
	return fmt.Sprintf("%v: %v", e.Waiting, e.Err)
}

// Unwrap is the context's error.
func (e *WaitError) Unwrap() error { return e.Err }
