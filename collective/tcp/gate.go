package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// minAhead is how many Links a Gate keeps at least for Views that this process
// does not know yet.
const minAhead = 4096

// farewell is how long ranks that were not reached yet are dialled after
// connecting has failed, so that they are told.
const farewell = 5 * time.Second

// A Gate is where the Links of this process's Views come in. A peer may know
// of a View, and dial, before this process does: its Links wait here.
type Gate struct {
	// Log, if not nil, is told which of its addresses each peer was reached at.
	// Set it before the first Connect.
	Log *slog.Logger
	// Streams is over how many connections large messages between two ranks are
	// spread, MaxStreams at most; 0 is AutoStreams. All ranks have the same. Set it
	// before the first Connect.
	Streams int

	id    Identity
	times times

	mu      sync.Mutex
	view    collective.View   // of the newest Connect; Links of older ones are refused
	digest  uint64            // of view
	streams int               // of view
	unlike  map[Purpose]error // Links of view that were refused, because their dialler has other streams
	parked  map[Purpose]*Link
	changed chan struct{} // closed and made anew when parked changes
	closed  bool
	deaf    error // why the Listener could not accept, if no Link has come since
}

// times are how long a Gate and its Transports wait. Tests have less time.
type times struct {
	patience time.Duration // for the first answer to a hello
	silence  time.Duration // without any sign of life is a lost peer
}

var _ Handler = (*Gate)(nil)

// NewGate makes a Gate for a process. Give it to Listen as the handler.
func NewGate(id Identity) *Gate {
	return &Gate{id: id, times: times{handshakeTime, silence}, parked: map[Purpose]*Link{}, changed: make(chan struct{})}
}

// Allow refuses Links of other jobs, of Views that are over, and of who is not
// in the View. Of the present View there are then never more Links than it needs.
func (g *Gate) Allow(peer Identity, p Purpose) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.view.Job != 0
	switch {
	case g.closed:
		return fmt.Errorf("%s is leaving", g.id.Name)
	case known && p.Job != g.view.Job:
		return fmt.Errorf("%s is in job %016x, not %016x", g.id.Name, g.view.Job, p.Job)
	case p.Epoch < g.view.Epoch:
		return fmt.Errorf("epoch %d is over, %s is in epoch %d", p.Epoch, g.id.Name, g.view.Epoch)
	case !known || p.Epoch > g.view.Epoch:
		if len(g.parked) >= max(minAhead, 2*g.view.Size()*(MaxStreams+1)) {
			return errBusy // until this process knows that View, too
		}
		return nil
	}
	if err := g.belongs(peer, p); err != nil {
		return err
	}
	if int(p.Streams) != g.streams {
		err := g.differ(peer.Name, p.Streams, g.streams)
		g.unlike[p.key()] = err // who awaits it waits in vain
		g.wake()
		return err
	}
	if int(p.Stream) >= g.streams {
		return fmt.Errorf("stream %d of %d: there is no such", p.Stream, g.streams)
	}
	return nil
}

// belongs says why a Link of the present epoch is none that this process awaits.
func (g *Gate) belongs(peer Identity, p Purpose) error {
	v, r := g.view, int(p.Rank)
	switch {
	case p.Digest != g.digest:
		return fmt.Errorf("%s has other members in epoch %d", g.id.Name, p.Epoch)
	case r >= v.Size() || v.Members[r].Name != peer.Name || v.Members[r].Nonce != peer.Nonce:
		return fmt.Errorf("%s is not rank %d of epoch %d", peer.Name, p.Rank, p.Epoch)
	case r == v.Self || p.Channel != Bulk && p.Channel != Control || (p.Channel == Bulk) != (r > v.Self):
		return fmt.Errorf("rank %d does not dial rank %d for channel %d", r, v.Self, p.Channel)
	case p.Channel == Control && p.Stream != 0:
		return fmt.Errorf("stream %d of a control link: there is no such", p.Stream)
	}
	return nil
}

