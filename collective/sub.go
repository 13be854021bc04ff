package collective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
)

// Sub makes a group of the ranks that pass the same color, ordered by key and
// then by rank in g. Every rank of g calls it. A rank with a negative color
// takes part in the call, but gets a nil Group.
//
// The new Group has a View of its own ranks and shares g's connections. Calls of the
// two, asynchronous ones included, must not overlap: the one that begins later fails with
// ErrConcurrent. An asynchronous call begins in the background, perhaps after the next call
// of the other group, so wait for the Work of one group before you call the other. A failure
// of one breaks both. Close the new Group no later than g; closing it during a call is a
// failure. It cannot exchange Messages.
//
// When a deadline passes, the error names the rank that is waited for. That
// rank may itself be waiting for the one that did not make the call.
func (g *Group) Sub(ctx context.Context, color, key int) (*Group, error) {
	mine, all := []int64{int64(color), int64(key)}, make([]int64, 2*g.Size())
	if err := AllGather(ctx, g, all, mine); err != nil {
		return nil, err
	}
	if color < 0 {
		return nil, nil
	}
	var ranks []int
	for r := range g.Size() {
		if all[2*r] == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	v := View{Job: g.view.Job, Epoch: g.view.Epoch, Self: slices.Index(ranks, g.Rank())}
	for _, r := range ranks {
		v.Members = append(v.Members, g.view.Members[r])
	}
	e, err := g.engine.Sub(g.subID(color), v, ranks)
	if err != nil {
		return nil, err
	}
	sub := NewGroup(v, e, g.opts)
	sub.id = g.subID(color)
	sub.watchdog.join(&g.watchdog)
	return sub, nil
}

// subID returns an id that separates the messages of one Sub from those of any
// other. It depends on the parent, on the number of calls before, and on the
// color.
func (g *Group) subID(color int) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, g.id, g.seq, color)
	return h.Sum32() | 1 // 0 is the whole View
}

// Sub is part of Engine.
func (e *HostEngine) Sub(id uint32, v View, ranks []int) (Engine, error) {
	if v.Self < 0 || v.Self >= len(ranks) || ranks[v.Self] != e.rank {
		return nil, errors.New("collective: Sub: ranks[v.Self] must be this rank")
	}
	e.divided = true
	s := OverTransport(v, &subTransport{t: e.t, can: e.can, outer: e, self: v.Self, ranks: ranks})
	s.group, s.situation.Force, s.parent = id, e.situation.Force, e
	s.inheritLinks(&e.situation)
	return s, nil
}

// subTransport is a Transport for some ranks of another, renumbered. Closing it
// leaves the other open.
type subTransport struct {
	t      Transport
	can    Abilities    // of t
	outer  *HostEngine  // uses t
	self   int          // rank here
	ranks  []int        // of t, by rank here
	calls  atomic.Int32 // Sends and Recvs in progress
	closed atomic.Bool
}

var (
	_ Able   = (*subTransport)(nil)
	_ Poster = (*subTransport)(nil)
)

func (s *subTransport) Send(ctx context.Context, to int, h *Header, parts [][]byte) error {
	return s.during(func() error { return s.t.Send(ctx, s.ranks[to], h, parts) })
}

func (s *subTransport) Recv(ctx context.Context, from int, h *Header, parts [][]byte) error {
	return s.during(func() error { return s.t.Recv(ctx, s.ranks[from], h, parts) })
}

// Abilities omits what belongs to the whole View: shared memory, counts of
// calls, and where waits are noted.
func (s *subTransport) Abilities() Abilities {
	kept := Abilities{Streams: s.can.Streams, Failed: s.can.Failed}
	if s.can.Post != nil {
		kept.Post = s
	}
	if s.can.Err != nil {
		kept.Err = func() error { return s.translate(s.can.Err()) }
	}
	return kept
}

// Post is part of Poster.
func (s *subTransport) Post(to int, h *Header, parts [][]byte) error {
	return s.during(func() error { return s.can.Post.Post(s.ranks[to], h, parts) })
}

// Flush is part of Poster.
func (s *subTransport) Flush(ctx context.Context) error {
	return s.during(func() error { return s.can.Post.Flush(ctx) })
}

// during runs one use of the transport. Either it sees that the transport is
// closed, or Close sees the use, because each stores its own flag before it
// loads the other's.
func (s *subTransport) during(call func() error) error {
	s.calls.Add(1)
	defer s.calls.Add(-1)
	if s.closed.Load() {
		s.breakOff()
		return ErrClosed
	}
	return s.translate(call())
}

// breakOff ends a call in progress by breaking the whole Transport, because
// nothing smaller would end it.
func (s *subTransport) breakOff() {
	s.Abort(&RankError{Rank: s.self, Phase: "failed", Err: ErrClosed})
}

func (s *subTransport) Abort(cause *RankError) {
	c := *cause
	switch {
	case c.Rank >= 0 && c.Rank < len(s.ranks):
		c.Rank = s.ranks[c.Rank]
	case s.outer.parent == nil:
		c.Rank = c.Whole
	}
	if differ, ok := c.Err.(*MismatchError); ok && min(differ.Self, differ.Peer) >= 0 && max(differ.Self, differ.Peer) < len(s.ranks) {
		d := *differ // other ranks get its text
		d.Self, d.Peer = s.ranks[d.Self], s.ranks[d.Peer]
		c.Err = &d
	}
	s.t.Abort(&c)
}

func (s *subTransport) Close() error {
	s.closed.Store(true)
	if s.calls.Load() > 0 {
		s.breakOff()
	}
	return nil
}

// translate converts the ranks of an error of t to ranks of this group. A culprit
// outside of it becomes -1, with its name and its number in the View.
func (s *subTransport) translate(err error) error {
	var broken *RankError
	if !errors.As(err, &broken) {
		return s.cause(err)
	}
	c := *broken
	c.Rank, c.Err = slices.Index(s.ranks, broken.Rank), s.cause(broken.Err)
	if broken.Rank >= 0 && c.Rank < 0 {
		c.Node, c.Whole = s.outer.view.Name(broken.Rank), s.outer.whole(broken.Rank)
	}
	return &c
}

// cause converts the ranks of a cause that t has found or received. Text that names
// ranks, and ranks that are not in this group, keep the numbers of the View.
func (s *subTransport) cause(err error) error {
	switch e := err.(type) {
	case *ReportedError:
		c := *e
		c.By, c.Err = slices.Index(s.ranks, e.By), s.cause(e.Err)
		if e.By >= 0 && c.By < 0 {
			c.Whole = s.outer.whole(e.By)
		}
		return &c
	case *MismatchError:
		c := *e
		c.Self, c.Peer = slices.Index(s.ranks, e.Self), slices.Index(s.ranks, e.Peer)
		if c.Self >= 0 && c.Peer >= 0 {
			return &c
		}
		c.Self, c.Peer = s.outer.whole(e.Self), s.outer.whole(e.Peer)
		return &wholeError{&c}
	case *textError:
		if e.is == ErrMismatch {
			return &wholeError{e}
		}
	}
	return err
}

// A wholeError is a cause that names ranks by their numbers in the View, in a group of
// Sub.
type wholeError struct{ err error }

func (e *wholeError) Error() string { return e.err.Error() + " (ranks of the whole view)" }
func (e *wholeError) Unwrap() error { return e.err }

// whole returns the number of a rank in the whole View.
func (e *HostEngine) whole(rank int) int {
	for ; e.parent != nil; e = e.parent {
		rank = e.t.(*subTransport).ranks[rank]
	}
	return rank
}
