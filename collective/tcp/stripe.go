package tcp

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// Streams are the connections that carry the messages between two ranks.
const (
	// MaxStreams is the maximum number of streams.
	MaxStreams = 8
	// AutoStreams is the default number of streams. It was the fastest where we measured:
	// on one host memory is the bottleneck, and on a network that does not limit each
	// connection one stream fills the link. docs/benchmarks.md has the figures, also for
	// networks that do limit each connection.
	AutoStreams = 1
)

// leastStripe is the minimum number of bytes in a stripe. A longer message is cut into
// stripes, one for each stream: the first follows the header on the first stream, the
// others travel without a header. Both ends compute the same cuts from the length in the
// header and the number of streams, which the handshake compares. The stripes on each
// stream are in the order of their messages. MaxStreams stripes of this length make up one
// segment between hosts. Only tests change it.
var leastStripe = 32 << 10

// stripeAlign divides the offset of every stripe. MaxStreams times this is at most
// leastStripe, so rounding leaves no stripe empty.
const stripeAlign = 32

// stripes returns the number of stripes of a message with the given length.
func stripes(bytes, streams int) int { return max(1, min(streams, bytes/leastStripe)) }

// stripe returns the range [lo, hi) of the i-th of n stripes. If n is what stripes
// returned, and more than 1, no stripe is empty.
func stripe(i, n, bytes int) (lo, hi int) {
	each := ((bytes+n-1)/n + stripeAlign - 1) / stripeAlign * stripeAlign
	return min(i*each, bytes), min((i+1)*each, bytes)
}

// pieces appends the bytes [lo, hi) of the concatenated parts to list, without copying.
func pieces(list, parts [][]byte, lo, hi int) [][]byte {
	for _, p := range parts {
		if a, b := max(lo, 0), min(hi, len(p)); a < b {
			list = append(list, p[a:b])
		}
		lo, hi = lo-len(p), hi-len(p)
	}
	return list
}

// checkLength returns an error if parts do not have the length that h announces.
func checkLength(h *collective.Header, parts [][]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n != int(h.Len) {
		return fmt.Errorf("tcp: the buffers hold %d bytes, but the payload has %d", n, h.Len)
	}
	return nil
}

// Streams returns the number of streams over which a message of the given length
// travels.
func (t *Transport) Streams(bytes int) int { return stripes(bytes, t.streams) }
