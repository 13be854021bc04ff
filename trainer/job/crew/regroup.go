package crew

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// clusterOf returns the name under which the processes of a job form its group of a number,
// with servers. Group 0 is the job's first.
func clusterOf(job string, number int) string {
	if number == 0 {
		return job
	}
	return fmt.Sprintf("%s.%d", job, number)
}

// Partners are the workers of a job with servers. They have a group of their own, which
// stays whole when a server is lost, and form the groups with servers that follow.
type Partners struct {
	Group *collective.Group // of the workers

	worker *Worker
	node   *cluster.Node // of Group
	number int           // of the newest group with servers
	limit  time.Duration
}

// Partner forms the workers' own group. All workers of all call it; all is the first group
// with servers, from Form. limit is the most time to form a group.
func (w *Worker) Partner(ctx context.Context, all *collective.Group, limit time.Duration) (*Partners, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrJoinTimeout)
	defer cancel()
	p := &Partners{worker: w, limit: limit}
	c := w.config()
	c.Cluster += ".workers"
	v := all.View()
	c.LocalSize = len(slices.DeleteFunc(slices.Clone(v.Members), func(m collective.Member) bool {
		return m.Node != c.Node || m.Role != collective.Worker
	}))
	var err error
	if p.node, err = join(ctx, c, all); err != nil {
		return nil, err
	}
	if p.Group, err = p.node.Group(ctx); err != nil {
		return nil, errors.Join(joinTimedOut(err, limit), p.node.Close())
	}
	return p, nil
}

// Close closes the workers' group and the newest group with servers.
func (p *Partners) Close() error { return errors.Join(p.worker.node.Close(), p.node.Close()) }

// Regroup forms the next group with servers after one was lost, and closes the last. All
// workers call it. The launchers start all servers again meanwhile.
//
// It returns an error if a worker is lost. If a server is lost meanwhile, it tries again.
func (p *Partners) Regroup(ctx context.Context) (*collective.Group, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, ErrJoinTimeout)
	defer cancel()
	for patience := formTime; ; {
		g, err := p.form(ctx, patience)
		if g != nil || ctx.Err() != nil || !errors.Is(err, errAgain) {
			return g, joinTimedOut(err, p.limit)
		}
		if errors.Is(err, errSlow) {
			patience *= 2
		}
	}
}

// formTime is how long an attempt to form a group may take. After one that took longer, the
// next may take twice as long. If a server is lost meanwhile, the processes would otherwise
// wait until gossip gives it up, which takes longer.
const formTime = 2 * time.Second

var (
	// errAgain says that a group was not formed, and that the next may be.
	errAgain = errors.New("the group was not formed")
	// errSlow is an errAgain because of the time that it took.
	errSlow = fmt.Errorf("%w in time", errAgain)
)

// form forms the group of the next number.
func (p *Partners) form(ctx context.Context, patience time.Duration) (*collective.Group, error) {
	w := p.worker
	_ = w.node.Close() // it is broken
	p.number++
	c := w.config()
	c.Cluster = clusterOf(c.Cluster, p.number)
	node, err := join(ctx, c, p.Group)
	if err != nil {
		return nil, err
	}
	w.node = node
	w.tell(p.number, node)
	ctx, cancel := context.WithCancel(ctx)
	formed := make(chan error, 1)
	defer func() { cancel(); <-formed }()
	var g *collective.Group
	go func() {
		defer close(formed)
		var err error
		g, err = node.Group(ctx)
		formed <- err
	}()
	if err := p.await(ctx, formed, patience); err != nil {
		return nil, err
	}
	w.flight.group.Store(g)
	w.tell(p.number, nil)
	_ = w.Attend(ctx, g) // if a server is lost already, the next call says so
	return g, nil
}

// Attend is the first call of a server in its group. The workers call Partner meanwhile, or
// are in Regroup.
func (w *Worker) Attend(ctx context.Context, all *collective.Group) error {
	return collective.Broadcast(ctx, all, make([]byte, addrLen), 0)
}

// addrLen is more than the length of an address with a port.
const addrLen = 64

// tell tells the launcher which group is being formed, or has been if node is nil.
func (w *Worker) tell(number int, node *cluster.Node) {
	e := &event.Regrouped{Number: number}
	if node != nil {
		e.Addr = node.Addr().String()
	}
	if w.Place.Local == 0 { // for all workers of this machine
		w.Events.Emit(e)
	}
	if node != nil {
		w.Events.Emit(&event.Ready{Addr: e.Addr})
	}
}

// How far a worker is in forming a group.
const (
	forming int64 = iota
	hasFormed
	hasFailed
	wasSlow
)

// compareTime is how often workers compare how far they are, so that they notice the loss
// of one of them.
const compareTime = 100 * time.Millisecond

// await waits until all workers have formed a group. formed receives the outcome of this
// one. The error matches errAgain if a worker has failed, unless it always would, and errSlow if
// one has lost its patience.
func (p *Partners) await(ctx context.Context, formed <-chan error, patience time.Duration) error {
	late := time.After(patience)
	ticker := time.NewTicker(compareTime)
	defer ticker.Stop()
	mine, all := []int64{forming}, make([]int64, p.Group.Size())
	for {
		if mine[0] == forming {
			select {
			case err := <-formed:
				if final := errors.Is(err, membership.ErrDiffer) || errors.Is(err, membership.ErrKey) || ctx.Err() != nil; err != nil && final {
					return err
				}
				mine[0] = hasFormed
				if err != nil {
					mine[0] = hasFailed
				}
			case <-late:
				mine[0] = wasSlow
			case <-ticker.C:
			}
		}
		if err := collective.AllGather(ctx, p.Group, all, mine); err != nil {
			return fmt.Errorf("waiting for servers to be started again: %w", err)
		}
		switch {
		case slices.Max(all) == wasSlow:
			return errSlow
		case slices.Max(all) == hasFailed:
			return errAgain
		case slices.Min(all) == hasFormed:
			return nil
		}
	}
}

// join makes this process join others under another name. All ranks of via call it. They
// join rank 0, which tells them its address.
func join(ctx context.Context, c cluster.Config, via *collective.Group) (node *cluster.Node, err error) {
	c.Join, c.Progress = nil, nil
	c.Bind = netip.AddrPortFrom(c.Bind.Addr(), 0)
	v, addr := via.View(), make([]byte, addrLen)
	if v.Self == 0 {
		if node, err = cluster.Join(ctx, c); err != nil {
			return nil, err
		}
		copy(addr, node.Addr().String())
	}
	if err = collective.Broadcast(ctx, via, addr, 0); err == nil && v.Self > 0 {
		c.Join = []string{string(bytes.TrimRight(addr, "\x00"))}
		node, err = cluster.Join(ctx, c)
	}
	if err != nil && node != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, err
}
