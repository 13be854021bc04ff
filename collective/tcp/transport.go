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
	monitor

	streams int  // bulk Links to each peer
	posts   bool // Post and Flush work: all bulk Links have sockets

	poller    poller    // of the sockets
	listening listening // to the Links of peers without sockets
	waits     *collective.Waits

	closing sync.Once
}

var (
	_ collective.Able   = (*Transport)(nil)
	_ collective.Poster = (*Transport)(nil)
)

func newTransport(v collective.View, streams int, silence time.Duration) *Transport {
	t := &Transport{streams: streams, monitor: monitor{view: v, peers: make([]peer, v.Size()), started: time.Now(), silence: silence, heartbeat: heartbeatOf(v.Size(), silence), failed: make(chan struct{})}}
	t.poller.prepare(v, streams)
	t.listening = listening{reading: make([]bool, v.Size()), arrived: make(chan int, v.Size())}
	for r := range t.peers {
		t.peers[r].bulk = make([]*Link, streams)
	}
	if len(t.peers) > 1 {
		t.done.Go(t.sendHeartbeats)
	}
	return t
}

// start begins to use the bulk Links. All Links are attached.
func (t *Transport) start() {
	t.posts = len(t.peers) > 1
	for r := range t.peers {
		if r == t.view.Self {
			continue
		}
		p := &t.peers[r]
		p.write.Lock()
		p.sockets = t.poller.adopt(r, p.bulk)
		p.write.Unlock()
		if p.sockets == nil {
			t.posts = false
			t.startWorkers(r)
		}
	}
	t.connected.Store(true)
}

// Send is part of collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	if err := t.broken(); err != nil {
		return err
	}
	if t.peers[to].sockets != nil {
		defer collective.AbortOnCancel(ctx, t, t.view.Self)()
		if err := t.Post(to, h, parts); err != nil {
			return err
		}
		return t.Flush(ctx)
	}
	t.begun(h)
	return t.sendOverLinks(ctx, to, h, parts)
}

// Recv is part of collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	if err := t.broken(); err != nil {
		return err
	}
	t.begun(h)
	if t.peers[from].sockets != nil {
		defer collective.AbortOnCancel(ctx, t, t.view.Self)()
		return t.recvFromSockets(ctx, from, h, parts)
	}
	return t.recvOverLinks(ctx, from, h, parts)
}

// Abilities is part of collective.Able. Call it once all peers have connected.
func (t *Transport) Abilities() collective.Abilities {
	can := collective.Abilities{NoteWaits: t.noteWaits, Next: t.next(), Behind: t.Behind, Streams: t.Streams, Failed: t.failed, Err: t.broken}
	if t.posts {
		can.Post = t
	}
	return can
}

// noteWaits is Abilities.NoteWaits.
func (t *Transport) noteWaits(w *collective.Waits) (recv bool) {
	t.waits = w
	return false
}

// Close is part of collective.Transport.
func (t *Transport) Close() error {
	t.closing.Do(func() {
		t.reporting.Lock()
		if t.fail(collective.ErrClosed) {
			for r := range t.peers {
				if r != t.view.Self {
					_ = t.sendFrame(r, frameGoodbye, nil)
				}
			}
		}
		t.reporting.Unlock()
		t.mu.Lock()
		if t.grace != nil {
			t.grace.Stop()
		}
		t.mu.Unlock()
		t.interruptCalls()
		t.closeSockets()
		t.closeLinks()
		t.done.Wait()
	})
	return nil
}
