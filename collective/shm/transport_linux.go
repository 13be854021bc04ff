package shm

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/sendqueue"
)

// Transport carries the messages of one View: through shared memory between ranks
// of this host, and over the transport below to other hosts. See
// [collective.Transport], [collective.Poster] and [collective.Reducer] for what
// its methods promise.
type Transport struct {
	waiter
	reduction
	peerMemory

	closing sync.Once
	done    sync.WaitGroup
	garbage runtime.Cleanup
}

// hostRanks are the ranks of this host, which share memory, and the transport
// below, which reaches all ranks.
type hostRanks struct {
	view  collective.View
	under Under
	mem   *region

	self    int   // this rank's index among the ranks of this host
	ranks   []int // the ranks of this host, by index
	index   []int // the index of each rank; -1 on another host
	oneHost bool  // all ranks of the View are on this host
}

// outgoing holds the messages to ranks of this host that are not yet in the rings.
type outgoing struct {
	sending sync.Mutex                // guards what follows
	out     []outRing                 // by index
	queues  sendqueue.Queues[message] // for each outRing
}

var (
	_ collective.Able    = (*Transport)(nil)
	_ collective.Poster  = (*Transport)(nil)
	_ collective.Reducer = (*Transport)(nil)
)

// newTransport returns a Transport over the memory that was set up. reads says
// that the ranks can read each other's memory.
func newTransport(s *setup, mem *region, reads bool) *Transport {
	v, ranks := s.view, s.ranks
	t := new(Transport)
	t.hostRanks = hostRanks{view: v, under: s.under, mem: mem, ranks: ranks, self: slices.Index(ranks, v.Self), index: make([]int, v.Size()), oneHost: len(ranks) == v.Size()}
	t.peerMemory = peerMemory{arenas: s.options.Arenas, server: s.arenaServer, probe: s.probe, reads: reads, mapped: &mapped{region: mem, windows: map[window][]byte{}}}
	for r := range t.index {
		t.index[r] = slices.Index(ranks, r)
	}
	t.in, t.out = make([]inRing, len(ranks)), make([]outRing, len(ranks))
	t.queues.Init(len(ranks))
	for i := range ranks {
		if i != t.self {
			t.in[i].ring, t.out[i].ring = newRing(mem, i, t.self), newRing(mem, t.self, i)
		}
	}
	t.equip()
	t.adopt(calibration.Default(len(ranks)))
	t.named = tellsCore()
	t.shared = t.named && t.rounds == 0
	t.garbage = runtime.AddCleanup(t, (*mapped).close, t.mapped)
	t.done.Go(t.wakeOnFailure)
	if t.far.next = collective.AbilitiesOf(t.under).Next; !t.oneHost && t.far.next != nil {
		t.far.ask = make(chan []int, 1)
		t.done.Go(func() { t.far.run(t.under.Failed(), func() { t.ringDoorbell(t.self) }) })
	}
	return t
}

// wakeOnFailure wakes this rank's sleepers when the transport breaks. Err returns
// the cause before Failed is closed. So a sleeper either sees the cause before it
// sleeps, or has read its doorbell before this ring.
func (t *Transport) wakeOnFailure() {
	<-t.under.Failed()
	t.ringDoorbell(t.self)
	runtime.KeepAlive(t)
}

// Abilities is part of collective.Able. From the transport below, it keeps the
// reports of failures and of late ranks. If all ranks share memory, no
// connection carries messages, so there are no streams.
func (t *Transport) Abilities() collective.Abilities {
	can := collective.Abilities{NoteWaits: t.tell, Behind: t.under.Behind, Failed: t.under.Failed(), Err: t.under.Err, Free: t.free}
	if t.oneHost {
		can.Post, can.Reduce, can.Show, can.Lend = t, t, t.show, t.lending.lend
	} else {
		can.Streams = t.under.Streams
	}
	if t.oneHost || t.far.next != nil {
		can.Next = t.next
	}
	return can
}

// failure waits until the transport has broken, and returns the cause. The caller
// knows that it breaks.
func (h *hostRanks) failure() error {
	<-h.under.Failed()
	return h.under.Err()
}

// Send is part of collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	if t.index[to] < 0 {
		return t.under.Send(ctx, to, h, parts)
	}
	defer collective.AbortOnCancel(ctx, t, t.view.Self)()
	if err := t.Post(to, h, parts); err != nil {
		return err
	}
	return t.Flush(ctx)
}

