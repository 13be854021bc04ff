package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// No count, however wrong, leads outside the ring.
func TestRingIsBounded(t *testing.T) {
	l := ring{data: make([]byte, 256)}
	for _, count := range []uint64{0, 1, 255, 256, 1 << 40, ^uint64(0)} {
		require.LessOrEqual(t, len(l.at(count, 1<<20)), 256)
	}
	require.Len(t, l.at(250, 64), 6, "it ends at the end of the ring")
}
