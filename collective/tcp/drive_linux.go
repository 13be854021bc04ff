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
)

// drive moves the messages of plain bulk Links in the goroutine of whoever
// calls the Transport: sending and receiving take turns, and neither waits for
// the other. That saves two changes of goroutine a message, which is most of
// what a small one costs. Links under TLS do without.
type drive struct {
	using sync.RWMutex // read-held by calls in progress: descriptors stay open

	moving sync.Mutex // held by whoever sends
	full   []*lane    // that have a queue
	spare  []*frame

	patience     patience
	yield        bool // give the core away between two looks: there are more ranks here than cores
	idle, settle []unix.PollFd
}

const (
	mostPosted = 4 // frames of a lane, then Post waits
	wakeBytes  = 128 << 10
	sleepMost  = 1000 // ms; who breaks the transport wakes sleepers, this is for what nobody thought of
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
func (d *drive) equip(v collective.View) {
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
func engage(rank int, links []*Link) []*lane {
	var lanes []*lane
	for _, l := range links {
		fd, ok := l.descriptor()
		if !ok {
			for _, l := range lanes {
				l.close()
			}
			return nil
		}
		lanes = append(lanes, &lane{rank: rank, fd: fd})
	}
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
	d.moving.Lock()
	d.queue(lanes[:stripes(int(h.Len), len(lanes))], h, parts)
	d.moving.Unlock()
	_, at, err := t.push(true)
	if err != nil {
		return t.explain(context.Background(), at, "send", err)
	}
	return t.drain(context.Background(), mostPosted)
}

// queue puts a message, in stripes, behind what the lanes have to send. moving
// is held.
func (d *drive) queue(lanes []*lane, h *collective.Header, parts [][]byte) {
	for i, l := range lanes {
		f := d.frame()
		var head []byte
		if i == 0 {
			head = f.head[:]
			h.Put(head)
		}
		lo, hi := stripe(i, len(lanes), int(h.Len))
		f.begin(head, parts, lo, hi)
		if l.queue = append(l.queue, f); len(l.queue) == 1 {
			d.full = append(d.full, l)
		}
	}
}

// Flush is part of collective.Poster.
func (t *Transport) Flush(ctx context.Context) error {
	d := &t.drive
	d.using.RLock()
	defer d.using.RUnlock()
	return t.drain(ctx, 0)
}

// drain waits until no lane has more than so many frames that have not left.
func (t *Transport) drain(ctx context.Context, most int) error {
	d := &t.drive
	for tries := 1; ; tries++ {
		d.moving.Lock()
		longest := 0
		for _, l := range d.full {
			longest = max(longest, len(l.queue))
		}
		d.moving.Unlock()
		if longest <= most {
			return nil
		}
		moved, at, err := t.push(true)
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
}

// settle sleeps until there is room for what was posted.
func (t *Transport) settle() {
	d := &t.drive
	d.moving.Lock()
	to := -1
	if len(d.full) > 0 {
		to = d.full[0].rank
	}
	d.moving.Unlock()
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
		sent, at, err := t.push(false)
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

// push sends what the sockets take of all queues. If somebody else does so just
// now, it leaves it to them, unless it must. Rank at is whose lane failed.
func (t *Transport) push(must bool) (moved bool, at int, err error) {
	d := &t.drive
	if must {
		d.moving.Lock()
	} else if !d.moving.TryLock() {
		return false, 0, nil
	}
	defer d.moving.Unlock()
	still := d.full[:0]
	for i, l := range d.full {
		var some bool
		some, d.spare, err = l.write(d.spare)
		moved = moved || some
		if len(l.queue) > 0 {
			still = append(still, l)
		}
		if err != nil {
			d.full = append(still, d.full[i+1:]...)
			return moved, l.rank, err
		}
	}
	d.full = still
	return moved, 0, nil
}

// frame is one for a new message. moving is held.
func (d *drive) frame() *frame {
	n := len(d.spare)
	if n == 0 {
		return new(frame)
	}
	f := d.spare[n-1]
	d.spare = d.spare[:n-1]
	return f
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
	t.drive.moving.Lock()
	for _, l := range t.drive.full {
		polls = append(polls, unix.PollFd{Fd: int32(l.fd), Events: unix.POLLOUT})
	}
	t.drive.moving.Unlock()
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
