package collective

import "github.com/ringtrain/ringtrain/collective/fold"

// scattered is memory that lies in several places, in order.
type scattered [][]byte

// scatter returns the memory of vectors in host memory.
func scatter(vectors []Vector) scattered {
	s := make(scattered, len(vectors))
	for i, v := range vectors {
		s[i] = v.bytes()
	}
	return s
}

// A cursor goes through scattered memory once, so that a long list of short pieces is not
// searched for every message.
type cursor struct {
	left scattered
	done int // bytes of left[0]
}

// next appends the next n bytes to list, or all that are left.
func (c *cursor) next(list [][]byte, n int) [][]byte {
	for n > 0 && len(c.left) > 0 {
		b := c.left[0][c.done:]
		if len(b) > n {
			c.done += n
			return append(list, b[:n])
		}
		if len(b) > 0 {
			list = append(list, b)
		}
		n -= len(b)
		c.left, c.done = c.left[1:], 0
	}
	return list
}

// copyScattered copies src to dst, which is as long.
func copyScattered(dst, src scattered) {
	var parts [][]byte
	to := cursor{left: dst}
	for _, from := range src {
		parts = to.next(parts[:0], len(from))
		for _, part := range parts {
			fold.CopyPast(part, from[:len(part)])
			from = from[len(part):]
		}
	}
}
