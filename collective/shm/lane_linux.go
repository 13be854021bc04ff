package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// A lane is a ring buffer from one rank to another, as seen by one of the two.
// A message is a header and its payload, padded to whole cache lines, so that a
// header never wraps around. Only the sender writes head, and only the receiver
// writes tail. Both count bytes from the beginning.
type lane struct {
	head, tail *uint64
	data       []byte // its length is a power of two
}

func newLane(r *region, from, to int) lane {
	at := r.lane(from, to)
	return lane{head: r.word(at), tail: r.word(at + atTail), data: r.bytes(at+atRingData, r.ring)}
}

// at returns up to n bytes of the ring from count on, as many as are
// contiguous.
func (l *lane) at(count uint64, n int) []byte {
	lo := int(count & uint64(len(l.data)-1))
	return l.data[lo:min(lo+n, len(l.data))]
}

// publish returns how many bytes are moved before the other side learns of
// them.
func (l *lane) publish() int { return len(l.data) / 4 }

// filled rounds a length up to whole cache lines.
func filled(n int) uint64 { return uint64(n+lineBytes-1) &^ (lineBytes - 1) }

// An inlane is a lane that this rank receives from.
type inlane struct {
	lane
	taken uint64 // bytes read so far
}

// An outlane is a lane that this rank sends to.
type outlane struct {
	lane
	given uint64 // bytes written so far
}

// A message is one that was posted, as far as it is not yet in the ring.
type message struct {
	head    [collective.HeaderSize]byte
	begun   bool     // head is written
	parts   [][]byte // the payload
	written int      // parts that are written whole; the next one holds its unwritten rest
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
	m.padding = int(filled(n)) - n
}

// write copies as much of a message into the ring as fits. done says that all
// of it is in the ring.
func (l *outlane) write(m *message) (moved, done bool) {
	free := len(l.data) - int(l.given-atomic.LoadUint64(l.tail))
	free = min(free, l.publish())
	if !m.begun {
		if free < collective.HeaderSize {
			return false, false
		}
		copy(l.at(l.given, collective.HeaderSize), m.head[:])
		m.begun, free = true, free-collective.HeaderSize
		l.given += collective.HeaderSize
		moved = true
	}
	for m.written < len(m.parts) {
		part := &m.parts[m.written]
		n := copy(l.at(l.given, free), *part)
		l.given, free = l.given+uint64(n), free-n
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
		l.given += uint64(m.padding)
		moved = true
	}
	if moved {
		atomic.StoreUint64(l.head, l.given)
	}
	return moved, done
}

// read receives the payload of a message into parts, and releases its room to
// the sender.
func (t *Transport) read(peer int, parts [][]byte) error {
	l := &t.in[peer]
	n := 0
	for _, p := range parts {
		for len(p) > 0 {
			have := atomic.LoadUint64(l.head) - l.taken
			if have == 0 {
				if err := t.wait(l.head, l.taken+1, peer, aMessage); err != nil {
					return err
				}
				continue
			}
			if have > uint64(len(l.data)) {
				return t.corrupt(peer, have)
			}
			m := copy(p, l.at(l.taken, int(min(have, uint64(l.publish())))))
			p, n = p[m:], n+m
			l.taken += uint64(m)
			if len(p) > 0 {
				t.release(peer)
			}
		}
	}
	l.taken += filled(n) - uint64(n)
	if err := t.wait(l.head, l.taken, peer, aMessage); err != nil {
		return err
	}
	t.release(peer)
	return nil
}

// release gives the room of what was read back to the sender.
func (t *Transport) release(peer int) {
	l := &t.in[peer]
	atomic.StoreUint64(l.tail, l.taken)
	t.rouse(peer)
}

// corrupt breaks the View because the shared memory holds an impossible value.
func (t *Transport) corrupt(peer int, have uint64) error {
	t.under.Abort(&collective.RankError{Rank: t.ranks[peer], Phase: "receive",
		Err: fmt.Errorf("shm: its ring of %[2]d bytes claims to hold %[1]d: the shared memory is corrupt", have, len(t.in[peer].data))})
	return t.failure()
}
