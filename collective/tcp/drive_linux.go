package tcp

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/sendqueue"
)

// drive moves the messages of plain bulk Links in the goroutine of whoever
// calls the Transport: sending and receiving take turns, and neither waits for
// the other. That saves two changes of goroutine a message, which is most of
// what a small one costs. Links under TLS do without.
type drive struct {
	using sync.RWMutex // read-held by calls in progress: descriptors stay open

	sending sync.Mutex                 // guards queues
	queues  sendqueue.Queues[outgoing] // for each lane
	lanes   []*lane                    // by queue: all of rank 0, all of rank 1 ...; nil for those under TLS

	patience     patience
	yield        bool // give the core away between two looks: there are more ranks here than cores
	idle, settle []unix.PollFd
}

const (
	wakeBytes = 128 << 10
	sleepMost = 1000 // ms; who breaks the transport wakes sleepers, this is for what nobody thought of
)

// patience is how often somebody looks before they sleep. Looking finds what
// comes soon without the cost of sleeping and waking; where others want the
// core, or peers are far behind, it only takes time from them. So what sleeping
// turns out to take decides.
type patience struct {
	tries       atomic.Int32
	least, most int32
}

const (
	spinLeast, spinMost   = 10, 250 // looks, of about .2 µs
	yieldLeast, yieldMost = 5, 40   // looks and changes to another process
	shortSleep            = 100 * time.Microsecond

	// After so many looks other goroutines of this process may run. One that is
	// busy, or the garbage collector, may keep the only thread for 10 ms then, which
	// is thousands of calls: so not in waits that soon end. Where there are more
	// ranks than cores few do, and who waits is cut off anyway.
	shareEvery, shareCrowded = 64, 8
)

func (p *patience) set(least, most int32) {
	p.least, p.most = least, most
	p.tries.Store(most)
}

func (p *patience) ends(tries int) bool { return tries >= int(p.tries.Load()) }

// slept learns from a sleep.
func (p *patience) slept(d time.Duration) {
	if d < shortSleep {
		p.tries.Store(min(2*p.tries.Load(), p.most))
	} else {
		p.tries.Store(max(p.tries.Load()/2, p.least))
	}
}

// equip prepares for the lanes of a View.
func (d *drive) equip(v collective.View, streams int) {
	d.queues.Init(v.Size() * streams)
	d.lanes = make([]*lane, v.Size()*streams)
	here := 0
	for _, m := range v.Members {
		if m.Node == v.Members[v.Self].Node && m.Host == v.Members[v.Self].Host {
			here++
		}
	}
	d.patience.set(spinLeast, spinMost)
	if here > runtime.NumCPU() {
		d.patience.set(yieldLeast, yieldMost)
		d.yield = true
	}
}

// engage takes the sockets of the bulk Links to a rank over, all or none.
func (d *drive) engage(rank int, links []*Link) []*lane {
	var lanes []*lane
	for i, l := range links {
		fd, ok := l.descriptor()
		if !ok {
			for _, l := range lanes {
				l.close()
			}
			return nil
		}
		lanes = append(lanes, &lane{rank: rank, fd: fd, queue: rank*len(links) + i})
	}
	copy(d.lanes[rank*len(links):], lanes)
	for _, l := range links {
		_ = l.raw.Close() // takes it out of the runtime's poller, which would wake a thread for every message
	}
	return lanes
}

// descriptor is another one for the socket of a plain Link.
func (l *Link) descriptor() (fd int, ok bool) {
	conn, ok := l.raw.(syscall.Conn)
	if !ok || l.sealed() {
		return 0, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	if raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }) != nil || err != nil {
		return 0, false
	}
	return fd, true
}

// Post is part of collective.Poster. Send uses it, too, for one peer's lanes.
func (t *Transport) Post(to int, h *collective.Header, parts [][]byte) error {
	d := &t.drive
	d.using.RLock()
	defer d.using.RUnlock()
	if err := t.broken(); err != nil {
		return err
	}
	t.begun(h)
	lanes := t.peers[to].lanes
	d.sending.Lock()
	d.add(lanes[:stripes(int(h.Len), len(lanes))], h, parts)
	_, at, err := d.send()
	d.sending.Unlock()
	if err != nil {
		return t.explain(context.Background(), at, "send", err)
	}
	return t.drain(context.Background(), sendqueue.MaxPosted)
}

// add puts a message, in stripes, behind what the lanes have to send. sending
// is held.
func (d *drive) add(lanes []*lane, h *collective.Header, parts [][]byte) {
	for i, l := range lanes {
		m := d.queues.Message()
		var head []byte
		if i == 0 {
			head = m.head[:]
			h.Put(head)
		}
		lo, hi := stripe(i, len(lanes), int(h.Len))
		m.begin(head, parts, lo, hi)
		d.queues.Add(l.queue, m)
	}
}