// Recv is part of collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	peer := t.index[from]
	if peer < 0 {
		began := t.waits.Begin(from, collective.AsExpected)
		err := t.under.Recv(ctx, from, h, parts)
		t.waits.End(from, collective.AsExpected, began)
		return err
	}
	if err := t.under.Err(); err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	defer collective.AbortOnCancel(ctx, t, t.view.Self)()
	if t.unmatched {
		if err := t.rooted.matchLast(); err != nil {
			return err
		}
	}
	t.under.Begun(h)
	t.now = h
	room := 0
	for _, p := range parts {
		room += len(p)
	}
	if room != int(h.Len) {
		return t.fail(fmt.Errorf("shm: %d bytes of room for a payload of %d", room, h.Len))
	}
	l := &t.in[peer]
	if err := t.wait(l.head, l.consumed+collective.HeaderSize, peer, aMessage); err != nil {
		return err
	}
	var got collective.Header
	got.Get(l.at(l.consumed, collective.HeaderSize))
	if err := h.Match(&got, t.view.Self, from); err != nil {
		return t.differ(peer, err)
	}
	l.consumed += collective.HeaderSize
	if !t.oneHost {
		t.syncWithSenders()
	}
	return t.read(peer, parts)
}

// syncWithSenders takes the lock, so that earlier sends by other goroutines happen
// before this goroutine writes to parts. The message that it receives may be the
// answer to such a send, and parts may be the memory that was sent. The Go memory
// model does not know that the two are ordered, because the order comes from another
// process.
func (w *waiter) syncWithSenders() {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.sendPosted()
}

// fail breaks the transport because of a mistake of this rank.
func (h *hostRanks) fail(err error) error {
	h.under.Abort(&collective.RankError{Rank: h.view.Self, Phase: "failed", Err: err})
	return err
}

// Post is part of collective.Poster, but only for ranks of this host. What does
// not fit into the ring is sent during Recv and Flush.
func (t *Transport) Post(to int, h *collective.Header, parts [][]byte) error {
	if err := t.under.Err(); err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	t.under.Begun(h)
	peer := t.index[to]
	t.sending.Lock()
	m := t.queues.Message()
	m.fill(h, parts)
	t.queues.Add(peer, m)
	t.sendPosted()
	t.sending.Unlock()
	return t.drain(sendqueue.MaxPosted)
}

// Flush is part of collective.Poster. It returns when everything posted is in
// the rings.
func (t *Transport) Flush(context.Context) error {
	if !t.queues.Unsent() { // what another goroutine is posting just now is not waited for
		return t.under.Err()
	}
	if err := t.under.Err(); err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	return t.drain(0)
}

// drain waits until no rank has more than the given number of unsent messages.
func (t *Transport) drain(most int) error {
	for t.queues.Unsent() {
		t.sending.Lock()
		t.sendPosted()
		peer, messages := t.queues.Longest()
		if messages <= most {
			t.sending.Unlock()
			return nil
		}
		l := &t.out[peer]
		tail := atomic.LoadUint64(l.tail)
		full := int(l.produced-tail) > len(l.data)-collective.HeaderSize
		t.sending.Unlock()
		if !full {
			continue
		}
		if err := t.wait(l.tail, tail+1, peer, room); err != nil {
			return err
		}
	}
	return nil
}

// push sends what the rings have room for, unless another goroutine holds the lock.
// It reports whether it moved anything.
func (w *waiter) push() bool {
	if !w.sending.TryLock() {
		return false
	}
	defer w.sending.Unlock()
	return w.sendPosted()
}

// sendPosted is push for callers that hold the lock.
func (w *waiter) sendPosted() (moved bool) {
	moved, _, _ = w.queues.Send(w.write)
	return moved
}

// write copies as much of a message into the ring to a peer as fits, and wakes
// the peer. It never fails.
func (w *waiter) write(peer int, m *message) (moved, done bool, err error) {
	moved, done = w.out[peer].write(m)
	if moved {
		w.wakePeer(peer)
	}
	return moved, done, nil
}

// tell is Abilities.NoteWaits.
func (t *Transport) tell(w *collective.Waits) (recv bool) {
	t.waits = w
	return true
}

// Abort is part of collective.Transport.
func (t *Transport) Abort(cause *collective.RankError) { t.under.Abort(cause) }

// free is Abilities.Free. It unmaps the memory. Close cannot do so, because
// counting the calls in progress would add a tenth to the time of a small call.
func (t *Transport) free() {
	t.garbage.Stop()
	t.mapped.close()
}

// Close is part of collective.Transport.
func (t *Transport) Close() error {
	var err error
	t.closing.Do(func() {
		err = t.under.Close()
		t.server.close()
		t.done.Wait()
	})
	return err
}
