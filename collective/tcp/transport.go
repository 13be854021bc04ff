package tcp

import (
	"context"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// Transport carries the messages of one View over Links. See
// [collective.Transport] and [collective.Poster] for what its methods promise.
type Transport struct {
	controlPlane

	streams int  // bulk Links of each peer
	posts   bool // all bulk Links are lanes, so that Post and Flush are of use

	drive drive // of the peers' lanes
	waits *collective.Waits

	closing sync.Once
}

var (
	_ collective.Able   = (*Transport)(nil)
	_ collective.Poster = (*Transport)(nil)
)

func newTransport(v collective.View, streams int, silence time.Duration) *Transport {
	t := &Transport{streams: streams, controlPlane: controlPlane{view: v, peers: make([]peer, v.Size()), silence: silence, failed: make(chan struct{})}}
	t.drive.equip(v, streams)
	for r := range t.peers {
		t.peers[r].bulk = make([]*Link, streams)
	}
	if len(t.peers) > 1 {
		t.done.Go(t.beat)
	}
	return t
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
		p.lanes = t.drive.engage(r, p.bulk)
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
		defer collective.AbortOnCancel(ctx, t, t.view.Self)()
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
		defer collective.AbortOnCancel(ctx, t, t.view.Self)()
		return t.driveIn(ctx, from, h, parts)
	}
	return t.carryIn(ctx, from, h, parts)
}

// Abilities is part of collective.Able. It is called when all peers have connected.
func (t *Transport) Abilities() collective.Abilities {
	can := collective.Abilities{NoteWaits: t.noteIn, Behind: t.Behind, Streams: t.Streams, Failed: t.failed, Err: t.broken}
	if t.posts {
		can.Post = t
	}
	return can
}

// noteIn is Abilities.NoteWaits.
func (t *Transport) noteIn(w *collective.Waits) (recv bool) {
	t.waits = w
	return false
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
