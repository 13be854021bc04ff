package graph_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A Trainer makes the same gradient descent steps as nn: it runs the graph repeatedly,
// each time on another batch and with zeroed gradients.
func TestTrainerEqualsNN(t *testing.T) {
	for name, c := range map[string]struct {
		network     graph.Network
		inputsFirst bool
	}{
		"outputs first":            {graph.ReluReluSoftmax, false},
		"inputs first, no dropout": {graph.DroppingReluReluSoftmax(0), true},
	} {
		t.Run(name, func(t *testing.T) { compareSteps(t, c.network, c.inputsFirst) })
	}
}

// inputsFirst transposes w.
func inputsFirst(t *testing.T, w *tensor.Dense) *tensor.Dense {
	if w.Dims() == 2 {
		require.NoError(t, w.T())
		require.NoError(t, w.Transpose())
	}
	return w
}

func compareSteps(t *testing.T, network graph.Network, transposed bool) {
	const rows, features, classes, rate = 8, 60, 10, .5
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, models.ReluReluSoftmax(32, 0), []int{features}, classes, 7)
	require.NoError(t, err)
	weights := graph.Weights{}
	for _, q := range m.Params().List {
		w, err := m.Params().Weight(q.Name)
		require.NoError(t, err)
		if weights[q.Name] = w; transposed {
			inputsFirst(t, w)
		}
	}
	trainer, err := graph.NewTrainer(network, weights, []int{rows, features}, classes, graph.SGD(rate, rows))
	require.NoError(t, err)
	defer trainer.Close()

	o := optim.DefaultSGD(rate)
	o.GradClip, o.UseAverages = optim.Constant(0), false
	state := optim.NewState(be, m.Params(), o)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		x, labels, classOf := make([]float32, rows*features), make([]int32, rows), make([]int, rows)
		jitter(r, x)
		for i := range labels {
			labels[i] = r.Int32N(classes)
			classOf[i] = int(labels[i])
		}
		be.Zero(m.Params().Grads)
		want, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, nn.Batch{
			X: nn.Tensor{Shape: []int{rows, features}, Data: nn.Host(x)}, Labels: nn.HostInts(labels),
		})
		require.NoError(t, err)
		targets, err := graph.Targets(classOf, classes)
		require.NoError(t, err)
		loss, err := trainer.Step(tensor.New(tensor.WithShape(rows, features), tensor.WithBacking(x)), targets)
		require.NoError(t, err)
		require.InEpsilon(t, want.Float32s()[0], loss, closeEnough)
		be.Scale(m.Params().Grads, 1./rows)
		optim.Step(o, be, m.Params(), state)
	}
	for _, q := range m.Params().List {
		w := weights[q.Name]
		if transposed {
			inputsFirst(t, w)
		}
		require.Less(t, distance(q.Values.Float32s(), w.Data().([]float32)), closeEnough, q.Name)
	}
}

// Dropout and Adam work: the Trainer learns one batch by heart, and the loss of a network
// varies between runs only if it has dropout.
func TestTrainerLearns(t *testing.T) {
	const rows, features, classes = 16, 20, 4
	losses := func(n graph.Network, transposed bool) (first, last float32) {
		r := rand.New(rand.NewPCG(3, 4))
		dense := func(shape ...int) *tensor.Dense {
			d := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
			jitter(r, d.Data().([]float32))
			return d
		}
		weights := graph.Weights{
			"layers.0.W": dense(32, features), "layers.0.b": dense(32),
			"layers.1.W": dense(32, 32), "layers.1.b": dense(32),
			"layers.2.W": dense(classes, 32), "layers.2.b": dense(classes),
		}
		if transposed {
			for _, w := range weights {
				inputsFirst(t, w)
			}
		}
		trainer, err := graph.NewTrainer(n, weights, []int{rows, features}, classes, graph.Adam(.01, rows))
		require.NoError(t, err)
		defer trainer.Close()
		x := dense(rows, features)
		labels := make([]int, rows)
		for i := range labels {
			labels[i] = r.IntN(classes)
		}
		targets, err := graph.Targets(labels, classes)
		require.NoError(t, err)
		for i := range 100 {
			loss, err := trainer.Step(x, targets)
			require.NoError(t, err)
			if i == 0 {
				first = loss / rows
			}
			last = loss / rows
		}
		return first, last
	}
	first, last := losses(graph.ReluReluSoftmax, false)
	require.InDelta(t, 1.4, first, .2)
	require.Less(t, last, float32(.05))
	again, _ := losses(graph.ReluReluSoftmax, false)
	require.Equal(t, first, again)
	dropped, last := losses(graph.DroppingReluReluSoftmax(.3), true)
	require.NotEqual(t, first, dropped)
	require.Less(t, last, float32(.3))
}

func TestTrainerErrors(t *testing.T) {
	_, err := graph.NewTrainer(graph.ReluReluSoftmax, graph.Weights{}, []int{2, 3}, 2, graph.SGD(.1, 2))
	require.ErrorContains(t, err, `no parameter "layers.0.W"`)

	linear := func(b *graph.Builder, x *gorgonia.Node) *gorgonia.Node { return b.Linear("a", x) }
	dense := func(shape ...int) *tensor.Dense {
		return tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
	}
	trainer, err := graph.NewTrainer(linear, graph.Weights{"a.W": dense(2, 3), "a.b": dense(2)}, []int{4, 3}, 2, graph.SGD(.1, 4))
	require.NoError(t, err)
	defer trainer.Close()
	_, err = trainer.Step(dense(4, 5), dense(4, 2))
	require.ErrorContains(t, err, "graph: ")
}
