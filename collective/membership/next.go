package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// minorityPatience is how long too few members must be reachable before Next fails.
// A network that was cut briefly recovers in that time.
const minorityPatience = 5 * time.Second

// Next asks the members of after, a View that this process was in, to agree on a
// later one, and returns it. The new View has all members that answer, except the
// lost, which the data plane knows before gossip does. Next returns at once if the
// others have agreed already. Members that do not call Next vote too.
//
// The error matches [ErrExpelled] if a later View was agreed without this process,
// and [ErrMinority] if too few members can be reached when ctx ends, or for five
// seconds before. Otherwise, when ctx ends, the error names the members that have
// not answered. After Close it is [ErrClosed].
func (a *Agent) Next(ctx context.Context, after collective.View, lost []collective.Member) (collective.View, error) {
	self := a.machine.census.self.Member
	if ctx.Err() != nil { // too late to ask
		return a.status.next(ctx, self, after)
	}
	gone := peersOf(lost)
	a.in.put(func(now time.Time) {
		a.demands++
		if held := a.machine.learner.held; held != nil && held.view.Job == after.Job && held.view.Epoch <= after.Epoch {
			a.machine.Next(now, gone)
		}
	})
	defer a.in.put(func(time.Time) {
		if a.demands--; a.demands == 0 {
			a.machine.Withdraw()
		}
	})
	return a.status.next(ctx, self, after)
}

// unsent handles a message that could not be delivered. If the receiver's machine
// refused the connection, the process is gone.
func (a *Agent) unsent(to *memberlist.Node, err error) {
	a.cfg.Log.Debug("message not sent", "to", to.Name, "error", err)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return
	}
	name := to.Name
	a.in.put(func(now time.Time) {
		for p := range a.known {
			if p.gossipName() == name {
				a.machine.Gone(now, p)
			}
		}
	})
}

// shortSince returns since when too few members can be reached, or zero.
func (o *outlook) shortSince() time.Time {
	if o == nil {
		return time.Time{}
	}
	return o.short
}

// explain returns why there is no View after the given one. cause is the context's,
// or nil.
func (o *outlook) explain(after collective.View, cause error) error {
	switch {
	case o == nil:
		return fmt.Errorf("membership: no view after epoch %d yet: %w", after.Epoch, cause)
	case !o.short.IsZero():
		return &MinorityError{View: ownCopy(after), Reachable: o.reachable, Missing: o.missing, Need: o.need, Err: cause}
	}
	who := ""
	if len(o.unanswered) > 0 {
		who = "no answer yet from " + strings.Join(firstFew(o.unanswered), ", ") + ": "
	}
	return fmt.Errorf("membership: no view after epoch %d yet (%d members can be reached, %d are needed): %s%w",
		after.Epoch, len(o.reachable), o.need, who, cause)
}
