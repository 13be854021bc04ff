package trainer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// The norms of blocks tell of a number that is not finite, wherever it is.
func TestProbe(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	const n = 2*nn.BlockSize + 3
	v := b.Alloc(n)
	p := newProbe(b, n)
	require.True(t, p.finite(v))
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, at := range []int{0, nn.BlockSize, n - 1} {
			v.Float32s()[at] = float32(bad)
			require.False(t, p.finite(v), "%v at %d", bad, at)
			v.Float32s()[at] = -3
		}
	}
	require.True(t, p.finite(v))
}

// A vector lies where the buffer does.
func TestOperand(t *testing.T) {
	x := []float32{1, 2, 3}
	b, ok := Operand(nn.Host(x)).Host()
	require.True(t, ok)
	require.Len(t, b, 12)
	v := Operand(nn.OnDevice(2, 4096, 7, nn.Float32).Slice(1, 4))
	device, addr, ok := v.Device()
	require.True(t, ok)
	require.Equal(t, 2, device)
	require.Equal(t, uintptr(4100), addr)
	require.Equal(t, 3, v.Len())
}