// differ says that two ranks do not agree about the number of connections.
func (g *Gate) differ(name string, theirs uint8, mine int) error {
	return fmt.Errorf("%s spreads messages over %d connections, %s over %d: give all ranks the same --streams", name, theirs, g.id.Name, mine)
}

// Accept keeps a Link until Connect asks for it. A dialler that dials again has
// given up the Link before, so a later one replaces it.
func (g *Gate) Accept(l *Link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deaf = nil
	key := l.purpose.key()
	if old := g.parked[key]; old != nil {
		_ = old.Close()
	}
	if g.closed || l.purpose.Epoch < g.view.Epoch {
		_ = l.Close()
		return
	}
	g.parked[key] = l
	g.wake()
}

// Unheard is part of Handler.
func (g *Gate) Unheard(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if exhausted(err) {
		g.deaf = err
	}
}

// exhausted reports whether an error says that descriptors have run out, which
// is no other process's fault.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// key is what a Link is awaited by: how many streams its dialler has is looked
// at when it is there.
func (p Purpose) key() Purpose {
	p.Streams = 0
	return p
}

// wake makes those who wait for a Link look again. It is called with mu held.
func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Close refuses what comes from now on and hangs up on what waits.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.wake()
	for p, l := range g.parked {
		_ = l.Close()
		delete(g.parked, p)
	}
}

