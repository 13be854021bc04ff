package gpu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// If the steps of a transformer or a ResNet are recorded and repeated, the parameters equal
// those of nn/cpu, including running statistics; dropout masks are the same.
func TestLayersTrain(t *testing.T) {
	colour := 1
	for name, c := range map[string]struct {
		layer func() nn.Layer
		in    []int
		most  float64
	}{
		"transformer": {func() nn.Layer {
			return nn.Chain(
				&nn.Positions{},
				nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: 2, Causal: true})),
				nn.Residual(nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Gelu{Out: 16, Dropout: .2}, &nn.Linear{Out: 8}))),
				&nn.Softmax{InitW: nn.GlorotUniform},
			)
		}, []int{6, 8}, 1e-4},
		"resnet": {func() nn.Layer {
			return nn.Chain(
				nn.Residual(nn.Chain(&nn.Conv2D{Out: 3, Size: 3, Padding: 1}, &nn.BatchNorm2D{})),
				nn.Concatenate(&nn.AvgPool2D{Size: 2}, &nn.MaxPool2D{Size: 2}),
				&nn.Maxout{Out: 6, Normalize: true},
				nn.Add(&nn.Linear{Out: 4}, &nn.Gelu{Out: 4}),
				&nn.Softmax{InitW: nn.GlorotUniform},
			)
		}, []int{3, 6, 6}, 1e-3},
		"columns": {func() nn.Layer {
			return nn.Chain(
				nn.Concatenate(&nn.Embed{Out: 3, Column: &colour, Dropout: .2}, &nn.Columns{Columns: []int{2, 0}}),
				&nn.Relu{Out: 6}, &nn.Softmax{InitW: nn.GlorotUniform},
			)
		}, []int{7}, 1e-4},
	} {
		t.Run(name, func(t *testing.T) {
			host := cpu.New(cpu.Options{})
			want := recordedSteps(t, host, c.layer(), c.in)
			within(t, gpu.Options{}, func(b *gpu.Backend) {
				got := recordedSteps(t, b, c.layer(), c.in)
				for i, q := range want.List {
					require.Less(t, distance(q.Values.Float32s(), read(b, got.List[i].Values)), c.most, q.Name)
				}
			})
			require.NoError(t, host.Close())
		})
	}
}

// recordedSteps trains for five steps, records one of them and repeats it for the others. It
// returns the parameters.
func recordedSteps(t *testing.T, b nn.Backend, l nn.Layer, in []int) *nn.Params {
	const rows, outputs = 8, 4
	builder := nn.NewBuilder(3)
	if len(in) == 1 {
		builder.TakesColumns([]nn.ColumnSpan{{Width: 2}, {Width: 4, Categories: true}, {Width: 1}})
	}
	m, err := nn.BuildClassifier(b, l, in, outputs, builder)
	require.NoError(t, err)
	n, r := rows, rand.New(rand.NewPCG(1, 5))
	for _, d := range in {
		n *= d
	}
	x, labels := make([]float32, n), make([]int32, rows)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range labels {
		labels[i] = r.Int32N(outputs)
	}
	batch := nn.Batch{X: nn.Tensor{Shape: append([]int{rows}, in...), Data: b.Alloc(n)}, Labels: b.AllocInts(rows)}
	b.Copy(batch.X.Data, x)
	b.CopyInts(batch.Labels, labels)
	o := optim.DefaultSGD(.1)
	p, state, hyper := m.Params(), optim.NewState(b, m.Params(), o), b.Alloc(nn.HyperLen)
	h, form := o.Hyper(0)
	h[nn.HyperAverage] = .5
	b.Copy(hyper, h[:])
	replay, err := b.Record("step", func() error {
		if _, _, err := m.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 2}}, batch); err != nil {
			return err
		}
		form.Spend(b, p, state, hyper, 1./rows)
		return nil
	})
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, replay())
	}
	for _, q := range p.List {
		if q.Momentum > 0 {
			average := state.Slots[optim.SlotAverage].Slice(q.Offset, q.Offset+q.Values.Len())
			require.Equal(t, read(b, q.Values), read(b, average), "the average of %s", q.Name)
		}
	}
	return p
}
