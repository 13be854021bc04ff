package membership

import (
	"net"
	"sync"
	"time"
)

// Limits of the incoming streams. A push of the state of a cluster of 8192 processes has about
// 8 MB.
const (
	mostStreams  = 64
	mostReceived = 32 << 20 // bytes, of all streams that are open
)

// An admission limits incoming streams. A new one closes the one that has been silent for the
// longest time, if there are too many. If they have received too much together, the one that has
// received most is closed.
type admission struct {
	mu       sync.Mutex
	open     map[*admitted]struct{}
	received int // by those that are open
}

// admitted is an incoming stream.
type admitted struct {
	net.Conn
	by       *admission
	received int
	heard    time.Time // when bytes came last, or when it was opened
}

func (a *admission) admit(conn net.Conn) net.Conn {
	c := &admitted{Conn: conn, by: a, heard: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= mostStreams {
		a.drop(func(x, than *admitted) bool { return x.heard.Before(than.heard) })
	}
	if a.open == nil {
		a.open = map[*admitted]struct{}{}
	}
	a.open[c] = struct{}{}
	return c
}

// drop closes the stream that comes first in an order. The caller holds the lock.
func (a *admission) drop(before func(x, than *admitted) bool) {
	var first *admitted
	for c := range a.open {
		if first == nil || before(c, first) {
			first = c
		}
	}
	a.forget(first)
	_ = first.Conn.Close() // its reader notices
}

// forget takes a stream off the books. The caller holds the lock.
func (a *admission) forget(c *admitted) {
	if _, open := a.open[c]; open {
		delete(a.open, c)
		a.received -= c.received
	}
}

func (c *admitted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	a := c.by
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.open[c]; open {
		c.received, c.heard = c.received+n, time.Now()
		if a.received += n; a.received > mostReceived {
			a.drop(func(x, than *admitted) bool { return x.received > than.received })
		}
	}
	return n, err
}

func (c *admitted) Close() error {
	c.by.mu.Lock()
	c.by.forget(c)
	c.by.mu.Unlock()
	return c.Conn.Close()
}
