package collective

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrClosed is returned by calls on a Group or Transport that its owner has
	// closed.
	ErrClosed = errors.New("closed")
	// ErrConcurrent is returned when a second goroutine calls a Group during a
	// call, or calls a Group of Sub during a call of the one that it was made
	// from, or the reverse. The caller must determine the order of calls.
	ErrConcurrent = errors.New("another call of this group, or of one that shares its connections, is in progress: make one call at a time")
	// ErrMessaging is returned by calls of a Group that exchanges messages.
	ErrMessaging = errors.New("the group exchanges messages: call Messages.End before the next call")
	// ErrUnsupported is returned for a combination of operation, type and
	// memory that the engine does not support.
	ErrUnsupported = errors.New("not supported")
	// ErrMismatch matches, by errors.Is, the error that every rank gets when
	// two ranks made different calls.
	ErrMismatch = errors.New("ranks made different calls")
	// ErrNotConnected says that a rank did not connect to another in time.
	ErrNotConnected = errors.New("it did not connect in time")
	// ErrLost says that a rank's connection ended without a goodbye: its
	// process died or its machine is unreachable.
	ErrLost = errors.New("connection lost: the process died or its machine is unreachable")
	// ErrSilent says that a rank's connection is open, but nothing has arrived
	// on it for too long, not even a heartbeat. The process is stopped or its
	// network is down.
	ErrSilent = errors.New("no heartbeat: the process is stopped or its network is down")
	// ErrLeft says that a rank closed the group while other ranks still used it.
	ErrLeft = errors.New("it closed the group while other ranks still used it")
	// ErrLate says that a rank is alive but did not make the call before the
	// deadline: that of Options, or that of the caller's context. In the latter
	// case the error here is also a context.DeadlineExceeded.
	ErrLate = errors.New("it is alive but did not make the call before the deadline")
)

// lateness returns ErrLate, or an error that also says that a context's deadline passed.
func lateness(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return pastDeadline{}
	}
	return ErrLate
}

// pastDeadline is ErrLate because a caller's context had a deadline.
type pastDeadline struct{}

func (pastDeadline) Error() string {
	return "it is alive but did not make the call before the deadline of the caller's context"
}

func (pastDeadline) Is(target error) bool {
	return target == ErrLate || target == context.DeadlineExceeded
}

// A RankError says which rank broke a group, during which call, and how.
type RankError struct {
	Op    Call          // the call that was in progress here, Kind 0 if none
	Seq   uint64        // its number in the group
	Rank  int           // the culprit, or either of two ranks whose calls differ; -1 if it is not in the group, see Whole
	Whole int           // in a Group of Sub, the View's number of a culprit that is not in the group
	Node  string        // the culprit's name in the View
	Epoch uint64        // of the View
	Phase string        // what failed: "connect", "send", "receive", "heartbeat", "not called", "cancelled", "mismatch" or "failed"
	After time.Duration // how long the call here had run when it failed
	Err   error         // the cause
}

// Error returns one line: the culprit, what it failed to do, the call, the
// epoch and the cause.
func (e *RankError) Error() string {
	return strings.ReplaceAll(e.text(), "\n", "; ") // such as of errors.Join
}

func (e *RankError) text() string {
	who := rankText(e.Rank, e.Whole)
	if e.Node != "" {
		who += " (" + e.Node + ")"
	}
	epoch := fmt.Sprintf("in epoch %d", e.Epoch)
	when, during := epoch, epoch
	if e.Op.Kind != 0 {
		when = fmt.Sprintf("%v #%d %s", e.Op, e.Seq, epoch)
		during = "during " + when
	}
	switch e.Phase {
	case "connect":
		return fmt.Sprintf("%s could not connect %s: %v", who, epoch, e.Err)
	case "not called":
		return fmt.Sprintf("%s was late %s: %v", who, during, e.Err)
	case "cancelled":
		return fmt.Sprintf("%s cancelled %s: %v", who, when, e.Err)
	case "mismatch":
		return fmt.Sprintf("mismatch with %s %s: %v", who, during, e.Err)
	case "failed":
		return fmt.Sprintf("%s failed %s: %v", who, during, e.Err)
	}
	return fmt.Sprintf("%s failed %s (%s): %v", who, during, e.Phase, e.Err)
}

// rankText names a rank, or one that is not in the group by its number in the View.
func rankText(rank, whole int) string {
	if rank < 0 {
		return fmt.Sprintf("rank %d of the whole view", whole)
	}
	return fmt.Sprintf("rank %d", rank)
}

// Unwrap returns the cause.
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
	case m.Call.Kind.outside() != t.Call.Kind.outside():
		caller, call, other := e.Peer, t, e.Self
		if t.Call.Kind.outside() {
			caller, call, other = e.Self, m, e.Peer
		}
		return fmt.Sprintf("rank %d called %v #%d while rank %d exchanges messages: a group makes no calls until every rank has called Messages.End",
			caller, call.Call, call.Seq, other)
	case m.Seq == t.Seq && m.Call.Method != t.Call.Method && m.Call.sameArguments(&t.Call):
		return fmt.Sprintf("rank %d called %v #%d by %s, rank %d by %s: use the same Options.Order, engine and kind of memory on all ranks",
			e.Peer, t.Call, t.Seq, t.Call.method(), e.Self, m.Call.method())
	case e.piecesDiffer():
		return fmt.Sprintf("rank %d sends %d elements to rank %d in AllToAll #%d, but rank %d expects %d: what one rank sends must be what the other receives",
			e.Peer, t.Call.Count, e.Self, m.Seq, e.Self, m.Call.Count)
	case m.Seq == t.Seq && m.Call == t.Call:
		return fmt.Sprintf("rank %d sent part %d (%d bytes) of %v #%d where rank %d expected part %d (%d bytes)",
			e.Peer, t.Part, t.Len, t.Call, t.Seq, e.Self, m.Part, m.Len)
	}
	rule := "all ranks must make the same calls in the same order"
	if m.Call.Kind == KindSend && t.Call.Kind == KindSend {
		rule = "a Send and its Recv must agree in type and length"
	}
	return fmt.Sprintf("rank %d called %s #%d, rank %d called %s #%d: %s",
		e.Peer, t.Call.of(e.Peer), t.Seq, e.Self, m.Call.of(e.Self), m.Seq, rule)
}

// piecesDiffer reports whether two ranks disagree only about the length of what one sends to
// the other in an AllToAllV or AllToAllW.
func (e *MismatchError) piecesDiffer() bool {
	mine, theirs := e.Mine.Call, e.Theirs.Call
	pair := mine.Kind == KindAllToAll && mine.Root == pairCounts && mine.Count != theirs.Count
	mine.Count = theirs.Count
	return pair && e.Mine.Seq == e.Theirs.Seq && mine == theirs
}

// Is makes errors.Is(err, ErrMismatch) true.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// A ReportedError is a cause that another rank found and reported.
type ReportedError struct {
	By    int // the rank that reported it; -1 if it is not in the group, see Whole
	Whole int // in a Group of Sub, the View's number of a reporter that is not in the group
	Err   error
}

// Error returns the cause and the rank that reported it.
func (e *ReportedError) Error() string {
	return fmt.Sprintf("%v (reported by %s)", e.Err, rankText(e.By, e.Whole))
}

// Unwrap returns the cause.
func (e *ReportedError) Unwrap() error { return e.Err }
