package cluster

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// Regroup makes the Group after a broken one. It has a higher epoch and the
// survivors, in their order; or all members, if none is lost and a call was only
// cancelled or differed. Every member must call it. It closes the Node's Group,
// broken or not. broken may also be a Sub of that Group, or nil if Group or Regroup
// failed to make one.
//
// Survivors may have finished different numbers of calls, because a rank may have finished one
// that failed on others. The new Group does not know: it compares only calls made in it. So
// agree on where to continue before anything else, as the example does.
//
// The error that broke the Group names the lost member. Otherwise Regroup finds it
// within a second or two. A member that agrees to the next View but does not call
// Regroup within Config.ConnectTime is logged, and left out of the View after that.
// Regroup continues in this way until ctx ends, or until this process itself cannot make
// the Group, for instance because Config.Engine fails.
//
// The error matches membership.ErrMinority if too few members of the last View are
// left, and membership.ErrExpelled if the others continued without this process.
func (n *Node) Regroup(ctx context.Context, broken *collective.Group) (*collective.Group, error) {
	view, lost, err := n.leave(ctx, broken)
	if err != nil {
		return nil, err
	}
	for {
		view, err = n.agent.Next(ctx, view, lost)
		if err != nil {
			return nil, err
		}
		g, err := n.connect(ctx, view)
		if err == nil || ctx.Err() != nil {
			return g, err
		}
		if _, err := n.newest(); err != nil { // err of connect does not tell: another member may have closed
			return nil, err
		}
		if ownFailure(view, err) {
			return nil, err // the next View would not help
		}
		n.config.Log.Warn("cannot connect to all members of the view; trying without the lost one", "epoch", view.Epoch, "error", err)
		lost = lostMembers(view, view, err)
	}
}

// ownFailure reports whether connecting to a View failed because of this process alone, as
// it found itself. What others report about it may be their own view of the network.
func ownFailure(v collective.View, err error) bool {
	var culprit *collective.RankError
	var reported *collective.ReportedError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, collective.ErrLate):
		return false // another member may not have come
	case errors.As(err, &culprit):
		return culprit.Rank == v.Self && !errors.As(culprit.Err, &reported)
	}
	return true
}

// leave closes the Group, and returns its View and the members that are gone. broken may
// be a Sub of the Group.
func (n *Node) leave(ctx context.Context, broken *collective.Group) (collective.View, []collective.Member, error) {
	group, err := n.newest()
	if err != nil {
		return collective.View{}, nil, err
	}
	defer n.closeGroup()
	if broken == nil {
		view, err := n.agent.View(ctx)
		return view, nil, err
	}
	cause := broken.Err()
	_ = broken.Close()
	view := broken.View()
	if group != nil {
		view = group.View()
	}
	return view, lostMembers(broken.View(), view, cause), nil
}

// lostMembers returns the members that are lost, according to an error of a group with
// the View v, which is whole or that of a Sub. A rank that cancelled or made a different
// call is still there. One that left its group may come back, and one that refused a
// connection may hold a newer View.
func lostMembers(v, whole collective.View, cause error) []collective.Member {
	var e *collective.RankError
	if !errors.As(cause, &e) {
		return nil
	}
	rank := e.Rank
	if rank < 0 { // it is not in the Sub
		v, rank = whole, e.Whole
	}
	if rank < 0 || rank >= v.Size() || rank == v.Self {
		return nil
	}
	dead := errors.Is(e.Err, collective.ErrLost) || errors.Is(e.Err, collective.ErrSilent)
	unreached := e.Phase == "connect" && !errors.Is(e.Err, tcp.ErrRefused)
	if !dead && !unreached {
		return nil
	}
	return v.Members[rank : rank+1]
}
