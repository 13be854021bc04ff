package cluster

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// Regroup makes the Group that comes after a broken one: of a higher epoch, with
// those who are left in their order, or with all if nobody is gone and a call
// was only cancelled or differed. Every member calls it. It closes the Node's
// Group, whether broken or not; broken may also be a Sub of it, or nil where
// Group or Regroup failed to make one.
//
// Who is gone is said by the error that broke the Group, and otherwise found out
// within a second or two. A member that agrees to the next View but does not call
// Regroup within Config.ConnectTime is named, and left out of the one after it.
// Regroup goes on like that until ctx ends.
//
// The error matches membership.ErrMinority if too few of the last View are left
// to go on, and membership.ErrExpelled if the others have gone on without this
// process.
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
		if err == nil || ctx.Err() != nil || errors.Is(err, collective.ErrClosed) {
			return g, err
		}
		n.config.Log.Warn("cannot connect to all of the view, trying without who is gone", "epoch", view.Epoch, "error", err)
		lost = gone(view, err)
	}
}

// leave closes what there is, and says which View is over and who of it is gone.
func (n *Node) leave(ctx context.Context, broken *collective.Group) (collective.View, []collective.Member, error) {
	if _, err := n.newest(); err != nil {
		return collective.View{}, nil, err
	}
	defer n.dismiss()
	if broken == nil {
		view, err := n.agent.View(ctx)
		return view, nil, err
	}
	cause := broken.Err()
	_ = broken.Close()
	return broken.View(), gone(broken.View(), cause), nil
}

// gone are the members that an error says are not there any more. A rank that
// cancelled or differed is there; one that has left its group may come back, and
// one that refused a connection may hold a newer View.
func gone(v collective.View, cause error) []collective.Member {
	var e *collective.RankError
	if !errors.As(cause, &e) || e.Rank < 0 || e.Rank >= v.Size() || e.Rank == v.Self {
		return nil
	}
	dead := errors.Is(e.Err, collective.ErrLost) || errors.Is(e.Err, collective.ErrSilent)
	unreached := e.Phase == "connect" && !errors.Is(e.Err, tcp.ErrRefused)
	if !dead && !unreached {
		return nil
	}
	return v.Members[e.Rank : e.Rank+1]
}
