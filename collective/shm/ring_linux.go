package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// A ring is a ring buffer for messages from one rank to another, as one of the two
// sees it. A message is a header and its payload, padded to whole cache lines, so
// that a header never wraps around. Only the sender stores head, after the bytes
// before it. Only the receiver stores tail, after it has read the bytes before it.
// Both count bytes from the beginning of the View.
type ring struct {
	head, tail *uint64
	data       []byte // its length is a power of two
}

func newRing(r *region, from, to int) ring {
	at := r.ringAt(from, to)
	return ring{head: r.word(at), tail: r.word(at + atTail), data: r.bytes(at+atRingData, r.ring)}
}

// at returns the bytes of the ring from count on, as many as are contiguous and at
// most n.
func (l *ring) at(count uint64, n int) []byte {
	lo := int(count & uint64(len(l.data)-1))
	return l.data[lo:min(lo+n, len(l.data))]
}

// mostBurst is enough for a side to work while the other does.
const mostBurst = 64 << 10

// burst returns the most bytes that a side moves before it tells the other.
func (l *ring) burst() int { return min(mostBurst, len(l.data)/4) }

// padded rounds a length up to whole cache lines.
func padded(n int) uint64 { return uint64(n+lineBytes-1) &^ (lineBytes - 1) }

// An inRing is a ring that this rank receives from.
type inRing struct {
	ring
	consumed uint64 // bytes read; tail follows
}

// An outRing is a ring that this rank sends to.
type outRing struct {
	ring
	produced    uint64 // bytes written; head follows
	staging     staging
	streamLeast int // bytes that are stored non-temporally if the rank that reads is far
}

// put copies as much of the payload as fits, and returns how much.
func (l *outRing) put(to, from []byte) int {
	n := min(len(to), len(from))
	if n == 0 || n < l.streamLeast {
		return copy(to, from)
	}
	l.staging.do(n, func(stream bool) {
		if stream {
			moveStream(&to[0], &from[0], n)
		} else {
			copy(to, from)
		}
	})
	return n
}

// A message is a posted message that is not yet all in the ring.
type message struct {
	head    [collective.HeaderSize]byte
	begun   bool     // head is written
	parts   [][]byte // the payload
	written int      // parts written in full; the next part is what is left of it
	padding int      // bytes after the payload
}

func (m *message) fill(h *collective.Header, parts [][]byte) {
	h.Put(m.head[:])
	m.begun, m.written = false, 0
	m.parts = append(m.parts[:0], parts...)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	m.padding = int(padded(n)) - n
}

// write copies up to a burst of a message into the ring. done says that the whole
// message is in the ring.
func (l *outRing) write(m *message) (moved, done bool) {
	free := len(l.data) - int(l.produced-atomic.LoadUint64(l.tail))
	free = max(0, min(free, l.burst())) // it is negative if tail is corrupt
	if !m.begun {
		if free < collective.HeaderSize {
			return false, false
		}
		copy(l.at(l.produced, collective.HeaderSize), m.head[:])
		m.begun, free = true, free-collective.HeaderSize
		l.produced += collective.HeaderSize
		moved = true
	}
	for m.written < len(m.parts) {
		part := &m.parts[m.written]
		n := l.put(l.at(l.produced, free), *part)
		l.produced, free = l.produced+uint64(n), free-n
		moved = moved || n > 0
		if *part = (*part)[n:]; len(*part) > 0 {
			if free == 0 {
				break
			}
			continue // the ring wrapped around
		}
		m.written++
	}
	if done = m.written == len(m.parts) && free >= m.padding; done {
		l.produced += uint64(m.padding)
		moved = true
		clear(m.parts) // so that the memory can be collected
	}
	if moved {
		atomic.StoreUint64(l.head, l.produced)
	}
	return moved, done
}

// read receives the payload of a message into parts.
func (t *Transport) read(peer int, parts [][]byte) error {
	l := &t.in[peer]
	n := 0
	for _, p := range parts {
		for len(p) > 0 {
			have := atomic.LoadUint64(l.head) - l.consumed
			if have == 0 {
				if err := t.wait(l.head, l.consumed+1, peer, aMessage); err != nil {
					return err
				}
				continue
			}
			if have > uint64(len(l.data)) {
				return t.corrupt(peer, have)
			}
			m := copy(p, l.at(l.consumed, int(min(have, uint64(l.burst())))))
			p, n = p[m:], n+m
			l.consumed += uint64(m)
			// The sender must get room again however short the parts are.
			if len(p) > 0 || l.consumed-atomic.LoadUint64(l.tail) >= uint64(l.burst()) {
				t.release(peer)
			}
		}
	}
	l.consumed += padded(n) - uint64(n)
	if err := t.wait(l.head, l.consumed, peer, aMessage); err != nil {
		return err
	}
	t.release(peer)
	return nil
}

// release lets the sender overwrite what this rank has read.
func (t *Transport) release(peer int) {
	l := &t.in[peer]
	atomic.StoreUint64(l.tail, l.consumed)
	t.wakePeer(peer)
}

// corrupt breaks the View because the shared memory holds an impossible value.
func (t *Transport) corrupt(peer int, have uint64) error {
	t.under.Abort(&collective.RankError{Rank: t.ranks[peer], Phase: "receive",
		Err: fmt.Errorf("shm: the shared memory is corrupt: a ring of %d bytes claims to hold %d", len(t.in[peer].data), have)})
	return t.failure()
}
