package tcp

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/sendqueue"
)

// A poller sends and receives on the sockets of all peers, in the goroutine that calls
// the Transport. It polls them and, if nothing moves for a while, sleeps in poll(2). It
// alternates between sending and receiving, so neither can block the other. This saves
// two goroutine switches per message, which is most of the cost of a small one. Links
// under TLS have no sockets and use goroutines instead.
type poller struct {
	using sync.RWMutex // read-locked by calls in progress: no descriptor is closed

	sending sync.Mutex                 // guards queues
	queues  sendqueue.Queues[outgoing] // one for each socket
	sockets []*socket                  // by queue: the streams of rank 0, of rank 1, ...; nil under TLS

	spins   spinLimit
	crowded bool // there are more ranks on this host than cores

	recvPoll, sendPoll []unix.PollFd // reused by waitForEvent

	nextPoll []unix.PollFd // reused by nextFromSockets
	ended    int           // an eventfd that the end of a context signals; -1 before the first use
}

const (
	wakeBytes = 128 << 10 // a sleeping receiver wakes when this many bytes have arrived, or the rest of the message
	// sleepMost is the maximum length of a sleep, in ms. Whatever breaks the transport
	// wakes sleepers, so the limit only matters if there is a bug.
	sleepMost = 1000

	// After this many polls, other goroutines of this process may run. One of them, or the
	// garbage collector, may then keep the only thread for 10 ms, the time of thousands of
	// calls. So short waits must end before that. If there are more ranks than cores, few
	// waits are short, and the kernel preempts a waiting rank anyway.
	shareEvery, shareCrowded = 64, 8
)

// prepare makes room for the sockets of a View.
func (p *poller) prepare(v collective.View, streams int) {
	p.queues.Init(v.Size() * streams)
	p.sockets = make([]*socket, v.Size()*streams)
	p.ended = -1
	here := 0
	for _, m := range v.Members {
		if m.Node == v.Members[v.Self].Node && m.Host == v.Members[v.Self].Host {
			here++
		}
	}
	p.spins.set(spinLeast, spinMost)
	if here > runtime.NumCPU() {
		p.spins.set(yieldLeast, yieldMost)
		p.crowded = true
	}
}

// adopt turns the bulk Links to a rank into sockets. It returns nil, and changes
// nothing, if that is impossible for one of them.
func (p *poller) adopt(rank int, links []*Link) []*socket {
	var sockets []*socket
	for i, l := range links {
		fd, ok := l.descriptor()
		if !ok {
			for _, s := range sockets {
				s.close()
			}
			return nil
		}
		sockets = append(sockets, &socket{rank: rank, fd: fd, queue: rank*len(links) + i})
	}
	copy(p.sockets[rank*len(links):], sockets)
	for _, l := range links {
		_ = l.raw.Close() // removes it from the runtime's poller, which would wake a thread for every message
	}
	return sockets
}

// Post is part of collective.Poster. Send also calls it, for any peer with sockets.
func (t *Transport) Post(to int, h *collective.Header, parts [][]byte) error {
	p := &t.poller
	p.using.RLock()
	defer p.using.RUnlock()
	if err := t.broken(); err != nil {
		return err
	}
	t.begun(h)
	sockets := t.peers[to].sockets
	p.sending.Lock()
	p.add(sockets[:stripes(int(h.Len), len(sockets))], h, parts)
	_, at, err := p.send()
	p.sending.Unlock()
	if err != nil {
		return t.linkFailed(context.Background(), at, "send", err)
	}
	return t.drain(context.Background(), sendqueue.MaxPosted)
}

// add appends a message, cut into stripes, to the queues of sockets. The caller holds
// sending.
func (p *poller) add(sockets []*socket, h *collective.Header, parts [][]byte) {
	for i, s := range sockets {
		m := p.queues.Message()
		var head []byte
		if i == 0 {
			head = m.head[:]
			h.Put(head)
		}
		lo, hi := stripe(i, len(sockets), int(h.Len))
		m.set(head, parts, lo, hi)
		p.queues.Add(s.queue, m)
	}
}

// Flush is part of collective.Poster.
func (t *Transport) Flush(ctx context.Context) error {
	t.poller.using.RLock()
	defer t.poller.using.RUnlock()
	return t.drain(ctx, 0)
}

// drain waits until no socket has more than the given number of unsent messages.
func (t *Transport) drain(ctx context.Context, most int) error {
	p := &t.poller
	for polls := 1; p.queues.Unsent(); polls++ {
		p.sending.Lock()
		if _, longest := p.queues.Longest(); longest <= most {
			p.sending.Unlock()
			return nil
		}
		moved, at, err := p.send()
		p.sending.Unlock()
		switch {
		case err != nil:
			return t.linkFailed(ctx, at, "send", err)
		case moved:
			polls = 0
			continue
		case !p.spins.reached(polls):
			p.pause(polls)
			continue
		}
		t.waitForRoom()
		if err := t.broken(); err != nil {
			return err
		}
		polls = 0
	}
	return nil
}

