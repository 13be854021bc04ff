package shm

import (
	"math"
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
			l := outRing{ring: ring{head: &head, tail: &tail, data: make([]byte, 256)}, produced: 1000}
			var m message
			m.fill(&collective.Header{}, [][]byte{make([]byte, 10)})
			m.begun = begun
			require.NotPanics(t, func() { l.write(&m) }, "tail %d, begun %v", tail, begun)
			require.LessOrEqual(t, l.produced, uint64(1000+l.burst()), "tail %d, begun %v", tail, begun)
		}
	}
}

// Whichever way a ring's bytes are copied, they are the right ones, and as many as fit.
func TestRingPut(t *testing.T) {
	from := make([]byte, 40_000)
	for i := range from {
		from[i] = byte(i * i >> 3)
	}
	for _, least := range []int{1, 2000, math.MaxInt} {
		l := outRing{streamLeast: least}
		for n := range 300 {
			l.staging.far = n%3 == 0
			give, room := from[n:n+n*n%len(from)/2], make([]byte, 15_000+n)
			copied := l.put(room[n:], give)
			require.Equal(t, min(len(give), len(room)-n), copied)
			require.Equal(t, give[:copied], room[n:n+copied])
			require.Equal(t, make([]byte, len(room)-n-copied), room[n+copied:])
		}
	}
}
