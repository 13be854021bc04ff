package tcp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// An incoming is an accepted connection whose handshake is in progress. It measures how
// long this process has waited for the dialler. The handshake progresses in steps: TLS's
// hello, a certificate made from the key, our hello. Single bytes are no progress, so a
// dialler that sends one at a time gains no time.
type incoming struct {
	net.Conn
	done atomic.Bool // the handshake is over; reads are not timed any more

	mu     sync.Mutex
	waited time.Duration // in finished reads of this step
	since  time.Time     // when the read in progress began; zero if there is none
}

// Read is part of net.Conn.
func (in *incoming) Read(b []byte) (int, error) {
	if in.done.Load() {
		return in.Conn.Read(b)
	}
	in.mu.Lock()
	in.since = time.Now()
	in.mu.Unlock()
	n, err := in.Conn.Read(b)
	in.mu.Lock()
	in.waited += time.Since(in.since)
	in.since = time.Time{}
	in.mu.Unlock()
	return n, err
}

// progressed records that a step is complete.
func (in *incoming) progressed() {
	in.mu.Lock()
	in.waited = 0
	in.mu.Unlock()
}

// silence returns how long this process has waited for the dialler in this step. It is 0
// if the dialler waits for this process, which may just be short of CPU time.
func (in *incoming) silence() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.since.IsZero() || !nothingToRead(in.Conn) {
		return 0
	}
	return in.waited + time.Since(in.since)
}
