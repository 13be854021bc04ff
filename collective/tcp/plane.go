package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/publish"
)

const (
	beatEvery = 250 * time.Millisecond // between heartbeats
	silence   = 5 * time.Second        // without any sign of life is a lost peer
	benefit   = 50 * time.Millisecond  // of the doubt: when a connection ends, an ABORT that names the true culprit may be on its way
)

// A controlPlane knows the ranks of a View, how far they have come and who broke
// the View. It works beside the messages, over the control Links.
type controlPlane struct {
	view  collective.View
	peers []peer // by rank; the own one has no Links

	silence time.Duration // without any sign of life is a lost peer
	whole   atomic.Bool   // all peers have connected

	called publish.Word // the highest call this rank has begun; heartbeats tell it

	failed  chan struct{} // closed when cause is set
	mu      sync.Mutex
	cause   error       // what broke the transport; set once
	suspect *time.Timer // runs while a lost connection is not yet believed

	telling sync.Mutex // held while sending news of a failure, so that Close does not cut it off
	done    sync.WaitGroup
}

// A peer is one other rank.
type peer struct {
	control *Link
	bulk    []*Link
	lanes   []*lane   // the sockets of bulk, where messages are moved without goroutines
	out, in []*porter // of bulk[1:], where they are not

	first struct{ out, in [][]byte } // the stripes that bulk[0] carries

	write  sync.Mutex    // one frame at a time on control; guards both Links while connecting
	called atomic.Uint64 // the highest call it has begun
	left   atomic.Bool   // it has said goodbye
}

// attach gives a peer one of its Links. Heartbeats begin with its control Link,
// however long other peers take to connect. Until all are attached, only Abort is
// called.
func (c *controlPlane) attach(rank int, l *Link) {
	p := &c.peers[rank]
	p.write.Lock()
	if l.purpose.Channel == Bulk {
		p.bulk[l.purpose.Stream] = l
		p.write.Unlock()
		return
	}
	p.control = l
	p.write.Unlock()
	c.done.Go(func() { c.listen(rank, l) })
	var cause *collective.RankError
	if errors.As(c.broken(), &cause) { // the news went round before this Link was there
		_ = c.tell(rank, frameAbort, collective.PutAbort(cause, c.view.Self))
	}
}

// Behind returns the rank that has begun the fewest calls, if fewer than seq.
func (c *controlPlane) Behind(seq uint64) (rank int, ok bool) {
	least := seq
	for r := range c.peers {
		if r != c.view.Self && c.peers[r].called.Load() < least {
			least, rank, ok = c.peers[r].called.Load(), r, true
		}
	}
	return rank, ok
}

// Failed is closed when the transport is broken.
func (c *controlPlane) Failed() <-chan struct{} { return c.failed }

// Err is what broke the transport, nil while nothing has.
func (c *controlPlane) Err() error { return c.broken() }

// Left reports whether a rank has said goodbye.
func (c *controlPlane) Left(rank int) bool { return c.peers[rank].left.Load() }

// Begun counts a call that this rank makes by other ways than Send and Recv, so
// that its peers learn of it.
func (c *controlPlane) Begun(h *collective.Header) { c.begun(h) }

// Abort is part of collective.Transport.
func (c *controlPlane) Abort(cause *collective.RankError) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if !c.fail(cause) {
		return
	}
	news := collective.PutAbort(cause, c.view.Self)
	for r := range c.peers {
		if r != c.view.Self && !c.peers[r].left.Load() {
			_ = c.tell(r, frameAbort, news)
		}
	}
	c.unblock()
}

// hangUp closes all Links.
func (c *controlPlane) hangUp() {
	for r := range c.peers {
		p := &c.peers[r]
		p.write.Lock()
		links := append([]*Link{p.control}, p.bulk...)
		p.write.Unlock()
		for _, l := range links {
			if l != nil {
				_ = l.Close()
			}
		}
	}
}

// begun counts calls. Those of a part of the View, and between two ranks, have
// numbers of their own.
func (c *controlPlane) begun(h *collective.Header) {
	if h.OfAll() && c.called.Load() < h.Seq {
		c.called.Publish(h.Seq)
	}
}

func (c *controlPlane) broken() error {
	select {
	case <-c.failed:
		return c.cause
	default:
		return nil
	}
}

// fail sets what broke the transport; false if something else has before.
func (c *controlPlane) fail(cause error) bool {
	if e, ok := cause.(*collective.RankError); ok && e.Node == "" { // news has ranks only
		named := *e
		named.Node, named.Epoch = c.view.Name(e.Rank), c.view.Epoch
		cause = &named
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return false
	}
	c.cause = cause
	close(c.failed)
	return true
}

// unblock ends the calls in progress on bulk Links.
func (c *controlPlane) unblock() {
	for r := range c.peers {
		p := &c.peers[r]
		p.write.Lock()
		for _, l := range p.bulk {
			if l != nil {
				l.interrupt()
			}
		}
		for _, l := range p.lanes {
			l.shut()
		}
		p.write.Unlock()
	}
}

// doubt is called when a connection to a rank ended without a goodbye. The
// rank is to blame unless another cause comes within the benefit of the doubt.
func (c *controlPlane) doubt(rank int, phase string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil || c.suspect != nil {
		return
	}
	cause := &collective.RankError{Rank: rank, Phase: phase, Err: err}
	believe := func() {
		if c.peers[rank].left.Load() {
			cause.Err = collective.ErrLeft // its goodbye was on the other Link
		}
		c.Abort(cause)
	}
	// In two spans: where this very process stood still, the first is over
	// before anything that came meanwhile was read.
	c.suspect = time.AfterFunc(benefit/2, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cause == nil {
			c.suspect = time.AfterFunc(benefit/2, believe)
		}
	})
}

// explain turns the failure of a bulk Link into what broke the transport.
func (c *controlPlane) explain(ctx context.Context, rank int, phase string, err error) error {
	var differ *collective.MismatchError
	switch {
	case errors.As(err, &differ):
		c.Abort(&collective.RankError{Rank: rank, Phase: "mismatch", Err: err})
		return err
	case ctx.Err() != nil:
		c.Abort(&collective.RankError{Rank: c.view.Self, Phase: "cancelled", Err: context.Cause(ctx)})
	case c.broken() != nil:
	case c.peers[rank].left.Load():
		c.Abort(&collective.RankError{Rank: rank, Phase: phase, Err: collective.ErrLeft})
	default:
		c.doubt(rank, phase, fmt.Errorf("%w (%v)", collective.ErrLost, err))
	}
	<-c.failed
	return c.cause
}
