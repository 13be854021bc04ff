package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

func TestMeasureMemory(t *testing.T) {
	m := bench.MeasureMemory(2, 1<<20+3)
	require.Equal(t, 2, m.Threads)
	require.Equal(t, 1<<20, m.Bytes)
	for _, speed := range []float64{m.Copy, m.Add} {
		require.Greater(t, speed, .01)
		require.Less(t, speed, 1e5)
	}
}

// 2 ranks read and write 1 MB each: that is 4 MB at 40 GB/s.
func TestAllReduceBound(t *testing.T) {
	require.InDelta(t, 100, bench.Memory{Copy: 20, Add: 40}.AllReduceBound(2, 1e6), 1e-9)
	require.InDelta(t, 100, bench.Memory{Copy: 40, Add: 20}.AllReduceBound(2, 1e6), 1e-9)
	require.InDelta(t, 200, bench.Memory{Copy: 40, Add: 20}.AllReduceBound(4, 1e6), 1e-9)
}
