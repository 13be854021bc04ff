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
	benefit   = 50 * time.Millisecond  // of the doubt, before the end of a connection is believed: an ABORT that names the true culprit may be on its way
)

// Transport carries the messages of one View over Links. See
// [collective.Transport] and [collective.Poster] for what its methods promise.
type Transport struct {
	view  collective.View
	peers []peer // by rank; the own one has no Links

	streams int           // bulk Links of each peer
	silence time.Duration // without any sign of life is a lost peer
	whole   atomic.Bool   // all peers have connected
	posts   bool          // all bulk Links are lanes, so that Post and Flush are of use

	drive drive // of the peers' lanes
	waits *collective.Waits

	called publish.Word // the highest call this rank has begun; heartbeats tell it

	failed  chan struct{} // closed when cause is set
	mu      sync.Mutex
	cause   error       // what broke the transport; set once
	suspect *time.Timer // runs while a lost connection is not yet believed

	telling sync.Mutex // held while news of a failure are sent, so that Close does not cut them off
	closing sync.Once
	done    sync.WaitGroup
}

var (
	_ collective.Able   = (*Transport)(nil)
	_ collective.Poster = (*Transport)(nil)
)

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

func newTransport(v collective.View, streams int, silence time.Duration) *Transport {
	t := &Transport{view: v, peers: make([]peer, v.Size()), streams: streams, silence: silence, failed: make(chan struct{})}
	t.drive.equip(v)
	for r := range t.peers {
		t.peers[r].bulk = make([]*Link, streams)
	}
	if len(t.peers) > 1 {
		t.done.Go(t.beat)
	}
	return t
}

// attach gives a peer one of its Links. Heartbeats and the reading of control
// begin with that Link, however long other peers take to connect. It is called
// before the Transport is used, but for Abort.
func (t *Transport) attach(rank int, l *Link) {
	p := &t.peers[rank]
	p.write.Lock()
	if l.purpose.Channel == Bulk {
		p.bulk[l.purpose.Stream] = l
		p.write.Unlock()
		return
	}
	p.control = l
	p.write.Unlock()
	t.done.Go(func() { t.listen(rank, l) })
	var cause *collective.RankError
	if errors.As(t.broken(), &cause) { // the news went round before this Link was there
		_ = t.tell(rank, frameAbort, collective.PutAbort(cause, t.view.Self))
	}
}

// ready makes use of the bulk Links, once all are there.
func (t *Transport) ready() {
	t.posts = len(t.peers) > 1
	for r := range t.peers {
		if r == t.view.Self {
			continue
		}
		p := &t.peers[r]
		p.write.Lock()
		p.lanes = engage(r, p.bulk)
		p.write.Unlock()
		if p.lanes == nil {
			t.posts = false
			t.hire(r)
		}
	}
	t.whole.Store(true)
}

// Send is part of collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	if err := t.broken(); err != nil {
		return err
	}
	if t.peers[to].lanes != nil {
		defer t.alarm(ctx)()
		if err := t.Post(to, h, parts); err != nil {
			return err
		}
		return t.Flush(ctx)
	}
	t.begun(h)
	return t.carryOut(ctx, to, h, parts)
}

// Recv is part of collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	if err := t.broken(); err != nil {
		return err
	}
	t.begun(h)
	if t.peers[from].lanes != nil {
		defer t.alarm(ctx)()
		return t.driveIn(ctx, from, h, parts)
	}
	return t.carryIn(ctx, from, h, parts)
}

// Abilities is part of collective.Able. It is called when all peers have connected.
func (t *Transport) Abilities() collective.Abilities {
	can := collective.Abilities{Tell: t.noteIn, Behind: t.Behind, Streams: t.Streams, Failed: t.failed, Err: t.broken}
	if t.posts {
		can.Post = t
	}
	return can
}

// noteIn is Abilities.Tell.
func (t *Transport) noteIn(w *collective.Waits) (recv bool) {
	t.waits = w
	return false
}

// Behind returns the rank that has begun the fewest calls, if fewer than seq.
func (t *Transport) Behind(seq uint64) (rank int, ok bool) {
	least := seq
	for r := range t.peers {
		if r != t.view.Self && t.peers[r].called.Load() < least {
			least, rank, ok = t.peers[r].called.Load(), r, true
		}
	}
	return rank, ok
}

