package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// No count, however wrong, leads outside the ring.
func TestRingIsBounded(t *testing.T) {
	l := ring{data: make([]byte, 256)}
	for _, count := range []uint64{0, 1, 255, 256, 1 << 40, ^uint64(0)} {
		require.LessOrEqual(t, len(l.at(count, 1<<20)), 256)
	}
	require.Len(t, l.at(250, 64), 6, "it ends at the end of the ring")
}

// A tail that cannot be, which another process may have written, does not lead the
// sender outside the ring.
func TestRingWithWrongTail(t *testing.T) {
	for _, tail := range []uint64{0, 1000 - 257, 1001, 1 << 40, ^uint64(0)} {
		for _, begun := range []bool{false, true} {
			head := uint64(1000)
			l := outRing{ring{head: &head, tail: &tail, data: make([]byte, 256)}, 1000}
			var m message
			m.fill(&collective.Header{}, [][]byte{make([]byte, 10)})
			m.begun = begun
			require.NotPanics(t, func() { l.write(&m) }, "tail %d, begun %v", tail, begun)
			require.LessOrEqual(t, l.produced, uint64(1000+l.burst()), "tail %d, begun %v", tail, begun)
		}
	}
}
