package nn_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// small returns a classifier for rows of 5 features and 3 classes, and its backend.
func small(t *testing.T, dropout float32) (*nn.Classifier, nn.Backend) {
	be := cpu.New(cpu.Options{})
	l := nn.Chain(&nn.Relu{Out: 8, Dropout: dropout}, &nn.Relu{Out: 6, Dropout: dropout}, &nn.Softmax{InitW: nn.GlorotUniform})
	m, err := nn.NewClassifier(be, l, []int{5}, 3, 1)
	require.NoError(t, err)
	return m, be
}

// rows returns a batch of n rows for small.
func rows(n int) nn.Batch {
	x, labels := make([]float32, 5*n), make([]int32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	return nn.Batch{X: nn.Tensor{Shape: []int{n, 5}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)}
}

func TestClassifierGradients(t *testing.T) {
	for _, dropout := range []float32{0, .3} {
		m, be := small(t, dropout)
		nntest.CheckModelGradients(t, m, &nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1}}, rows(7))
	}
}

func TestLearnAddsGradients(t *testing.T) {
	m, be := small(t, .2)
	p := &nn.Pass{Backend: be, Train: true}
	loss, weight, err := m.Learn(p, rows(4))
	require.NoError(t, err)
	require.Equal(t, 4, weight)
	require.Equal(t, 1, loss.Len())
	once := append([]float32(nil), m.Params().Grads.Float32s()...)
	require.NotEqual(t, make([]float32, len(once)), once)
	_, _, err = m.Learn(p, rows(4))
	require.NoError(t, err)
	for i, g := range m.Params().Grads.Float32s() {
		require.InDelta(t, 2*once[i], g, 1e-5)
	}
}

func TestFinalFallsToZero(t *testing.T) {
	m, be := small(t, 0)
	var calls []int
	p := &nn.Pass{Backend: be, Train: true, Final: func(lo int) { calls = append(calls, lo) }}
	_, _, err := m.Learn(p, rows(4))
	require.NoError(t, err)
	l := m.Params().List
	require.Equal(t, []int{l[4].Offset, l[2].Offset, l[0].Offset, 0}, calls)
}

// When Final(lo) is called, gradients at lo and above already have their final values.
func TestFinalGradientsAreFinal(t *testing.T) {
	m, be := small(t, .1)
	type snapshot struct {
		lo    int
		grads []float32
	}
	var seen []snapshot
	p := &nn.Pass{Backend: be, Train: true, Final: func(lo int) {
		seen = append(seen, snapshot{lo, append([]float32(nil), m.Params().Grads.Float32s()[lo:]...)})
	}}
	_, _, err := m.Learn(p, rows(4))
	require.NoError(t, err)
	for _, s := range seen {
		require.Equal(t, m.Params().Grads.Float32s()[s.lo:], s.grads)
	}
}

func TestScoreCountsWithoutDropout(t *testing.T) {
	m, be := small(t, .9)
	p := &nn.Pass{Backend: be, Train: true}
	b := rows(6)
	c := nn.Counts{}
	require.NoError(t, m.Score(p, b, c))
	probs, err := m.Predict(t.Context(), tensor.New(tensor.WithShape(6, 5), tensor.WithBacking(b.X.Data.Float32s())))
	require.NoError(t, err)
	require.Equal(t, tensor.Shape{6, 3}, probs.Shape())
	want := nn.Counts{nn.CountRows: 6}
	for i, label := range b.Labels.Int32s() {
		row := probs.Data().([]float32)[3*i : 3*i+3]
		require.InDelta(t, 1, row[0]+row[1]+row[2], 1e-6)
		want[nn.CountLoss] -= math.Log(float64(row[label]))
		if row[label] >= max(row[0], row[1], row[2]) {
			want[nn.CountCorrect]++
		}
	}
	require.InDeltaMapValues(t, want, c, 1e-5)
	require.NoError(t, m.Score(p, b, c))
	require.InDelta(t, 2*want[nn.CountLoss], c[nn.CountLoss], 1e-5)
	require.Equal(t, 12., c[nn.CountRows])
	require.Equal(t, make([]float32, m.Params().Grads.Len()), m.Params().Grads.Float32s(), "Score does not change gradients")
}

func TestEmptyBatch(t *testing.T) {
	m, be := small(t, .2)
	last := -1
	p := &nn.Pass{Backend: be, Train: true, Final: func(lo int) { last = lo }}
	loss, weight, err := m.Learn(p, rows(0))
	require.NoError(t, err)
	require.Zero(t, weight)
	require.Zero(t, last)
	require.Equal(t, []float32{0}, loss.Float32s())
	require.Equal(t, make([]float32, m.Params().Grads.Len()), m.Params().Grads.Float32s())
	c := nn.Counts{}
	require.NoError(t, m.Score(p, rows(0), c))
	require.Equal(t, nn.Counts{nn.CountRows: 0, nn.CountLoss: 0, nn.CountCorrect: 0}, c)
}