// Connect makes the Transport of a View. Of each pair of ranks the higher dials
// the bulk Link and the lower the control Link, so each finds out by itself
// that the other is gone. A dial that fails is repeated until ctx ends, unless the
// reason is one that waiting cannot change. The error is a *collective.RankError
// that names who could not be reached; all ranks that could are told.
func (g *Gate) Connect(ctx context.Context, v collective.View) (*Transport, error) {
	if g.Streams < 0 || g.Streams > MaxStreams {
		return nil, fmt.Errorf("tcp: %d connections between two ranks: it can be 1 to %d, or 0 for the best", g.Streams, MaxStreams)
	}
	streams := cmp.Or(g.Streams, AutoStreams)
	g.enter(v, streams)
	t := newTransport(v, streams, g.times.silence)
	c := newConnector(ctx, g, t)
	for d := 1; d < v.Size(); d++ { // the nearest first, so that not all begin with the same rank
		for _, r := range []int{v.Self - d, v.Self + d} {
			if r >= 0 && r < v.Size() {
				c.connect(r)
			}
		}
	}
	first := c.wait()
	if first != nil {
		t.Abort(first)
	} else {
		t.ready() // before the transport is found whole: news that come later end what is there
	}
	if err := t.broken(); err != nil { // another rank's word comes before what followed from it
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// A connector gets the Links of one Transport.
type connector struct {
	gate      *Gate
	transport *Transport
	digest    uint64 // of the View
	caller    *caller

	whole                 context.Context // that of Connect
	dials, awaits         context.Context // the awaits end with the first failure, the dials a while later
	stopDials, stopAwaits context.CancelFunc

	links, watch sync.WaitGroup
	once         sync.Once
	first        *collective.RankError
}

func newConnector(ctx context.Context, g *Gate, t *Transport) *connector {
	c := &connector{whole: ctx, gate: g, transport: t, digest: t.view.Digest(), caller: newCaller(g.id, g.times.patience)}
	c.dials, c.stopDials = context.WithCancel(ctx)
	c.awaits, c.stopAwaits = context.WithCancel(c.dials)
	c.watch.Go(func() {
		select {
		case <-t.failed:
			c.stopAwaits()
		case <-c.awaits.Done():
		}
		select {
		case <-time.After(farewell):
			c.stopDials()
		case <-c.dials.Done():
		}
	})
	return c
}

// connect begins to get the Links to a rank.
func (c *connector) connect(rank int) {
	v, streams := c.transport.view, c.transport.streams
	for i := range streams + 1 {
		p := Purpose{Job: v.Job, Epoch: v.Epoch, Digest: c.digest, Channel: Bulk, Stream: uint8(i), Streams: uint8(streams)}
		if i == streams {
			p.Channel, p.Stream = Control, 0
		}
		c.links.Go(func() {
			l, err := c.link(rank, p)
			if err != nil {
				c.once.Do(func() { c.first = blame(c.whole, v, rank, err) })
				c.stopAwaits()
				return
			}
			c.transport.attach(rank, l)
		})
	}
}

// blame says which rank is why there is no Link to a rank. ctx is that of Connect.
func blame(ctx context.Context, v collective.View, rank int, err error) *collective.RankError {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &collective.RankError{Rank: v.Self, Node: v.Name(v.Self), Epoch: v.Epoch, Phase: "cancelled", Err: context.Cause(ctx)}
	case exhausted(err):
		rank, err = v.Self, fmt.Errorf("it has too few descriptors for its connections, raise the limit (ulimit -n): %w", err)
	}
	return &collective.RankError{Rank: rank, Node: v.Name(rank), Epoch: v.Epoch, Phase: "connect", Err: err}
}

// wait waits for all Links, and returns the first failure.
func (c *connector) wait() *collective.RankError {
	c.links.Wait()
	c.stopDials()
	c.stopAwaits()
	c.watch.Wait()
	return c.first
}

// enter makes v the View whose Links are welcome, and drops those that are of
// older ones or do not belong to it.
func (g *Gate) enter(v collective.View, streams int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.Epoch >= g.view.Epoch || v.Job != g.view.Job {
		g.view, g.digest, g.streams, g.unlike = v, v.Digest(), streams, map[Purpose]error{}
	}
	for p, l := range g.parked {
		if p.Job != v.Job || p.Epoch < v.Epoch || p.Epoch == v.Epoch && g.belongs(l.peer, l.purpose) != nil {
			_ = l.Close()
			delete(g.parked, p)
		}
	}
}

// link is the Link to a rank for a purpose, dialled or awaited.
func (c *connector) link(rank int, p Purpose) (*Link, error) {
	g, v := c.gate, c.transport.view
	p.Rank = uint32(rank)
	m := v.Members[rank]
	if (rank < v.Self) == (p.Channel == Bulk) {
		p.Rank = uint32(v.Self)
		l, err := c.caller.dial(c.dials, m.Addrs, Peer{Name: m.Name, Nonce: m.Nonce}, p)
		if err == nil && p.Channel == Bulk && p.Stream == 0 && g.Log != nil {
			g.Log.Info("connected", "rank", rank, "name", m.Name, "addr", l.RemoteAddr().String())
		}
		return l, err
	}
	l, err := g.take(c.awaits, p)
	if err == nil && l.purpose.Streams != p.Streams {
		_ = l.Close()
		return nil, fmt.Errorf("%w: %w", ErrRefused, g.differ(m.Name, l.purpose.Streams, int(p.Streams)))
	}
	return l, err
}

// absent says why a Link has not come when ctx has ended.
func (g *Gate) absent(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded): // whatever the cause is called
		return context.Cause(ctx)
	case g.deaf != nil:
		return g.deaf
	}
	return fmt.Errorf("%w: %w", collective.ErrNotConnected, context.Cause(ctx))
}

// take waits for a Link that a peer dials.
func (g *Gate) take(ctx context.Context, p Purpose) (*Link, error) {
	for {
		g.mu.Lock()
		l, differs, changed, closed := g.parked[p.key()], g.unlike[p.key()], g.changed, g.closed
		delete(g.parked, p.key())
		g.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case differs != nil:
			return nil, fmt.Errorf("%w: %w", ErrRefused, differs)
		case closed:
			return nil, collective.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, g.absent(ctx)
		}
	}
}
