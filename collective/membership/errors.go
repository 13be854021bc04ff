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
	// ErrComplete is matched if this process came after the first View of its job was
	// agreed.
	ErrComplete = errors.New("the job has already started without this process")
	// ErrMinority is matched if too few members of the last View can be reached to
	// agree on a later one.
	ErrMinority = errors.New("too few members of the last view are left to agree on another")
	// ErrExpelled is matched if a later View was agreed without this process.
	ErrExpelled = errors.New("the job continues without this process")
	// ErrPortInUse is matched if another process listens on gossip's port.
	ErrPortInUse = errors.New("port in use")
	// ErrConfig is matched if a Config cannot work.
	ErrConfig = errors.New("bad membership config")
)

// CompleteError reports that this process is not in the View that others hold.
type CompleteError struct {
	Member collective.Member // this process
	By     string            // name of the member that reported it
	Job    uint64            // of the View
}

// Error returns one line that says what to do.
func (e *CompleteError) Error() string {
	return fmt.Sprintf("%s: %v (job %016x, reported by %s): restart it when that job is over, or start all workers together with the right number of machines",
		e.Member.Name, ErrComplete, e.Job, e.By)
}

// Is makes errors.Is(err, ErrComplete) true.
func (e *CompleteError) Is(target error) bool { return target == ErrComplete }

// MinorityError lists the members that a later View lacks. If the network is split,
// a majority may continue on the other side.
type MinorityError struct {
	View      collective.View     // the last
	Reachable []collective.Member // of the View, this process included
	Missing   []collective.Member // of the View: lost by the data plane, or given up by gossip
	Need      int                 // members that a later View needs
	Err       error               // of the context; nil if it was still valid
}

// Error returns one line that says what to do.
func (e *MinorityError) Error() string {
	text := fmt.Sprintf("membership: %v: %d of the %d members of epoch %d can be reached, %d are needed; missing: %s: repair the network or restart the job from its last checkpoint",
		ErrMinority, len(e.Reachable), e.View.Size(), e.View.Epoch, e.Need, names(e.Missing))
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns the context's error.
func (e *MinorityError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrMinority) true.
func (e *MinorityError) Is(target error) bool { return target == ErrMinority }

// names lists members for an error, at most a few.
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

// ExpelledError reports that a later View does not contain this process: the others
// had lost it, or it did not answer in time.
type ExpelledError struct {
	Member collective.Member // this process
	By     string            // name of the member that reported it
	Job    uint64
	Epoch  uint64 // of the View that By holds
}

// Error returns one line that says what to do.
func (e *ExpelledError) Error() string {
	return fmt.Sprintf("%s: %v (job %016x is at epoch %d, reported by %s): it was stopped or cut off for too long, and the others have taken over its work: stop it",
		e.Member.Name, ErrExpelled, e.Job, e.Epoch, e.By)
}

// Is makes errors.Is(err, ErrExpelled) true.
func (e *ExpelledError) Is(target error) bool { return target == ErrExpelled }

// PortInUseError has the address that gossip could not listen on.
type PortInUseError struct {
	Addr netip.AddrPort
	Err  error // of the listener
}

// Error returns one line that says what to do.
func (e *PortInUseError) Error() string {
	return fmt.Sprintf("membership: gossip cannot listen on %v (TCP and UDP): another process uses the port: stop it, or choose another port (0 picks a free one)", e.Addr)
}

// Unwrap returns the listener's error.
func (e *PortInUseError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrPortInUse) true.
func (e *PortInUseError) Is(target error) bool { return target == ErrPortInUse }

// WaitError has what View was waiting for when its context ended.
type WaitError struct {
	Waiting Waiting
	Err     error // of the context
}

// Error returns one line.
func (e *WaitError) Error() string {
	return fmt.Sprintf("%v: %v", e.Waiting, e.Err)
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }
