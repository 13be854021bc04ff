package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// A backward pass leaves the statistics of its rows, times their number, in place of
// gradients. The variance is unbiased. Inside EachPosition, rows are those of the batch.
func TestBatchNormStatistics(t *testing.T) {
	be := cpu.New(cpu.Options{})
	// Channel 0 has 1 to 8, channel 1 is always 3.
	x := be.Alloc(16)
	be.Copy(x, []float32{1, 2, 3, 4, 3, 3, 3, 3, 5, 6, 7, 8, 3, 3, 3, 3})
	for name, c := range map[string]struct {
		layer     nn.Layer
		shape, in []int
		rows      float32
	}{
		"images":    {&nn.BatchNorm2D{}, []int{2, 2, 2, 2}, []int{2, 2, 2}, 2},
		"positions": {nn.EachPosition(&nn.BatchNorm2D{}), []int{1, 2, 2, 2, 2}, []int{2, 2, 2, 2}, 1},
	} {
		p, _ := built(t, c.layer, c.in, nil)
		y, back := c.layer.Forward(&nn.Pass{Backend: be, Train: true}, nn.Tensor{Shape: c.shape, Data: x})
		require.InDelta(t, (1-4.5)/math.Sqrt(5.25+1e-5), y.Data.Float32s()[0], 1e-6, name)
		require.Zero(t, y.Data.Float32s()[4], name)
		back(nn.Tensor{Shape: c.shape, Data: be.Alloc(16)})
		require.InDeltaSlice(t, []float32{4.5 * c.rows, 3 * c.rows}, p.List[2].Grads.Float32s(), 1e-6, name)
		require.InDeltaSlice(t, []float32{6 * c.rows, 0}, p.List[3].Grads.Float32s(), 1e-5, name)
	}
}

// A single value per channel has no variance. Training refuses it, as PyTorch does, but a
// second row or pixel is enough.
func TestBatchNormOfOneValue(t *testing.T) {
	for name, c := range map[string]struct {
		rows, width int
		train, fail bool
	}{
		"one value":   {1, 1, true, true},
		"two rows":    {2, 1, true, false},
		"two pixels":  {1, 2, true, false},
		"no rows":     {0, 1, true, false},
		"not trained": {1, 1, false, false},
	} {
		be, l := cpu.New(cpu.Options{}), nn.Chain(&nn.Rectify{}, &nn.BatchNorm2D{})
		built(t, l, []int{3, 1, c.width}, nil)
		l.Forward(&nn.Pass{Backend: be, Train: c.train}, nn.Tensor{Shape: []int{c.rows, 3, 1, c.width}, Data: be.Alloc(c.rows * 3 * c.width)})
		err := be.Sync(t.Context())
		if !c.fail {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "nn: layers.1: BatchNorm2D must have at least 2 values per channel to train, not 1; choose a batch size", name)
	}
}

// Outside of training, the running statistics are used and do not change.
func TestBatchNormEvaluates(t *testing.T) {
	be, l := cpu.New(cpu.Options{}), &nn.BatchNorm2D{Momentum: .5, Eps: 1}
	p, _ := built(t, l, []int{1, 1, 2}, nil)
	require.Equal(t, float32(.5), p.List[2].Momentum)
	for i, v := range []float32{2, 10, 1, 3} { // G, b, mean, variance
		p.List[i].Values.Float32s()[0] = v
	}
	x := nn.Tensor{Shape: []int{1, 1, 1, 2}, Data: nn.Host([]float32{5, -1})}
	y, back := l.Forward(&nn.Pass{Backend: be}, x)
	require.Equal(t, []float32{14, 8}, y.Data.Float32s())
	require.Equal(t, nn.Tensor{}, back(nn.Tensor{Shape: x.Shape, Data: nn.Host([]float32{1, 1})}))
	require.Zero(t, p.List[2].Grads.Float32s()[0])
	require.Zero(t, p.List[3].Grads.Float32s()[0])
	require.Equal(t, float32(2), p.List[1].Grads.Float32s()[0])
}

// A worker without rows computes nothing, and its gradients are 0.
func TestLayersWithoutRows(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"transformer": {nn.Chain(&nn.Positions{}, nn.Residual(&nn.SelfAttention{}), nn.EachPosition(&nn.Gelu{Out: 3, Dropout: .5, Normalize: true})), []int{4, 3}},
		"images":      {nn.Chain(&nn.Conv2D{Out: 2, Size: 1}, &nn.BatchNorm2D{}, nn.Concatenate(&nn.AvgPool2D{Size: 2}, &nn.MaxPool2D{Size: 2}), &nn.Maxout{Out: 2}), []int{1, 4, 4}},
		"sum":         {nn.Add(&nn.LayerNorm{}, &nn.Relu{Out: 3, Normalize: true}), []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			be := cpu.New(cpu.Options{})
			p, out := built(t, c.layer, c.in, nil)
			y, back := c.layer.Forward(&nn.Pass{Backend: be, Train: true}, nn.Tensor{Shape: append([]int{0}, c.in...), Data: be.Alloc(0)})
			require.Equal(t, append([]int{0}, out...), y.Shape)
			back(nn.Tensor{Shape: y.Shape, Data: be.Temp(0)})
			require.Equal(t, make([]float32, p.Grads.Len()), p.Grads.Float32s())
		})
	}
}