// Flush is part of collective.Poster.
func (t *Transport) Flush(ctx context.Context) error {
	d := &t.drive
	d.using.RLock()
	defer d.using.RUnlock()
	return t.drain(ctx, 0)
}

// drain waits until no lane has more than so many unsent messages.
func (t *Transport) drain(ctx context.Context, most int) error {
	d := &t.drive
	for tries := 1; d.queues.Unsent(); tries++ {
		d.sending.Lock()
		if _, longest := d.queues.Longest(); longest <= most {
			d.sending.Unlock()
			return nil
		}
		moved, at, err := d.send()
		d.sending.Unlock()
		switch {
		case err != nil:
			return t.explain(ctx, at, "send", err)
		case moved:
			tries = 0
			continue
		case !d.patience.ends(tries):
			d.pause(tries)
			continue
		}
		t.settle()
		if err := t.broken(); err != nil {
			return err
		}
		tries = 0
	}
	return nil
}

// settle sleeps until there is room for what was posted.
func (t *Transport) settle() {
	d := &t.drive
	d.sending.Lock()
	to := -1
	if busy := d.queues.Busy(); len(busy) > 0 {
		to = d.lanes[busy[0]].rank
	}
	d.sending.Unlock()
	switch {
	case to < 0: // another goroutine has sent it all
		return
	case !t.posts: // another goroutine than that of the call sends
		d.settle = t.sleep(d.settle, nil)
		return
	}
	began := t.waits.Begin(to, collective.SlowToMove)
	d.settle = t.sleep(d.settle, nil)
	t.waits.End(to, collective.SlowToMove, began)
}

// driveIn is Recv from lanes. Meanwhile it sends what was posted.
func (t *Transport) driveIn(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	d := &t.drive
	d.using.RLock()
	defer d.using.RUnlock()
	if err := t.broken(); err != nil {
		return err
	}
	lanes := t.peers[from].lanes
	lanes = lanes[:stripes(int(h.Len), len(lanes))]
	if err := await(lanes, h, parts); err != nil {
		return t.explain(ctx, from, "receive", err)
	}
	for tries := 1; ; tries++ {
		moved, done, err := read(lanes, h, t.view.Self)
		if err != nil {
			return t.explain(ctx, from, "receive", err)
		}
		if done {
			return nil
		}
		sent, at, err := d.trySend()
		switch {
		case err != nil:
			return t.explain(ctx, at, "send", err)
		case moved || sent:
			tries = 0
			continue
		case !d.patience.ends(tries):
			d.pause(tries)
			continue
		}
		d.idle = t.sleep(d.idle, lanes)
		if err := t.broken(); err != nil {
			return err
		}
		tries = 0
	}
}

// trySend sends what the sockets take of all queues, unless another goroutine is
// doing so.
func (d *drive) trySend() (moved bool, at int, err error) {
	if !d.sending.TryLock() {
		return false, 0, nil
	}
	defer d.sending.Unlock()
	return d.send()
}

// send is trySend for a caller that holds sending. Rank at is whose lane failed.
func (d *drive) send() (moved bool, at int, err error) {
	moved, queue, err := d.queues.Send(d.write)
	if err != nil {
		at = d.lanes[queue].rank
	}
	return moved, at, err
}

func (d *drive) write(queue int, m *outgoing) (moved, done bool, err error) {
	return d.lanes[queue].write(m)
}

// pause lets others run between two looks.
func (d *drive) pause(tries int) {
	if d.yield || tries > spinMost/3 { // who is waited for may be waiting for this very core
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	if tries%shareEvery == 0 || d.yield && tries%shareCrowded == 0 {
		runtime.Gosched() // to heartbeats, and to ranks that are goroutines of this very process
	}
}

// sleep waits until there is something to read in one of the lanes of which
// something is awaited, or room in one with a queue. Whatever woke it, the
// caller looks again.
func (t *Transport) sleep(polls []unix.PollFd, in []*lane) []unix.PollFd {
	polls = polls[:0]
	for _, l := range in {
		if l.in.left > 0 {
			l.wakeFor(wakeBytes)
			polls = append(polls, unix.PollFd{Fd: int32(l.fd), Events: unix.POLLIN})
		}
	}
	t.drive.sending.Lock()
	for _, queue := range t.drive.queues.Busy() {
		polls = append(polls, unix.PollFd{Fd: int32(t.drive.lanes[queue].fd), Events: unix.POLLOUT})
	}
	t.drive.sending.Unlock()
	if len(polls) == 0 {
		return polls // everything has left since the caller looked
	}
	begin := time.Now()
	_, _ = unix.Poll(polls, sleepMost)
	t.drive.patience.slept(time.Since(begin))
	return polls
}

// free waits for calls in progress to end and closes the lanes.
func (t *Transport) free() {
	t.drive.using.Lock()
	defer t.drive.using.Unlock()
	for r := range t.peers {
		for _, l := range t.peers[r].lanes {
			l.close()
		}
	}
}
