package tcp

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// Connections that carry the messages between two ranks: at most, and where
// nobody says how many.
const (
	MaxStreams = 8
	// AutoStreams is what measurement found to do best where it was made: on one
	// host memory decides, and a link without a limit for each connection is full
	// with one. docs/benchmarks.md has the figures, and those of links that have one.
	AutoStreams = 1
)

// A message of more bytes than a stripe has at least is cut into stripes: the
// first leaves with the header on the first connection, the others bare on the
// next ones. Both ends find the cuts by themselves, from the length that the
// header tells and the number of connections that the handshakes compared, so
// stripes need no headers: on each connection they come in the order of their
// messages.
var leastStripe = 32 << 10 // MaxStreams of them are a segment of those that travel between hosts; changed by tests alone

const stripeAlign = 32 // stripes begin at multiples of it; MaxStreams of them are a stripe at most

// stripes is into how many stripes so many bytes are cut.
func stripes(bytes, streams int) int { return max(1, min(streams, bytes/leastStripe)) }

// stripe is the i-th of n stripes of so many bytes: [lo, hi). None is empty.
func stripe(i, n, bytes int) (lo, hi int) {
	each := ((bytes+n-1)/n + stripeAlign - 1) / stripeAlign * stripeAlign
	return min(i*each, bytes), min((i+1)*each, bytes)
}

// pieces appends the bytes [lo, hi) of parts, seen as one, to list.
func pieces(list, parts [][]byte, lo, hi int) [][]byte {
	for _, p := range parts {
		if a, b := max(lo, 0), min(hi, len(p)); a < b {
			list = append(list, p[a:b])
		}
		lo, hi = lo-len(p), hi-len(p)
	}
	return list
}

// room says whether parts have the bytes that h announces.
func room(h *collective.Header, parts [][]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n != int(h.Len) {
		return fmt.Errorf("tcp: %d bytes of room for a payload of %d", n, h.Len)
	}
	return nil
}

// Streams is over how many connections a message of so many bytes travels
// between two ranks.
func (t *Transport) Streams(bytes int) int { return stripes(bytes, t.streams) }
