package tcp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A visitor is a connection whose handshake is in progress. It makes progress by
// steps: TLS's hello, a certificate made from the key, our hello. Single bytes are
// none, so whoever sends them one by one gets no more time for it.
type visitor struct {
	net.Conn
	met atomic.Bool // the handshake is over, reads are not timed any more

	mu     sync.Mutex
	waited time.Duration // for bytes from it, in this step
	since  time.Time     // a read in progress began; zero if there is none
}

// Read is part of net.Conn.
func (v *visitor) Read(b []byte) (int, error) {
	if v.met.Load() {
		return v.Conn.Read(b)
	}
	v.mu.Lock()
	v.since = time.Now()
	v.mu.Unlock()
	n, err := v.Conn.Read(b)
	v.mu.Lock()
	v.waited += time.Since(v.since)
	v.since = time.Time{}
	v.mu.Unlock()
	return n, err
}

// step notes that the visitor has made progress.
func (v *visitor) step() {
	v.mu.Lock()
	v.waited = 0
	v.mu.Unlock()
}

// silence is how long this process has waited for the visitor in this step; 0 if
// the visitor waits for this process, which may just lack the processor.
func (v *visitor) silence() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.since.IsZero() || !quiet(v.Conn) {
		return 0
	}
	return v.waited + time.Since(v.since)
}
