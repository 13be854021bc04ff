package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// fuser is an nn.Fuser that makes the calls its methods stand for, and counts its own calls.
type fuser struct {
	nn.Backend
	affine, relu, gate, grads, masks, losses int
}

func (f *fuser) Affine(y, x, w, bias nn.Buffer, relu, gate bool) {
	f.affine++
	rows := y.Len() / bias.Len()
	f.Gemm(y, x, w, rows, bias.Len(), w.Len()/bias.Len(), false, true, 0)
	f.AddBias(y, bias)
	if relu {
		f.relu++
		f.Relu(y, y)
	}
	if gate {
		f.gate++
	}
}

func (f *fuser) AffineGrad(dw, db, dy, x nn.Buffer, _ bool) {
	f.grads++
	f.SumRows(db, dy)
	f.Gemm(dw, dy, x, db.Len(), dw.Len()/db.Len(), dy.Len()/db.Len(), true, false, 1)
}

func (f *fuser) ReluInputGrad(dx, dy, w, x nn.Buffer, rows int) {
	f.masks++
	if rows > 0 {
		f.Gemm(dx, dy, w, rows, dx.Len()/rows, dy.Len()/rows, false, false, 0)
	}
	f.ReluGrad(dx, dx, x, 1)
}

func (f *fuser) SoftmaxLoss(loss, x, labels nn.Buffer) {
	f.losses++
	f.Zero(loss)
	if n := labels.Len(); n > 0 {
		f.Softmax(x, x, x.Len()/n)
		f.CrossEntropy(x, loss, x, labels)
	}
}

// grads runs Learn once on b and returns the gradients.
func grads(t *testing.T, b nn.Backend, train bool, l nn.Layer) []float32 {
	t.Helper()
	const rows, width, classes = 6, 5, 3
	m, err := nn.NewClassifier(b, l, []int{width}, classes, 11)
	require.NoError(t, err)
	x, labels := make([]float32, rows*width), make([]int32, rows)
	for i := range x {
		x[i] = float32(i%11)/5 - 1
	}
	for i := range labels {
		labels[i] = int32(i % classes)
	}
	_, _, err = m.Learn(&nn.Pass{Backend: b, Train: train, Random: nn.Stream{Seed: 2}},
		nn.Batch{X: nn.Tensor{Shape: []int{rows, width}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)})
	require.NoError(t, err)
	return m.Params().Grads.Float32s()
}

// A Fuser does not change the gradients. A Relu leaves its mask to the next layer only if it
// directly follows.
func TestFuser(t *testing.T) {
	softmax := func() nn.Layer { return &nn.Softmax{InitW: nn.GlorotUniform} }
	for name, c := range map[string]struct {
		layer func() nn.Layer
		gates int // while training
	}{
		"relus":           {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, &nn.Relu{Out: 7}, softmax()) }, 2},
		"linear after":    {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, &nn.Linear{Out: 7}, softmax()) }, 1},
		"linear before":   {func() nn.Layer { return nn.Chain(&nn.Linear{Out: 8}, softmax()) }, 0},
		"own dropout":     {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8, Dropout: .5}, softmax()) }, 0},
		"dropout between": {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, &nn.Dropout{Rate: .5}, softmax()) }, 0},
		"own layer norm":  {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8, Normalize: true}, softmax()) }, 0},
		"gelu after":      {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, &nn.Gelu{Out: 7}, softmax()) }, 1},
		"maxout after":    {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, &nn.Maxout{Out: 7}, softmax()) }, 1},
		"residual after":  {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, nn.Residual(&nn.Linear{Out: 8}), softmax()) }, 0},
		"chain between":   {func() nn.Layer { return nn.Chain(&nn.Relu{Out: 8}, nn.Chain(&nn.Relu{Out: 7}, softmax())) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			want := grads(t, cpu.New(cpu.Options{}), true, c.layer())
			f := &fuser{Backend: cpu.New(cpu.Options{})}
			require.Equal(t, want, grads(t, f, true, c.layer()))
			require.Equal(t, c.gates, f.gate)
			require.Equal(t, c.gates, f.masks)
			require.Equal(t, f.affine, f.grads)
			require.Positive(t, f.affine)
			require.Equal(t, 1, f.losses)
			evaluated := &fuser{Backend: cpu.New(cpu.Options{})}
			grads(t, evaluated, false, c.layer())
			require.Zero(t, evaluated.gate, "no backward pass follows")
		})
	}
}

// The test's own Fuser passes the conformance suite.
func TestFuserConforms(t *testing.T) {
	nntest.TestFuser(t, func(*testing.T) nn.Backend { return &fuser{Backend: cpu.New(cpu.Options{})} })
}
