package collective_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

func TestRound16(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		t        collective.DType
		in, want []float32
	}{
		{collective.BFloat16, []float32{1, 1 + 1./256, 1 + 3./256, -inf, nan, math.MaxFloat32}, []float32{1, 1, 1 + 1./64, -inf, nan, inf}},
		{collective.Float16, []float32{1, 1 + 1./2048, 1 + 3./2048, -inf, nan, 65520, 0x1p-25, 0x1.8p-24}, []float32{1, 1, 1 + 1./512, -inf, nan, inf, 0, 0x1p-23}},
	} {
		bits, got := make([]uint16, len(c.in)), make([]float32, len(c.in))
		require.NoError(t, collective.Round16(bits, c.in, c.t))
		require.NoError(t, collective.Widen16(got, bits, c.t))
		for i, want := range c.want {
			if want != want {
				require.True(t, got[i] != got[i], "a NaN stays one")
				continue
			}
			require.Equal(t, want, got[i], "%v of %g", c.t, c.in[i])
		}
	}
	require.ErrorContains(t, collective.Round16(make([]uint16, 1), make([]float32, 1), collective.Float32), "not a 16-bit float")
	require.ErrorContains(t, collective.Widen16(make([]float32, 2), make([]uint16, 1), collective.Float16), "the same length")
}

// Bits16 is the inverse of Of16, and gives access to vectors of shared memory.
func TestBits16(t *testing.T) {
	bits := []uint16{1, 2, 3}
	for _, dtype := range []collective.DType{collective.Float16, collective.BFloat16} {
		v := collective.Of16(bits, dtype)
		require.Equal(t, bits, collective.Bits16(v))
		collective.Bits16(v.Slice(1, 2))[0]++
	}
	require.Equal(t, []uint16{1, 4, 3}, bits)
	require.Nil(t, collective.Bits16(collective.Of([]float32{1})))
	require.Nil(t, collective.Bits16(collective.OnDevice(0, 64, 3, collective.Float16)))
	require.Nil(t, collective.Bits16(collective.Vector{}))
}
