package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// twoByThree returns parameters that consist of one W (2, 3).
func twoByThree(t *testing.T) *nn.Params {
	b := nn.NewBuilder(1)
	b.Param("W", []int{2, 3}, nn.Zeros)
	p, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	return p
}

func TestWeightsRoundTrip(t *testing.T) {
	p := twoByThree(t)
	backing := []float32{1, 2, 3, 4, 5, 6}
	require.NoError(t, p.SetWeight("W", tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(backing))))
	backing[0] = 100
	w, err := p.Weight("W")
	require.NoError(t, err)
	require.Equal(t, tensor.Shape{2, 3}, w.Shape())
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, w.Data(), "SetWeight copies")
	w.Data().([]float32)[1] = 100
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, p.List[0].Values.Float32s(), "Weight returns a copy")
}

func TestSetWeightFromOtherLayouts(t *testing.T) {
	p := twoByThree(t)
	want := []float32{1, 2, 3, 4, 5, 6}

	transposed := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float32{1, 4, 2, 5, 3, 6}))
	require.NoError(t, transposed.T())
	require.NoError(t, p.SetWeight("W", transposed))
	require.Equal(t, want, p.List[0].Values.Float32s())

	// AsFortran takes row-major elements and rearranges its argument into column-major order.
	columns := tensor.New(tensor.WithShape(2, 3), tensor.AsFortran([]float32{1, 2, 3, 4, 5, 6}))
	require.Equal(t, []float32{1, 4, 2, 5, 3, 6}, columns.Data())
	require.NoError(t, p.SetWeight("W", columns))
	require.Equal(t, want, p.List[0].Values.Float32s())

	wide := tensor.New(tensor.WithShape(2, 4), tensor.WithBacking([]float32{0, 1, 2, 3, 0, 4, 5, 6}))
	view, err := wide.Slice(nil, tensor.S(1, 4))
	require.NoError(t, err)
	require.NoError(t, p.SetWeight("W", view.(*tensor.Dense)))
	require.Equal(t, want, p.List[0].Values.Float32s())
}

func TestWeightErrors(t *testing.T) {
	p := twoByThree(t)
	_, err := p.Weight("V")
	require.ErrorContains(t, err, `no parameter "V"; the model has W`)
	err = p.SetWeight("W", tensor.New(tensor.WithShape(3, 2), tensor.Of(tensor.Float32)))
	require.ErrorContains(t, err, "cannot set W of shape [2 3] from a tensor of shape [3 2]")
	err = p.SetWeight("W", tensor.New(tensor.WithShape(2, 3), tensor.Of(tensor.Float64)))
	require.ErrorContains(t, err, "float64, but must hold float32")
	require.EqualError(t, p.SetWeight("W", nil), "nn: cannot set W: the tensor is nil")
	require.Equal(t, make([]float32, 6), p.List[0].Values.Float32s(), "nothing changed")

	p.List[0].Values = nn.OnDevice(1, 0, 6, nn.Float32)
	_, err = p.Weight("W")
	require.ErrorContains(t, err, "device 1")
	require.ErrorContains(t, p.SetWeight("W", tensor.New(tensor.WithShape(2, 3), tensor.Of(tensor.Float32))), "device 1")
}
