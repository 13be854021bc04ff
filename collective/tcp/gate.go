package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// maxParked is how many Links a Gate keeps for Views that this process does
// not know yet.
const maxParked = 4096

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

	id Identity

	mu      sync.Mutex
	epoch   uint64            // Links of older Views are refused
	job     uint64            // 0 until the first Connect
	streams int               // of the View of epoch, once that is known
	unlike  map[Purpose]error // Links of it that were refused, because their dialler has other streams
	parked  map[Purpose]*Link
	changed chan struct{} // closed and made anew when parked changes
	closed  bool
}

// NewGate makes a Gate for a process. Give it to Listen as the handler.
func NewGate(id Identity) *Gate {
	return &Gate{id: id, parked: map[Purpose]*Link{}, changed: make(chan struct{})}
}

// Allow refuses Links of other jobs and of Views that are over.
func (g *Gate) Allow(peer Identity, p Purpose) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return fmt.Errorf("%s is leaving", g.id.Name)
	case g.job != 0 && p.Job != g.job:
		return fmt.Errorf("%s is in job %016x, not %016x", g.id.Name, g.job, p.Job)
	case p.Epoch < g.epoch:
		return fmt.Errorf("epoch %d is over, %s is in epoch %d", p.Epoch, g.id.Name, g.epoch)
	case g.job != 0 && p.Epoch == g.epoch && int(p.Streams) != g.streams:
		err := g.differ(peer.Name, p.Streams, g.streams)
		if len(g.unlike) < maxParked {
			g.unlike[p.key()] = err // who awaits it waits in vain
			g.wake()
		}
		return err
	case len(g.parked) >= maxParked:
		return errors.New("too many connections wait")
	}
	return nil
}

// differ says that two ranks do not agree about the number of connections.
func (g *Gate) differ(name string, theirs uint8, mine int) error {
	return fmt.Errorf("%s spreads messages over %d connections, %s over %d: give all ranks the same --streams", name, theirs, g.id.Name, mine)
}

// Accept keeps a Link until Connect asks for it.
func (g *Gate) Accept(l *Link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := l.purpose.key()
	if old := g.parked[key]; old != nil {
		_ = old.Close() // dialled again, so the first try has failed there
	}
	if g.closed || l.purpose.Epoch < g.epoch {
		_ = l.Close()
		return
	}
	g.parked[key] = l
	g.wake()
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
// that the other is gone. The error is a *collective.RankError that names who
// could not be reached; all ranks that could are told.
func (g *Gate) Connect(ctx context.Context, v collective.View) (*Transport, error) {
	if g.Streams < 0 || g.Streams > MaxStreams {
		return nil, fmt.Errorf("tcp: %d connections between two ranks: it can be 1 to %d, or 0 for the best", g.Streams, MaxStreams)
	}
	streams := cmp.Or(g.Streams, AutoStreams)
	g.enter(v, streams)
	t := newTransport(v, streams)
	await, stop := context.WithCancel(ctx) // for others to dial; ends with the first failure
	defer stop()
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-t.failed:
			stop()
		case <-await.Done():
		}
	})
	var all sync.WaitGroup
	var once sync.Once
	var first *collective.RankError
	for r := range v.Members {
		for i := range streams + 1 {
			if r == v.Self {
				continue
			}
			p := Purpose{Job: v.Job, Epoch: v.Epoch, Digest: v.Digest(), Channel: Bulk, Stream: uint8(i), Streams: uint8(streams)}
			if i == streams {
				p.Channel, p.Stream = Control, 0
			}
			all.Go(func() {
				l, err := g.link(ctx, await, v, r, p)
				if err != nil {
					once.Do(func() {
						first = &collective.RankError{Rank: r, Node: v.Name(r), Epoch: v.Epoch, Phase: "connect", Err: err}
					})
					stop() // the other dials go on: who is reached can be told
					return
				}
				t.attach(r, l)
			})
		}
	}
	all.Wait()
	stop()
	watch.Wait()
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

// enter makes v the View whose Links are welcome, and drops those of older
// ones.
func (g *Gate) enter(v collective.View, streams int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.Epoch >= g.epoch {
		g.epoch, g.streams, g.unlike = v.Epoch, streams, map[Purpose]error{}
	}
	g.job = v.Job
	for p, l := range g.parked {
		if p.Job != v.Job || p.Epoch < v.Epoch {
			_ = l.Close()
			delete(g.parked, p)
		}
	}
}