// waitForRoom sleeps until a socket takes more of what was posted.
func (t *Transport) waitForRoom() {
	p := &t.poller
	p.sending.Lock()
	to := -1
	if busy := p.queues.Busy(); len(busy) > 0 {
		to = p.sockets[busy[0]].rank
	}
	p.sending.Unlock()
	switch {
	case to < 0: // another goroutine has sent everything
		return
	case !t.posts: // the waits of this goroutine do not count, because the call runs in another
		p.sendPoll = t.waitForEvent(p.sendPoll, nil)
		return
	}
	began := t.waits.Begin(to, collective.SlowToMove)
	p.sendPoll = t.waitForEvent(p.sendPoll, nil)
	t.waits.End(to, collective.SlowToMove, began)
}

// recvFromSockets is Recv from a peer with sockets. While it waits, it sends what was
// posted.
func (t *Transport) recvFromSockets(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	p := &t.poller
	p.using.RLock()
	defer p.using.RUnlock()
	if err := t.broken(); err != nil {
		return err
	}
	sockets := t.peers[from].sockets
	sockets = sockets[:stripes(int(h.Len), len(sockets))]
	if err := expect(sockets, h, parts, t.view.Self); err != nil {
		return t.linkFailed(ctx, from, "receive", err)
	}
	for polls := 1; ; polls++ {
		moved, done, err := read(sockets, h, t.view.Self)
		if err != nil {
			return t.linkFailed(ctx, from, "receive", err)
		}
		if done {
			return nil
		}
		sent, at, err := p.trySend()
		switch {
		case err != nil:
			return t.linkFailed(ctx, at, "send", err)
		case moved || sent:
			polls = 0
			continue
		case !p.spins.reached(polls):
			p.pause(polls)
			continue
		}
		p.recvPoll = t.waitForEvent(p.recvPoll, sockets)
		if err := t.broken(); err != nil {
			return err
		}
		polls = 0
	}
}

// trySend sends as much of all queues as the sockets accept, unless another goroutine
// is doing so.
func (p *poller) trySend() (moved bool, at int, err error) {
	if !p.sending.TryLock() {
		return false, 0, nil
	}
	defer p.sending.Unlock()
	return p.send()
}

// send is trySend for a caller that holds sending. After an error, at is the rank whose
// socket failed.
func (p *poller) send() (moved bool, at int, err error) {
	moved, queue, err := p.queues.Send(p.write)
	if err != nil {
		at = p.sockets[queue].rank
	}
	return moved, at, err
}

func (p *poller) write(queue int, m *outgoing) (moved, done bool, err error) {
	return p.sockets[queue].write(m)
}

// pause lets others run between two polls.
func (p *poller) pause(polls int) {
	if p.crowded || polls > spinMost/3 { // the awaited rank may be waiting for this core
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	if polls%shareEvery == 0 || p.crowded && polls%shareCrowded == 0 {
		runtime.Gosched() // to heartbeats, and to ranks that are goroutines of this process
	}
}

// waitForEvent sleeps until one of the sockets in has more of an expected message, or
// a socket with unsent messages has room. It may also wake for no reason. It uses the
// memory of fds and returns it.
func (t *Transport) waitForEvent(fds []unix.PollFd, in []*socket) []unix.PollFd {
	fds = fds[:0]
	for _, s := range in {
		if s.in.left > 0 {
			s.wakeAfter(wakeBytes)
			fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	t.poller.sending.Lock()
	for _, queue := range t.poller.queues.Busy() {
		fds = append(fds, unix.PollFd{Fd: int32(t.poller.sockets[queue].fd), Events: unix.POLLOUT})
	}
	t.poller.sending.Unlock()
	if len(fds) == 0 {
		return fds // everything has been sent since the caller looked
	}
	begin := time.Now()
	_, _ = unix.Poll(fds, sleepMost)
	t.poller.spins.slept(time.Since(begin))
	return fds
}

// closeSockets waits for calls in progress to end and closes the sockets.
func (t *Transport) closeSockets() {
	t.poller.using.Lock()
	defer t.poller.using.Unlock()
	for r := range t.peers {
		for _, s := range t.peers[r].sockets {
			s.close()
		}
	}
	if t.poller.ended >= 0 {
		_ = unix.Close(t.poller.ended)
		t.poller.ended = -1
	}
}