func TestBatchErrors(t *testing.T) {
	m, be := small(t, 0)
	good := rows(2)
	for _, c := range []struct {
		name   string
		change func(b *nn.Batch)
		want   string
	}{
		{"width", func(b *nn.Batch) { b.X.Shape = []int{2, 4} }, "shape [2 4], but the model takes rows of shape [5]"},
		{"no shape", func(b *nn.Batch) { b.X.Shape = nil }, "shape []"},
		{"too short", func(b *nn.Batch) { b.X.Data = b.X.Data.Slice(0, 9) }, "needs 10 float32, but its Data holds 9"},
		{"integers", func(b *nn.Batch) { b.X.Data = nn.HostInts(make([]int32, 10)) }, "10 int32"},
		{"few labels", func(b *nn.Batch) { b.Labels = b.Labels.Slice(0, 1) }, "2 rows needs one int32 label per row, got 1"},
		{"float labels", func(b *nn.Batch) { b.Labels = nn.Host(make([]float32, 2)) }, "got 2 float32"},
		{"label too large", func(b *nn.Batch) { b.Labels = nn.HostInts([]int32{0, 3}) }, "row 1 of the batch has label 3, but the model has classes 0 to 2"},
		{"label below 0", func(b *nn.Batch) { b.Labels = nn.HostInts([]int32{-1, 0}) }, "row 0 of the batch has label -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := good
			c.change(&b)
			_, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, b)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, m.Score(&nn.Pass{Backend: be}, b, nn.Counts{}), c.want)
		})
	}
	_, _, err := m.Learn(&nn.Pass{}, good)
	require.ErrorContains(t, err, "no Backend")
}

func TestNewClassifierErrors(t *testing.T) {
	be := cpu.New(cpu.Options{})
	for _, c := range []struct {
		layer   nn.Layer
		classes int
		want    string
	}{
		{nn.Chain(&nn.Linear{}), 3, "layers.0: the last layer is *nn.Linear, but a classifier must end in Softmax"},
		{nn.Chain(), 3, "must end in Softmax"},
		{&nn.Softmax{}, 0, "at least one class"},
		{&nn.Softmax{Out: 2}, 3, "Out is 2 but the model needs 3"},
	} {
		_, err := nn.NewClassifier(be, c.layer, []int{4}, c.classes, 1)
		require.ErrorContains(t, err, c.want)
	}
}

func TestPredictErrors(t *testing.T) {
	m, be := small(t, 0)
	_, err := m.Predict(t.Context(), tensor.New(tensor.WithShape(2, 4), tensor.Of(tensor.Float32)))
	require.ErrorContains(t, err, "shape [2 4]")
	_, err = m.Predict(t.Context(), tensor.New(tensor.WithShape(2, 5), tensor.Of(tensor.Float64)))
	require.ErrorContains(t, err, "must hold float32")
	_, err = m.Predict(t.Context(), tensor.New(tensor.WithShape(0, 5), tensor.Of(tensor.Float32)))
	require.EqualError(t, err, "nn: cannot predict: the tensor has no rows")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := tensor.New(tensor.WithShape(2, 5), tensor.Of(tensor.Float32))
	_, err = m.Predict(ctx, x)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, be.Close())
	_, err = m.Predict(t.Context(), x)
	require.ErrorIs(t, err, cpu.ErrClosed)
}

// Learn allocates a few small objects (shapes and closures) but no arrays.
func TestLearnAllocatesLittle(t *testing.T) {
	m, be := small(t, .2)
	p, b := &nn.Pass{Backend: be, Train: true}, rows(16)
	allocs := testing.AllocsPerRun(100, func() {
		if _, _, err := m.Learn(p, b); err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, allocs, 12.)
}

// metered counts the live temporary elements.
type metered struct {
	*cpu.Backend
	live int
}

func (m *metered) Temp(n int) nn.Buffer { m.live += n; return m.Backend.Temp(n) }
func (m *metered) Recycle()             { m.live = 0; m.Backend.Recycle() }

// Repeating a call does not leave more temporary memory alive.
func TestModelRecycles(t *testing.T) {
	be := &metered{Backend: cpu.New(cpu.Options{})}
	m, err := nn.NewClassifier(be, nn.Chain(&nn.Relu{Out: 8}, &nn.Softmax{}), []int{5}, 3, 1)
	require.NoError(t, err)
	x := tensor.New(tensor.WithShape(4, 5), tensor.Of(tensor.Float32))
	for name, call := range map[string]func() error{
		"learn": func() error {
			_, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, rows(4))
			return err
		},
		"score":   func() error { return m.Score(&nn.Pass{Backend: be}, rows(4), nn.Counts{}) },
		"predict": func() error { _, err := m.Predict(t.Context(), x); return err },
	} {
		require.NoError(t, call(), name)
		live := be.live
		require.NoError(t, call(), name)
		require.Equal(t, live, be.live, name)
	}
}

// DeclareClassifier finds, without memory, what would fail later. Softmax may be the last
// layer of chains and of positions.
func TestDeclareClassifier(t *testing.T) {
	declare := func(l nn.Layer) error { return nn.DeclareClassifier(l, []int{4}, 3, nn.NewBuilder(0)) }
	require.NoError(t, declare(nn.Chain(&nn.Linear{Out: 2}, nn.Chain(&nn.Softmax{}))))
	for want, l := range map[string]nn.Layer{
		"nn: layers.1.layers.0: the last layer is *nn.Dropout":               nn.Chain(&nn.Softmax{}, nn.Chain(&nn.Dropout{})),
		"nn: layers.0: Embed takes int32 ids, but the rows hold float32":     nn.Chain(&nn.Embed{Rows: 9, Out: 2}, &nn.Softmax{}),
		"nn: layers.1: rows of input have shape [5], but EachPosition needs": nn.Chain(&nn.Linear{Out: 5}, nn.EachPosition(&nn.Softmax{})),
	} {
		err := declare(l)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*nn.LayerError))
	}
}
