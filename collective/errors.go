package collective

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed is returned by calls on a Group or Transport that its owner has
	// closed.
	ErrClosed = errors.New("closed")
	// ErrConcurrent is returned when a second goroutine calls a Group during a
	// call. The caller must determine the order of calls.
	ErrConcurrent = errors.New("another call of this group is in progress")
	// ErrUnsupported is returned for a combination of operation, type and
	// memory that the engine does not support.
	ErrUnsupported = errors.New("not supported")
	// ErrMismatch matches, by errors.Is, the error that every rank gets when
	// two ranks made different calls.
	ErrMismatch = errors.New("ranks made different calls")
	// ErrNotConnected says that a rank has not connected to another in time.
	ErrNotConnected = errors.New("it has not connected")
	// ErrLost says that a rank's connection ended without a goodbye: its
	// process died or its machine is unreachable.
	ErrLost = errors.New("connection lost: the process died or its machine is unreachable")
	// ErrSilent says that a rank's connection is open, but nothing has arrived
	// on it for too long, not even a heartbeat. The process is stopped or its
	// network is cut.
	ErrSilent = errors.New("no sign of life: the process is stopped or its network is cut")
	// ErrLeft says that a rank closed the group while others still used it.
	ErrLeft = errors.New("the rank has left the group")
	// ErrLate says that a rank is alive but did not make the call before the
	// deadline.
	ErrLate = errors.New("the rank is alive but has not made this call")
)

// A RankError says which rank broke a group, during which call, and how.
type RankError struct {
	Op    Call          // the call that was in progress here, Kind 0 if none
	Seq   uint64        // its number in the group
	Rank  int           // the culprit
	Node  string        // the culprit's name in the View
	Epoch uint64        // of the View
	Phase string        // what this rank was doing with the culprit: "connect", "send", "receive", "heartbeat", "not called", "cancelled", "mismatch", "failed"
	After time.Duration // how long the call here had run when it failed
	Err   error         // the cause
}

// Error returns one line: the culprit, the call, the epoch, the phase and the
// cause.
func (e *RankError) Error() string {
	call := " in"
	if e.Op.Kind != 0 {
		call = fmt.Sprintf(" in %v #%d of", e.Op, e.Seq)
	}
	name := ""
	if e.Node != "" {
		name = " (" + e.Node + ")"
	}
	return fmt.Sprintf("rank %d%s failed%s epoch %d, %s: %v", e.Rank, name, call, e.Epoch, e.Phase, e.Err)
}

// Unwrap is the cause.
func (e *RankError) Unwrap() error { return e.Err }

// A MismatchError says that a peer's call differs from this rank's.
type MismatchError struct {
	Self, Peer   int // ranks
	Mine, Theirs Header
}

// Error prints both calls.
func (e *MismatchError) Error() string {
	m, t := &e.Mine, &e.Theirs
	switch {
	case m.Job != t.Job || m.Epoch != t.Epoch || m.Group != t.Group:
		return fmt.Sprintf("rank %d sent a message of job %016x epoch %d group %d to rank %d, which is in job %016x epoch %d group %d",
			e.Peer, t.Job, t.Epoch, t.Group, e.Self, m.Job, m.Epoch, m.Group)
	case m.Seq == t.Seq && m.Call == t.Call:
		return fmt.Sprintf("rank %d sent part %d (%d bytes) of %v #%d where rank %d expected part %d (%d bytes)",
			e.Peer, t.Part, t.Len, t.Call, t.Seq, e.Self, m.Part, m.Len)
	}
	return fmt.Sprintf("rank %d called %v #%d, rank %d called %v #%d: all ranks must make the same calls in the same order",
		e.Peer, t.Call, t.Seq, e.Self, m.Call, m.Seq)
}

// Is makes errors.Is(err, ErrMismatch) true.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// A ReportedError is a cause that another rank found and reported.
type ReportedError struct {
	By  int // the rank that reported it
	Err error
}

// Error returns the cause and the rank that reported it.
func (e *ReportedError) Error() string { return fmt.Sprintf("%v (reported by rank %d)", e.Err, e.By) }

// Unwrap is the cause.
func (e *ReportedError) Unwrap() error { return e.Err }
