package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func TestHostBuffersAlias(t *testing.T) {
	v := []float32{1, 2, 3, 4}
	b := nn.Host(v)
	require.Equal(t, 4, b.Len())
	require.Equal(t, nn.Float32, b.DType())
	require.Nil(t, b.Int32s())
	b.Slice(1, 3).Float32s()[1] = 30
	require.Equal(t, []float32{1, 2, 30, 4}, v)
	require.Equal(t, 2, cap(b.Slice(1, 3).Float32s()), "a slice cannot grow into its neighbour")
	_, _, ok := b.Device()
	require.False(t, ok)

	i := []int32{1, 2, 3}
	c := nn.HostInts(i)
	require.Equal(t, 3, c.Len())
	require.Equal(t, nn.Int32, c.DType())
	require.Nil(t, c.Float32s())
	c.Slice(2, 3).Int32s()[0] = 9
	require.Equal(t, []int32{1, 2, 9}, i)
}

func TestDeviceBuffersCountBytes(t *testing.T) {
	b := nn.OnDevice(3, 1000, 10, nn.Int32).Slice(2, 7)
	device, addr, ok := b.Device()
	require.True(t, ok)
	require.Equal(t, 3, device)
	require.Equal(t, uintptr(1008), addr)
	require.Equal(t, 5, b.Len())
	require.Equal(t, nn.Int32, b.DType())
	require.Nil(t, b.Int32s())
	require.Nil(t, b.Float32s())
}

func TestSliceOutsideBufferPanics(t *testing.T) {
	for _, b := range []nn.Buffer{nn.Host(make([]float32, 3)), nn.OnDevice(0, 8, 3, nn.Float32)} {
		require.NotPanics(t, func() { b.Slice(3, 3) })
		require.Panics(t, func() { b.Slice(2, 4) })
		require.Panics(t, func() { b.Slice(-1, 2) })
		require.Panics(t, func() { b.Slice(2, 1) })
	}
}

func TestZeroBufferIsEmptyFloats(t *testing.T) {
	var b nn.Buffer
	require.Zero(t, b.Len())
	require.Equal(t, nn.Float32, b.DType())
	require.Equal(t, "float32 int32 DType(7)", nn.Float32.String()+" "+nn.Int32.String()+" "+nn.DType(7).String())
}
