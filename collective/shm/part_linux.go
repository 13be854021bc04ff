package shm

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A parting moves a rank away from a peer on its core. The kernel puts both on one core
// when something else uses the others for a moment, and leaves them there: where one of
// two cores is busy, it does not look for an idle one. A small call then takes two
// process switches, 5 µs instead of .2.
//
// If the other core stays busy, it is better to share this one: here the ranks run in
// turn, and do not wait for one that another program has interrupted. So a rank that has
// parted looks how long it had to queue for its new core, and returns if that is too long.
type parting struct {
	apart bool      // it has parted, and has not seen yet whether that pays
	since queueTime // when
	left  uint64    // the core that it left
	next  time.Time // it does not part again before
	pause time.Duration
}

const (
	partTrial  = 10 * time.Millisecond  // after this time, a rank decides whether parting paid off
	queuedPart = 4                      // it did not if the rank queued for more than 1/4 of the time
	firstPause = 100 * time.Millisecond // before the next attempt; doubles if parting did not pay off
	mostPause  = 10 * time.Second       // longest pause
)

// A queueTime is a moment of a goroutine, on the thread that runs it then.
type queueTime struct {
	thread int
	wall   time.Time
	queued time.Duration // how long the thread has been ready to run while another had its core
}

// queueNow returns false if the kernel does not tell how long threads queue.
func queueNow() (q queueTime, ok bool) {
	q = queueTime{thread: unix.Gettid(), wall: time.Now()}
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(q.thread) + "/schedstat")
	fields := bytes.Fields(text) // ns on a core, ns in the queue, turns
	if err != nil || len(fields) < 2 {
		return q, false
	}
	ns, err := strconv.ParseInt(string(fields[1]), 10, 64)
	q.queued = time.Duration(ns)
	return q, err == nil && string(fields[0]) != "0" // a kernel that does not count says 0
}

// may reports whether it is time to part, for a rank that is on a peer's core.
func (p *parting) may(now time.Time) bool {
	if p.apart { // the kernel has brought them together again
		p.apart = false
		if now.Sub(p.since.wall) < partTrial {
			p.later(now)
		}
	}
	return !now.Before(p.next)
}

// later makes the rank part later, because it did not pay or is impossible.
func (p *parting) later(now time.Time) {
	p.pause = min(max(firstPause, 2*p.pause), mostPause)
	p.next = now.Add(p.pause)
}

// begin notes that the rank has left a core.
func (p *parting) begin(now queueTime, left uint64) { p.apart, p.since, p.left = true, now, left }

// over reports whether the rank is to return to the core that it left.
func (p *parting) over(now queueTime) (back bool) {
	if now.thread != p.since.thread { // the queueing of two threads cannot be compared
		p.since = now
		return false
	}
	took := now.wall.Sub(p.since.wall)
	if took < partTrial {
		return false
	}
	p.apart = false
	if now.queued-p.since.queued <= took/queuedPart {
		p.pause = 0
		return false
	}
	p.later(now.wall)
	return true
}

// part leaves the core that this rank shares with a peer, if it is time to. It reports
// whether it did.
func (w *waiter) part() bool {
	if !w.parting.may(time.Now()) {
		return false
	}
	now, ok := queueNow()
	if !ok {
		w.parting.later(now.wall)
		return false
	}
	here := core()
	var taken []uint64
	for i := range w.ranks {
		if on := atomic.LoadUint64(w.where(i)); on != 0 {
			taken = append(taken, on)
		}
	}
	if !leaveCores(taken) && !leaveCores([]uint64{here}) { // ranks may have moved since they said where they were
		w.parting.later(now.wall) // this rank may use only one core
		return false
	}
	w.parting.begin(now, here)
	atomic.StoreUint64(w.where(w.self), core()) // or the others would still yield theirs to this rank
	return true
}

// returnIfQueued returns to the core that this rank left, if that did not pay.
func (w *waiter) returnIfQueued() {
	if now, ok := queueNow(); ok && w.parting.over(now) {
		moveTo(w.parting.left)
	}
}