// Failed is closed when the transport is broken.
func (t *Transport) Failed() <-chan struct{} { return t.failed }

// Err is what broke the transport, nil while nothing has.
func (t *Transport) Err() error { return t.broken() }

// Left reports whether a rank has said goodbye.
func (t *Transport) Left(rank int) bool { return t.peers[rank].left.Load() }

// Begun counts a call that this rank makes by other ways than Send and Recv, so
// that its peers learn of it.
func (t *Transport) Begun(h *collective.Header) { t.begun(h) }

// Abort is part of collective.Transport.
func (t *Transport) Abort(cause *collective.RankError) {
	t.telling.Lock()
	defer t.telling.Unlock()
	if !t.fail(cause) {
		return
	}
	news := collective.PutAbort(cause, t.view.Self)
	for r := range t.peers {
		if r != t.view.Self && !t.peers[r].left.Load() {
			_ = t.tell(r, frameAbort, news)
		}
	}
	t.unblock()
}

// Close is part of collective.Transport.
func (t *Transport) Close() error {
	t.closing.Do(func() {
		t.telling.Lock()
		if t.fail(collective.ErrClosed) {
			for r := range t.peers {
				if r != t.view.Self {
					_ = t.tell(r, frameBye, nil)
				}
			}
		}
		t.telling.Unlock()
		t.mu.Lock()
		if t.suspect != nil {
			t.suspect.Stop()
		}
		t.mu.Unlock()
		t.unblock()
		t.free()
		t.hangUp()
		t.done.Wait()
	})
	return nil
}

// hangUp closes all Links.
func (t *Transport) hangUp() {
	for r := range t.peers {
		p := &t.peers[r]
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
func (t *Transport) begun(h *collective.Header) {
	if h.OfAll() && t.called.Load() < h.Seq {
		t.called.Publish(h.Seq)
	}
}

func (t *Transport) broken() error {
	select {
	case <-t.failed:
		return t.cause
	default:
		return nil
	}
}

// fail sets what broke the transport; false if something else has before.
func (t *Transport) fail(cause error) bool {
	if e, ok := cause.(*collective.RankError); ok && e.Node == "" { // news has ranks only
		named := *e
		named.Node, named.Epoch = t.view.Name(e.Rank), t.view.Epoch
		cause = &named
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return false
	}
	t.cause = cause
	close(t.failed)
	return true
}

// alarm breaks the transport when ctx ends, until stop.
func (t *Transport) alarm(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() {
		t.Abort(&collective.RankError{Rank: t.view.Self, Phase: "cancelled", Err: context.Cause(ctx)})
	})
}

// unblock ends the calls in progress on bulk Links.
func (t *Transport) unblock() {
	for r := range t.peers {
		p := &t.peers[r]
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
func (t *Transport) doubt(rank int, phase string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil || t.suspect != nil {
		return
	}
	cause := &collective.RankError{Rank: rank, Phase: phase, Err: err}
	believe := func() {
		if t.peers[rank].left.Load() {
			cause.Err = collective.ErrLeft // its goodbye was on the other Link
		}
		t.Abort(cause)
	}
	// In two spans: where this very process stood still, the first is over
	// before anything that came meanwhile was read.
	t.suspect = time.AfterFunc(benefit/2, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.cause == nil {
			t.suspect = time.AfterFunc(benefit/2, believe)
		}
	})
}

// explain turns the failure of a bulk Link into what broke the transport.
func (t *Transport) explain(ctx context.Context, rank int, phase string, err error) error {
	var differ *collective.MismatchError
	switch {
	case errors.As(err, &differ):
		t.Abort(&collective.RankError{Rank: rank, Phase: "mismatch", Err: err})
		return err
	case ctx.Err() != nil:
		t.Abort(&collective.RankError{Rank: t.view.Self, Phase: "cancelled", Err: context.Cause(ctx)})
	case t.broken() != nil:
	case t.peers[rank].left.Load():
		t.Abort(&collective.RankError{Rank: rank, Phase: phase, Err: collective.ErrLeft})
	default:
		t.doubt(rank, phase, fmt.Errorf("%w (%v)", collective.ErrLost, err))
	}
	<-t.failed
	return t.cause
}
