package tcp

import (
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

	id Identity

	mu      sync.Mutex
	epoch   uint64 // Links of older Views are refused
	job     uint64 // 0 until the first Connect
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
	case len(g.parked) >= maxParked:
		return errors.New("too many connections wait")
	}
	return nil
}

// Accept keeps a Link until Connect asks for it.
func (g *Gate) Accept(l *Link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.parked[l.purpose]; old != nil {
		_ = old.Close() // dialled again, so the first try has failed there
	}
	if g.closed || l.purpose.Epoch < g.epoch {
		_ = l.Close()
		return
	}
	g.parked[l.purpose] = l
	g.wake()
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
	g.enter(v)
	t := newTransport(v)
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
		for _, c := range []Channel{Bulk, Control} {
			if r == v.Self {
				continue
			}
			all.Go(func() {
				l, err := g.link(ctx, await, v, r, c)
				if err != nil {
					once.Do(func() {
						first = &collective.RankError{Rank: r, Node: v.Name(r), Epoch: v.Epoch, Phase: "connect", Err: err}
					})
					stop() // the other dials go on: who is reached can be told
					return
				}
				t.attach(r, c, l)
			})
		}
	}
	all.Wait()
	stop()
	watch.Wait()
	if first != nil {
		t.Abort(first)
	}
	if err := t.broken(); err != nil { // another rank's word comes before what followed from it
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// enter makes v the View whose Links are welcome, and drops those of older
// ones.
func (g *Gate) enter(v collective.View) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.job, g.epoch = v.Job, max(g.epoch, v.Epoch)
	for p, l := range g.parked {
		if p.Job != v.Job || p.Epoch < v.Epoch {
			_ = l.Close()
			delete(g.parked, p)
		}
	}
}

// link is the Link of one channel to a rank: dialled until ctx ends, or
// awaited until await does.
func (g *Gate) link(ctx, await context.Context, v collective.View, rank int, c Channel) (*Link, error) {
	p := Purpose{Job: v.Job, Epoch: v.Epoch, Digest: v.Digest(), Rank: uint32(rank), Channel: c}
	m := v.Members[rank]
	if (rank < v.Self) == (c == Bulk) {
		p.Rank = uint32(v.Self)
		l, err := dialAny(ctx, m.Addrs, g.id, Peer{Name: m.Name, Nonce: m.Nonce}, p)
		if err == nil && c == Bulk && g.Log != nil {
			g.Log.Info("connected", "rank", rank, "name", m.Name, "addr", l.RemoteAddr().String())
		}
		return l, err
	}
	l, err := g.take(await, p)
	if err == nil && (l.peer.Name != m.Name || l.peer.Nonce != m.Nonce) {
		_ = l.Close()
		return nil, fmt.Errorf("%s has connected as rank %d", l.peer.Name, rank)
	}
	return l, err
}

// take waits for a Link that a peer dials.
func (g *Gate) take(ctx context.Context, p Purpose) (*Link, error) {
	for {
		g.mu.Lock()
		l, changed, closed := g.parked[p], g.changed, g.closed
		delete(g.parked, p)
		g.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
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
