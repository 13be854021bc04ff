package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// reportTime is how long dialling continues after a failure, so that ranks that were not
// reached yet still learn about it.
const reportTime = 5 * time.Second

// Connect returns the Transport of a View. Of each pair of ranks, the higher one dials the
// bulk Links and the lower one the control Link, so each notices without help that the
// other has ended. A failed dial is repeated until ctx ends, unless waiting cannot help.
// The error is a *collective.RankError that names a rank that could not be reached. All
// ranks that could be reached are told.
func (c *Connector) Connect(ctx context.Context, v collective.View) (*Transport, error) {
	if c.Streams < 0 || c.Streams > MaxStreams {
		return nil, fmt.Errorf("tcp: Streams must be 1 to %d, or 0 for the default, not %d", MaxStreams, c.Streams)
	}
	streams := cmp.Or(c.Streams, AutoStreams)
	c.setView(v, streams)
	t := newTransport(v, streams, c.timeouts.silence)
	call := newConnecting(ctx, c, t)
	for d := 1; d < v.Size(); d++ { // nearest first, so that not all ranks begin with the same one
		for _, r := range []int{v.Self - d, v.Self + d} {
			if r >= 0 && r < v.Size() {
				call.connect(r)
			}
		}
	}
	first := call.wait()
	if first != nil {
		t.Abort(first)
	} else {
		t.start() // before the check below, so that a later report interrupts what was started
	}
	if err := t.broken(); err != nil { // a report that arrived before first takes precedence, because it may be its cause
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// connecting is one call of Connect: it gets the Links of one Transport.
type connecting struct {
	connector *Connector
	transport *Transport
	digest    uint64 // of the View
	dialer    *dialer

	ctx                   context.Context // of Connect
	dials, awaits         context.Context // awaits ends with the first failure, dials reportTime later
	stopDials, stopAwaits context.CancelFunc

	links, watch sync.WaitGroup
	once         sync.Once
	first        *collective.RankError // the first failure
}

func newConnecting(ctx context.Context, c *Connector, t *Transport) *connecting {
	call := &connecting{ctx: ctx, connector: c, transport: t, digest: t.view.Digest(), dialer: newDialer(c.id, c.timeouts.answer)}
	call.dials, call.stopDials = context.WithCancel(ctx)
	call.awaits, call.stopAwaits = context.WithCancel(call.dials)
	call.watch.Go(func() {
		select {
		case <-t.failed:
			call.stopAwaits()
		case <-call.awaits.Done():
		}
		select {
		case <-time.After(reportTime):
			call.stopDials()
		case <-call.dials.Done():
		}
	})
	return call
}

// connect starts to get the Links to a rank.
func (c *connecting) connect(rank int) {
	v, streams := c.transport.view, c.transport.streams
	for i := range streams + 1 {
		p := Purpose{Job: v.Job, Epoch: v.Epoch, Digest: c.digest, Channel: Bulk, Stream: uint8(i), Streams: uint8(streams)}
		if i == streams {
			p.Channel, p.Stream = Control, 0
		}
		c.links.Go(func() {
			l, err := c.link(rank, p)
			if err != nil {
				c.once.Do(func() { c.first = blame(c.ctx, v, rank, err) })
				c.stopAwaits()
				return
			}
			c.transport.attach(rank, l)
		})
	}
}

// link dials or awaits the Link to a rank.
func (c *connecting) link(rank int, p Purpose) (*Link, error) {
	log, v := c.connector.Log, c.transport.view
	p.Rank = uint32(rank)
	m := v.Members[rank]
	if (rank < v.Self) == (p.Channel == Bulk) {
		p.Rank = uint32(v.Self)
		l, err := c.dialer.dial(c.dials, m.Addrs, Peer{Name: m.Name, Nonce: m.Nonce}, p)
		if err == nil && p.Channel == Bulk && p.Stream == 0 && log != nil {
			log.Info("connected", "rank", rank, "name", m.Name, "addr", l.RemoteAddr().String())
		}
		return l, err
	}
	l, err := c.connector.await(c.awaits, p)
	if err == nil && l.purpose.Streams != p.Streams {
		_ = l.Close()
		return nil, fmt.Errorf("%w: %w", ErrRefused, c.connector.streamsDiffer(m.Name, l.purpose.Streams, int(p.Streams)))
	}
	return l, err
}

// blame returns the error of Connect after a Link to a rank failed with err. ctx is that
// of Connect.
func blame(ctx context.Context, v collective.View, rank int, err error) *collective.RankError {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &collective.RankError{Rank: v.Self, Node: v.Name(v.Self), Epoch: v.Epoch, Phase: "cancelled", Err: context.Cause(ctx)}
	case errors.Is(err, collective.ErrClosed): // the Connector, not that rank
		return &collective.RankError{Rank: v.Self, Node: v.Name(v.Self), Epoch: v.Epoch, Phase: "cancelled", Err: err}
	case outOfDescriptors(err):
		rank, err = v.Self, fmt.Errorf("it has too few file descriptors for its connections; raise the limit (ulimit -n): %w", err)
	}
	return &collective.RankError{Rank: rank, Node: v.Name(rank), Epoch: v.Epoch, Phase: "connect", Err: err}
}

// wait waits until every Link is attached or has failed, and returns the first failure.
func (c *connecting) wait() *collective.RankError {
	c.links.Wait()
	c.stopDials()
	c.stopAwaits()
	c.watch.Wait()
	return c.first
}
