// Package sendqueue holds the messages that a transport has accepted in Post and not
// yet sent.
//
// It is only bookkeeping: no I/O, no locks, no waiting. The transport decides how to write
// a message and how to wait for room.
package sendqueue

import "sync/atomic"

// MaxPosted is the number of unsent messages that one destination may have when Post
// returns. With more, Post waits.
const MaxPosted = 4

// Queues holds one queue of messages for each destination. Destinations are numbered
// from 0; what one is, a rank or a connection, is up to the transport. The caller holds
// a lock of its own in all methods except Unsent.
type Queues[M any] struct {
	queues [][]*M // by destination, oldest first; the first may have been sent in part
	busy   []int  // destinations with messages, longest busy first
	free   []*M
	unsent atomic.Int32 // len(busy) after the last Send
}

// Init makes empty queues.
func (q *Queues[M]) Init(destinations int) { q.queues = make([][]*M, destinations) }

// Message returns a message to fill and Add. It may have been sent before, and then
// still has its old contents, so that their memory can be reused.
func (q *Queues[M]) Message() *M {
	n := len(q.free)
	if n == 0 {
		return new(M)
	}
	m := q.free[n-1]
	q.free = q.free[:n-1]
	return m
}

// Add appends a message to the queue of a destination. Call Send before you release
// the lock.
func (q *Queues[M]) Add(to int, m *M) {
	if q.queues[to] = append(q.queues[to], m); len(q.queues[to]) == 1 {
		q.busy = append(q.busy, to)
	}
}

// Send sends what it can. It calls write with the first message of each destination,
// until write neither finishes a message nor makes progress. It reports whether there
// was any progress. At the first error it stops and returns it with its destination;
// the message stays in its queue.
func (q *Queues[M]) Send(write func(to int, m *M) (progress, done bool, err error)) (progress bool, to int, err error) {
	busy := q.busy[:0]
	for i, to := range q.busy {
		some, err := q.sendTo(to, write)
		progress = progress || some
		if len(q.queues[to]) > 0 {
			busy = append(busy, to)
		}
		if err != nil {
			q.setBusy(append(busy, q.busy[i+1:]...))
			return progress, to, err
		}
	}
	q.setBusy(busy)
	return progress, 0, nil
}

func (q *Queues[M]) sendTo(to int, write func(to int, m *M) (progress, done bool, err error)) (progress bool, err error) {
	for len(q.queues[to]) > 0 {
		queue := q.queues[to]
		some, done, err := write(to, queue[0])
		progress = progress || some
		switch {
		case err != nil:
			return progress, err
		case done:
			q.free = append(q.free, queue[0])
			q.queues[to] = append(queue[:0], queue[1:]...)
		case !some:
			return progress, nil
		}
	}
	return progress, nil
}

// setBusy stores unsent only if it changes, because a store that others see at once
// costs more than the rest, and most messages are sent at once.
func (q *Queues[M]) setBusy(busy []int) {
	q.busy = busy
	if n := int32(len(busy)); q.unsent.Load() != n {
		q.unsent.Store(n)
	}
}

// Unsent reports whether the last Send left any message. It needs no lock.
func (q *Queues[M]) Unsent() bool { return q.unsent.Load() != 0 }

// Busy returns the destinations with messages, longest busy first. The result is valid
// until the next Add or Send.
func (q *Queues[M]) Busy() []int { return q.busy }

// Longest returns a destination with the most messages, and their number. If all queues
// are empty, the number is 0.
func (q *Queues[M]) Longest() (to, messages int) {
	for _, at := range q.busy {
		if n := len(q.queues[at]); n > messages {
			to, messages = at, n
		}
	}
	return to, messages
}
