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
	p := newDeviceFinite(b, v, 2)
	suspects := func() []span {
		p.queue(nn.BlockSize+1, n)
		p.queue(0, nn.BlockSize+1)
		return p.suspects()
	}
	require.Empty(t, suspects())
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at, block := range map[int]span{
			0: {0, nn.BlockSize}, nn.BlockSize: {nn.BlockSize, nn.BlockSize + 1}, nn.BlockSize + 1: {nn.BlockSize + 1, 2*nn.BlockSize + 1}, n - 1: {2*nn.BlockSize + 1, n},
		} {
			v.Float32s()[at] = float32(bad)
			require.Equal(t, []span{block}, suspects(), "%v at %d", bad, at)
			v.Float32s()[at] = -3
		}
	}
	require.Empty(t, suspects())
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
