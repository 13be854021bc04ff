package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// few are rows of 4 positions with ids from 0 to 5 and classes from 0 to 2.
var few = nn.Sequence{Positions: 4, IDs: 6, Classes: 3}

// causal returns a small transformer whose Softmax does not start at zero.
func causal() nn.Layer {
	return nn.Chain(
		&nn.Embed{Out: 4}, &nn.Positions{},
		nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: 2, Causal: true})),
		nn.EachPosition(nn.Chain(&nn.Gelu{Out: 5, Dropout: .2}, &nn.Softmax{InitW: nn.GlorotUniform})),
	)
}

func newCausal(t *testing.T) (*nn.PositionClassifier, nn.Backend) {
	be := cpu.New(cpu.Options{})
	m, err := nn.NewPositionClassifier(be, causal(), few, 1)
	require.NoError(t, err)
	return m, be
}

// sequences returns a batch of n rows for causal.
func sequences(n int) nn.Batch {
	x, labels, r := make([]int32, n*few.Positions), make([]int32, n*few.Positions), rand.New(rand.NewPCG(4, 4))
	for i := range x {
		x[i], labels[i] = r.Int32N(int32(few.IDs)), r.Int32N(int32(few.Classes))
	}
	return nn.Batch{X: nn.Tensor{Shape: []int{n, few.Positions}, Data: nn.HostInts(x)}, Labels: nn.HostInts(labels)}
}

func TestPositionClassifierGradients(t *testing.T) {
	m, be := newCausal(t)
	nntest.CheckModelGradients(t, m, &nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1}}, sequences(5))
}

// Weight and counts are those of positions. They agree with the probabilities of Predict,
// which knows no dropout.
func TestPositionsCount(t *testing.T) {
	m, be := newCausal(t)
	b := sequences(5)
	_, weight, err := m.Learn(&nn.Pass{Backend: be, Train: true}, b)
	require.NoError(t, err)
	require.Equal(t, 20, weight)
	require.Equal(t, weight, b.Rows()*m.RowWeight())
	got := nn.Counts{}
	require.NoError(t, m.Score(&nn.Pass{Backend: be, Train: true}, b, got))
	probs, err := m.Predict(t.Context(), b.X.Data.Int32s())
	require.NoError(t, err)
	want := nn.Counts{nn.CountRows: 20}
	for i, label := range b.Labels.Int32s() {
		one := probs[3*i : 3*i+3]
		require.InDelta(t, 1, one[0]+one[1]+one[2], 1e-6)
		want[nn.CountLoss] -= math.Log(float64(one[label]))
		if one[label] >= max(one[0], one[1], one[2]) {
			want[nn.CountCorrect]++
		}
	}
	require.InDeltaMapValues(t, want, got, 1e-5)
	require.Len(t, got, len(m.CountNames()))
}

// Positions of a causal model do not see those after them, so a row may be filled up with
// anything to predict from fewer positions.
func TestPredictFromFewerPositions(t *testing.T) {
	m, _ := newCausal(t)
	short, err := m.Predict(t.Context(), []int32{1, 2, 0, 0})
	require.NoError(t, err)
	long, err := m.Predict(t.Context(), []int32{1, 2, 5, 4})
	require.NoError(t, err)
	require.Equal(t, short[:6], long[:6])
	require.NotEqual(t, short[6:], long[6:])
	_, err = m.Predict(t.Context(), []int32{1, 2, 5})
	require.ErrorContains(t, err, "cannot predict from 3 ids; the model takes rows of 4")
	_, err = m.Predict(t.Context(), []int32{1, 2, 5, 6})
	require.ErrorContains(t, err, "id 6 at position 3")
}

func TestSequenceBatchErrors(t *testing.T) {
	m, be := newCausal(t)
	for want, change := range map[string]func(b *nn.Batch){
		"shape [4 2], but the model takes rows of shape [4]":                  func(b *nn.Batch) { b.X.Shape = []int{4, 2} },
		"needs 8 int32, but its Data holds 8 float32":                         func(b *nn.Batch) { b.X.Data = nn.Host(make([]float32, 8)) },
		"2 rows needs one int32 label per position, got 2 int32":              func(b *nn.Batch) { b.Labels = b.Labels.Slice(0, 2) },
		"row 1 of the batch has label 3, but the model has classes 0 to 2":    func(b *nn.Batch) { b.Labels = nn.HostInts([]int32{0, 0, 0, 0, 0, 3, 0, 0}) },
		"row 1 of the batch has id 6 at position 2, but the table has rows 0": func(b *nn.Batch) { b.X.Data = nn.HostInts([]int32{0, 0, 0, 0, 0, 0, 6, 0}) },
	} {
		b := sequences(2)
		change(&b)
		_, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, b)
		require.ErrorContains(t, err, want)
		require.Equal(t, make([]float32, m.Params().Grads.Len()), m.Params().Grads.Float32s())
		require.ErrorContains(t, m.Score(&nn.Pass{Backend: be}, b, nn.Counts{}), want)
	}
}

func TestSequenceDeclareErrors(t *testing.T) {
	one := func(l nn.Layer) nn.Layer { return nn.Chain(&nn.Embed{Out: 4}, l) }
	softmax := func() nn.Layer { return nn.EachPosition(&nn.Softmax{}) }
	forward := few
	forward.Causal = true
	_, err := forward.Declare(causal(), 1)
	require.NoError(t, err)
	for want, c := range map[string]struct {
		layer nn.Layer
		s     nn.Sequence
	}{
		"layers.1: each position sees those after it": {nn.Chain(&nn.Embed{Out: 4}, &nn.SelfAttention{}, softmax()), forward},
		"at least one position, id and class":         {causal(), nn.Sequence{Positions: 4, IDs: 6}},
		"layers.1.layers.0: the last layer is *nn.Linear, but a model of sequences must end in EachPosition of Softmax": {one(nn.EachPosition(&nn.Linear{Out: 3})), few},
		"layers.0.layers.1: rows of input are ids, and only Embed takes ids":                                            {nn.Chain(nn.Concatenate(&nn.Embed{Out: 4}, &nn.Dropout{}), softmax()), few},
		"nn: layers.0: rows of input are ids":                                                                           {nn.Chain(nn.Residual(&nn.Dropout{}), softmax()), few},
		"nn: layers.0.layers.0: rows of input are ids":                                                                  {nn.Chain(nn.EachPosition(&nn.Reshape{}), softmax()), few},
		"rows of shape [4 3]": {one(&nn.Softmax{}), few},
		"layers.1.running_mean is a running statistic, a mean over rows, but":            {nn.Chain(&nn.Embed{Out: 4}, &nn.BatchNorm2D{}, softmax()), few},
		"Rows must be at least 6, not 5, because the rows of input have ids from 0 to 5": {nn.Chain(&nn.Embed{Out: 4, Rows: 5}, softmax()), few},
	} {
		_, err := c.s.Declare(c.layer, 1)
		require.ErrorContains(t, err, want)
		_, err = nn.NewPositionClassifier(cpu.New(cpu.Options{}), c.layer, c.s, 1)
		require.Error(t, err)
	}
}

// The model decides how many ids Embed has, unless the user wants more.
func TestEmbedTakesIDs(t *testing.T) {
	for rows, want := range map[int]int{0: 6, 6: 6, 9: 9} {
		b, err := few.Declare(nn.Chain(&nn.Embed{Out: 4, Rows: rows}, nn.EachPosition(&nn.Softmax{})), 1)
		require.NoError(t, err)
		require.Equal(t, []int{want, 4}, b.Declared()[0].Shape)
	}
}