// link is the Link to a rank for a purpose: dialled until ctx ends, or awaited
// until await does.
func (g *Gate) link(ctx, await context.Context, v collective.View, rank int, p Purpose) (*Link, error) {
	p.Rank = uint32(rank)
	m := v.Members[rank]
	if (rank < v.Self) == (p.Channel == Bulk) {
		p.Rank = uint32(v.Self)
		l, err := dialAny(ctx, m.Addrs, g.id, Peer{Name: m.Name, Nonce: m.Nonce}, p)
		if err == nil && p.Channel == Bulk && p.Stream == 0 && g.Log != nil {
			g.Log.Info("connected", "rank", rank, "name", m.Name, "addr", l.RemoteAddr().String())
		}
		return l, err
	}
	l, err := g.take(await, p)
	if err == nil && (l.peer.Name != m.Name || l.peer.Nonce != m.Nonce) {
		_ = l.Close()
		return nil, fmt.Errorf("%s has connected as rank %d", l.peer.Name, rank)
	}
	if err == nil && l.purpose.Streams != p.Streams {
		_ = l.Close()
		return nil, fmt.Errorf("%w: %w", ErrRefused, g.differ(m.Name, l.purpose.Streams, int(p.Streams)))
	}
	return l, err
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
			return nil, fmt.Errorf("it has not connected: %w", context.Cause(ctx))
		}
	}
}

// How the addresses of a peer are tried: each a little after the one before, or
// as soon as that has failed. One that connects gets a while to shake hands.
const (
	headStart = 100 * time.Millisecond
	greetTime = 2 * time.Second
)

// dialAny connects to a peer under any of its addresses, best first. It tries
// again while they are only slow to answer; a refusal is final, by the peer or by
// the kernel, because a member of a View listens for as long as it lives.
func dialAny(ctx context.Context, addrs []netip.AddrPort, id Identity, want Peer, p Purpose) (*Link, error) {
	if len(addrs) == 0 {
		return nil, errors.New("it has told no address")
	}
	for {
		l, errs := dialOnce(ctx, addrs, id, want, p)
		if l != nil {
			return l, nil
		}
		definite := slices.ContainsFunc(errs, func(err error) bool {
			return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded)
		})
		if definite || ctx.Err() != nil {
			return nil, errors.Join(errs...)
		}
	}
}

// A call is a connection in the making, or what became of it.
type call struct {
	addr netip.AddrPort
	conn net.Conn
	err  error
}

// dialOnce tries every address once. Connections are made side by side, but one
// hello is said at a time: to the accepting side a later one says that the
// earlier has failed.
func dialOnce(ctx context.Context, addrs []netip.AddrPort, id Identity, want Peer, p Purpose) (*Link, []error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	calls := make(chan call, len(addrs))
	begun, ended := 0, 0
	defer func() {
		cancel()
		for ; ended < begun; ended++ {
			if c := <-calls; c.conn != nil {
				_ = c.conn.Close()
			}
		}
	}()
	begin := func() {
		addr := addrs[begun]
		begun++
		go func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
			if err != nil {
				err = fmt.Errorf("tcp: connecting to %s at %s: %w", want.Name, addr, err)
			}
			calls <- call{addr, conn, err}
		}()
	}
	var errs []error
	for ended < len(addrs) {
		if begun == ended {
			begin()
		}
		var next <-chan time.Time
		if begun < len(addrs) {
			next = time.After(headStart)
		}
		select {
		case <-next:
			begin()
		case c := <-calls:
			ended++
			l, err := c.greet(ctx, len(addrs)-ended, id, want, p)
			if err == nil {
				return l, nil
			}
			errs = append(errs, err)
		}
	}
	return nil, errs
}

// greet shakes hands over a connection that was made. Where others are left to
// try it does not wait for the whole of ctx.
func (c *call) greet(ctx context.Context, others int, id Identity, want Peer, p Purpose) (*Link, error) {
	if c.err != nil {
		return nil, c.err
	}
	if others > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, greetTime)
		defer cancel()
	}
	l, err := meet(ctx, c.conn, id, want, p)
	if err != nil {
		_ = c.conn.Close()
		return nil, fmt.Errorf("tcp: greeting %s at %s: %w", want.Name, c.addr, err)
	}
	return l, nil
}
