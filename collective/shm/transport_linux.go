package shm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// mostPosted frames may wait in a lane, then Post waits.
const mostPosted = 4

// Transport carries the messages of one View: between ranks of this host
// through shared memory, to others by the transport under it. See
// [collective.Transport], [collective.Poster] and [collective.Reducer] for what
// its methods promise.
type Transport struct {
	view  collective.View
	under Under
	mem   *region

	self  int   // index among the ranks of this host
	ranks []int // of this host, by index
	index []int // of a rank, -1 on another host

	rounds, yields int // see patience

	using   sync.RWMutex // read-held by calls in progress: the memory stays mapped
	closing sync.Once
	done    sync.WaitGroup

	in    []inlane // by index, used by who receives
	now   *collective.Header
	calls atomic.Uint64 // AllReduces begun

	moving sync.Mutex // guards what follows
	out    []outlane  // by index
	full   []int      // whose lanes have a queue
	spare  []*frame
	queued atomic.Int32 // len(full), for who does not want to lock

	reduction
}

func newTransport(v collective.View, under Under, mem *region, ranks []int) *Transport {
	t := &Transport{view: v, under: under, mem: mem, ranks: ranks, self: slices.Index(ranks, v.Self), index: make([]int, v.Size())}
	for r := range t.index {
		t.index[r] = slices.Index(ranks, r)
	}
	t.rounds, t.yields = patience(len(ranks))
	t.in, t.out = make([]inlane, len(ranks)), make([]outlane, len(ranks))
	for i := range ranks {
		t.in[i].lane, t.out[i].lane = newLane(mem, i, t.self), newLane(mem, t.self, i)
	}
	t.equip()
	t.done.Go(t.attend)
	return t
}

// attend wakes who sleeps when the transport breaks.
func (t *Transport) attend() {
	<-t.under.Failed()
	t.using.RLock()
	defer t.using.RUnlock()
	if t.mem != nil {
		t.ring(t.self)
	}
}

// begin keeps the memory mapped until end, unless the transport is broken.
func (t *Transport) begin() error {
	t.using.RLock()
	if err := t.under.Err(); err != nil {
		t.using.RUnlock()
		return err
	}
	return nil
}

func (t *Transport) end() { t.using.RUnlock() }

// failure is what broke the transport, which is certain or imminent.
func (t *Transport) failure() error {
	<-t.under.Failed()
	return t.under.Err()
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

// Send is part of collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	if t.index[to] < 0 {
		return t.under.Send(ctx, to, h, parts)
	}
	defer t.alarm(ctx)()
	if err := t.Post(to, h, parts); err != nil {
		return err
	}
	return t.Flush(ctx)
}

// Recv is part of collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	peer := t.index[from]
	if peer < 0 {
		return t.under.Recv(ctx, from, h, parts)
	}
	if err := t.begin(); err != nil {
		return err
	}
	defer t.end()
	defer t.alarm(ctx)()
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
	if err := t.wait(l.head, l.taken+collective.HeaderSize, peer, aMessage); err != nil {
		return err
	}
	var got collective.Header
	got.Get(l.at(l.taken, collective.HeaderSize))
	if err := h.Match(&got, t.view.Self, from); err != nil {
		return t.differ(peer, err)
	}
	l.taken += collective.HeaderSize
	if !t.Posts() {
		t.settle()
	}
	return t.read(peer, parts)
}

// settle puts whatever another goroutine has sent before this one's message
// came before it in the order of Go's memory, which knows nothing of what goes
// through other processes: parts may be memory that the peer has answered to.
func (t *Transport) settle() {
	t.moving.Lock()
	defer t.moving.Unlock()
	t.pushAll()
}

// fail breaks the transport for a mistake of this rank.
func (t *Transport) fail(err error) error {
	t.under.Abort(&collective.RankError{Rank: t.view.Self, Phase: "failed", Err: err})
	return err
}

// Posts reports whether Post and Flush are of use: all ranks are on one host.
func (t *Transport) Posts() bool { return len(t.ranks) == t.view.Size() }

// Post is Send to a rank of this host that does not wait: what the ring has no
// room for leaves while Recv and Flush run. It keeps neither h nor the list of
// parts, but the bytes of the parts until Flush has returned.
func (t *Transport) Post(to int, h *collective.Header, parts [][]byte) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.end()
	t.under.Begun(h)
	peer := t.index[to]
	t.moving.Lock()
	f := new(frame)
	if n := len(t.spare); n > 0 {
		f, t.spare = t.spare[n-1], t.spare[:n-1]
	}
	f.begin(h, parts)
	l := &t.out[peer]
	if l.queue = append(l.queue, f); len(l.queue) == 1 {
		t.full = append(t.full, peer)
	}
	t.pushAll()
	t.moving.Unlock()
	return t.drain(mostPosted)
}

// Flush waits until all that was posted is in the rings.
func (t *Transport) Flush(context.Context) error {
	if t.queued.Load() == 0 { // the frames of other goroutines are not waited for
		return t.under.Err()
	}
	if err := t.begin(); err != nil {
		return err
	}
	defer t.end()
	return t.drain(0)
}

// drain waits until no lane has more than so many frames that have not left.
func (t *Transport) drain(most int) error {
	for t.queued.Load() != 0 {
		t.moving.Lock()
		t.pushAll()
		longest, first := 0, -1
		for _, peer := range t.full {
			if n := len(t.out[peer].queue); n > longest {
				longest, first = n, peer
			}
		}
		if longest <= most {
			t.moving.Unlock()
			return nil
		}
		l := &t.out[first]
		tail := atomic.LoadUint64(l.tail)
		stuck := int(l.given-tail) > len(l.data)-collective.HeaderSize
		t.moving.Unlock()
		if !stuck {
			continue
		}
		if err := t.wait(l.tail, tail+1, first, room); err != nil {
			return err
		}
	}
	return nil
}

// push sends what the rings have room for, unless somebody else does so just
// now. It reports whether that was anything.
func (t *Transport) push() bool {
	if !t.moving.TryLock() {
		return false
	}
	defer t.moving.Unlock()
	return t.pushAll()
}

func (t *Transport) pushAll() (moved bool) {
	still := t.full[:0]
	for _, peer := range t.full {
		l := &t.out[peer]
		for some, done := true, false; some && len(l.queue) > 0; {
			if some, done = l.write(); some {
				moved = true
				t.rouse(peer)
			}
			if done {
				t.spare = append(t.spare, l.queue[0])
				l.queue = append(l.queue[:0], l.queue[1:]...)
			}
		}
		if len(l.queue) > 0 {
			still = append(still, peer)
		}
	}
	t.full = still
	t.queued.Store(int32(len(still)))
	return moved
}

// Behind is that of the transport under this one.
func (t *Transport) Behind(seq uint64) (rank int, ok bool) { return t.under.Behind(seq) }

// Abort is part of collective.Transport.
func (t *Transport) Abort(cause *collective.RankError) { t.under.Abort(cause) }

// Close is part of collective.Transport.
func (t *Transport) Close() error {
	var err error
	t.closing.Do(func() {
		err = t.under.Close()
		t.done.Wait() // calls in progress were woken
		t.using.Lock()
		defer t.using.Unlock()
		if e := t.mem.close(); err == nil {
			err = e
		}
		t.mem = nil
	})
	return err
}
