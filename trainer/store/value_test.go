package store

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFloats(t *testing.T) {
	wide := []float64{0, math.Copysign(0, -1), math.Pi, math.MaxFloat64}
	got, err := Floats[float64](tensor(t, wide))
	require.NoError(t, err)
	require.Equal(t, wide, got)
	require.True(t, math.Signbit(got[1]))
	single, err := Floats[float32](tensor(t, []float32{1, 2}, 2, 1))
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2}, single)
	_, err = Floats[float32](tensor(t, wide))
	require.EqualError(t, err, "the value must be float32, not float64 [4]")
	_, err = Tensor(wide, 3)
	require.ErrorContains(t, err, "float64 [3] takes 24 bytes, not 32")
	_, err = Floats[float64](Value{Type: Float64, Shape: []int{2}, Data: make([]byte, 15)})
	require.ErrorContains(t, err, "takes 16 bytes, not 15")
}

func TestJoin(t *testing.T) {
	whole, err := Join(tensor(t, []float32{1, 2, 3, 4}, 2, 2), tensor(t, []float32{}, 0, 2), tensor(t, []float32{5, 6}, 1, 2))
	require.NoError(t, err)
	require.Equal(t, tensor(t, []float32{1, 2, 3, 4, 5, 6}, 3, 2), whole)
	for says, parts := range map[string][]Value{
		"nothing to join": nil,
		"part 0 must be a tensor with a dimension to join along, not 1 bytes":  {Raw([]byte{1})},
		"part 1 is float64 [2], which cannot be joined to float32 [2]":         {tensor(t, []float32{1, 2}), tensor(t, []float64{1, 2})},
		"part 1 is float32 [1 2], which cannot be joined to float32 [2]":       {tensor(t, []float32{1, 2}), tensor(t, []float32{1, 2}, 1, 2)},
		"part 1 is float32 [1 1 1], which cannot be joined to float32 [1 2 1]": {tensor(t, []float32{1, 2}, 1, 2, 1), tensor(t, []float32{1}, 1, 1, 1)},
		"part 0: refused: float32 [2] takes 8 bytes, not 0":                    {{Type: Float32, Shape: []int{2}}},
	} {
		_, err := Join(parts...)
		require.EqualError(t, err, says)
	}
}
