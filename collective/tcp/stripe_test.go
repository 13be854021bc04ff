package tcp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stripes make up the whole message, in order, and none is empty, whatever its length. The
// pieces of a list of parts are the same bytes.
func TestStripes(t *testing.T) {
	whole := make([]byte, MaxStreams*leastStripe+5*stripeAlign)
	for i := range whole {
		whole[i] = byte(i * 7 / 3)
	}
	for streams := 1; streams <= MaxStreams; streams++ {
		require.Equal(t, 1, stripes(0, streams))
		require.Equal(t, 1, stripes(2*leastStripe-1, streams))
		require.Equal(t, streams, stripes(1<<30, streams))
		for n := 0; n <= len(whole); n += leastStripe/2 - 1 {
			for _, bytes := range []int{n, n + 1, min(n+leastStripe, len(whole))} {
				checkStripes(t, whole[:min(bytes, len(whole))], streams)
			}
		}
	}
}

func checkStripes(t *testing.T, whole []byte, streams int) {
	parts := [][]byte{nil, whole[:len(whole)/3], {}, whole[len(whole)/3 : len(whole)/2], whole[len(whole)/2:]}
	n, at := stripes(len(whole), streams), 0
	var list [][]byte
	for i := range n {
		lo, hi := stripe(i, n, len(whole))
		require.Equal(t, at, lo)
		if n > 1 {
			require.Greater(t, hi, lo, "stripe %d of %d of %d bytes", i, n, len(whole))
			require.Zero(t, lo%stripeAlign)
		}
		at = hi
		before := len(list)
		list = pieces(list, parts, lo, hi)
		require.True(t, bytes.Equal(whole[lo:hi], bytes.Join(list[before:], nil)))
	}
	require.Equal(t, len(whole), at)
	for _, p := range list {
		require.NotEmpty(t, p)
	}
}
