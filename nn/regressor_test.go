package nn_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// regression returns rows of 3 numbers with 2 values to predict from each.
func regression(rows int) nn.Targets {
	r := rand.New(rand.NewPCG(3, uint64(rows)))
	x, y := make([]float32, rows*3), make([]float32, rows*2)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range y {
		y[i] = float32(r.NormFloat64()) + 2
	}
	return nn.Targets{X: nn.Tensor{Shape: []int{rows, 3}, Data: nn.Host(x)}, Y: nn.Tensor{Shape: []int{rows, 2}, Data: nn.Host(y)}}
}

func newRegressor(t *testing.T, l nn.Layer) (*nn.Regressor, nn.Backend) {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m, err := nn.NewRegressor(b, l, []int{3}, 2, 1)
	require.NoError(t, err)
	return m, b
}

func TestRegressorGradients(t *testing.T) {
	m, b := newRegressor(t, nn.Chain(&nn.Gelu{Out: 5}, &nn.Linear{}))
	nntest.CheckModelGradients(t, m, &nn.Pass{Backend: b, Train: true}, regression(7))
}

// The loss is half the squared error, and the counts are those from which R² follows.
func TestRegressorCounts(t *testing.T) {
	m, b := newRegressor(t, nn.Chain(&nn.Linear{InitW: nn.Zeros}))
	require.NoError(t, m.Params().SetWeight("layers.0.b", tensor.New(tensor.WithShape(2), tensor.WithBacking([]float32{1, -1}))))
	batch := nn.Targets{
		X: nn.Tensor{Shape: []int{2, 3}, Data: nn.Host(make([]float32, 6))},
		Y: nn.Tensor{Shape: []int{2, 2}, Data: nn.Host([]float32{3, -1, 1, 4})},
	}
	counts := nn.Counts{}
	for range 2 {
		require.NoError(t, m.Score(&nn.Pass{Backend: b}, batch, counts))
	}
	require.Equal(t, nn.Counts{nn.CountRows: 4, nn.CountLoss: 4 + 25, nn.CountTargets: 14, nn.CountSquares: 2 * (9 + 1 + 1 + 16)}, counts)
	require.ElementsMatch(t, m.CountNames(), []string{nn.CountRows, nn.CountLoss, nn.CountTargets, nn.CountSquares})

	loss, weight, err := m.Learn(&nn.Pass{Backend: b, Train: true}, batch)
	require.NoError(t, err)
	require.Equal(t, 2, weight)
	require.Equal(t, []float32{14.5}, loss.Float32s())
	require.Equal(t, []float32{1 - 3 + 1 - 1, -1 + 1 - 1 - 4}, m.Params().Lookup("layers.0.b").Grads.Float32s(), "prediction minus target")

	y, err := m.Predict(t.Context(), tensor.New(tensor.WithShape(1, 3), tensor.WithBacking([]float32{5, 6, 7})))
	require.NoError(t, err)
	require.Equal(t, []float32{1, -1}, y.Data())
	require.Equal(t, tensor.Shape{1, 2}, y.Shape())
}

func TestRegressorMistakes(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	for want, l := range map[string]nn.Layer{
		"nn: layers.0: Embed takes int32 ids, but the rows hold float32": nn.Chain(&nn.Embed{Rows: 9, Out: 1}, &nn.Linear{Out: 2}),
		"nn: layers.1: a regressor must not end in Softmax":              nn.Chain(&nn.Linear{Out: 2}, &nn.Softmax{}),
		"rows of shape [5]": nn.Chain(&nn.Linear{Out: 5}, &nn.Flatten{}),
	} {
		_, err := nn.NewRegressor(b, l, []int{3}, 2, 1)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*nn.LayerError))
	}
	_, err := nn.NewRegressor(b, nn.Chain(&nn.Linear{}), []int{3}, 0, 1)
	require.ErrorContains(t, err, "at least one output")

	m, err := nn.NewRegressor(b, nn.Chain(&nn.Linear{}), []int{3}, 2, 1)
	require.NoError(t, err)
	for want, change := range map[string]func(b *nn.Targets){
		"rows of shape [3]":                       func(b *nn.Targets) { b.X.Shape = []int{4, 2} },
		"targets of shape [4 2], got shape [4 1]": func(b *nn.Targets) { b.Y = nn.Tensor{Shape: []int{4, 1}, Data: nn.Host(make([]float32, 4))} },
		"of 7 float32":                            func(b *nn.Targets) { b.Y.Data = nn.Host(make([]float32, 7)) },
		"of 8 int32":                              func(b *nn.Targets) { b.Y.Data = nn.HostInts(make([]int32, 8)) },
	} {
		batch := regression(4)
		change(&batch)
		_, _, err := m.Learn(&nn.Pass{Backend: b, Train: true}, batch)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, m.Score(&nn.Pass{Backend: b}, batch, nn.Counts{}), want)
	}
	_, _, err = m.Learn(&nn.Pass{}, regression(4))
	require.ErrorContains(t, err, "no Backend")
}
