package graph_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/models"
)

// closeEnough is the largest permitted difference between gradients, relative to the
// parameter's largest element.
const closeEnough = 1e-4

// nn and gorgonia's automatic differentiation compute the same loss and gradients, from
// the same weights and batch.
func TestEqualsGorgonia(t *testing.T) {
	for _, c := range []struct {
		name    string
		layer   nn.Layer
		network graph.Network
		shape   []int // of one row
		rows    int
	}{
		{"perceptron", models.ReluReluSoftmax(32, 0), graph.ReluReluSoftmax, []int{60}, 16},
		{"perceptron of Thinc's example", models.ReluReluSoftmax(128, 0), graph.ReluReluSoftmax, []int{784}, 32},
		{"convolution", models.ConvNet(), graph.ConvNet, []int{1, 28, 28}, 8},
		{"padding and strides", nn.Chain(
			&nn.Conv2D{Out: 4, Size: 3, Padding: 1}, &nn.Rectify{},
			&nn.Conv2D{Out: 5, Size: 3, Stride: 2}, &nn.MaxPool2D{Size: 2, Stride: 1},
			&nn.Softmax{InitW: nn.FanInUniform},
		), func(b *graph.Builder, x *gorgonia.Node) *gorgonia.Node {
			h := b.Rectify(b.Conv2D("layers.0", x, 1, 1))
			h = b.MaxPool2D(b.Conv2D("layers.2", h, 2, 0), 2, 1, 0)
			return b.Linear("layers.4", h)
		}, []int{2, 9, 9}, 4},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, c.layer, c.network, c.shape, c.rows) })
	}
}

func compare(t *testing.T, layer nn.Layer, network graph.Network, shape []int, rows int) {
	const classes = 10
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, layer, shape, classes, 7)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	jitter(r, m.Params().Values.Float32s()) // softmax starts at 0

	shape = append([]int{rows}, shape...)
	x := make([]float32, tensor.Shape(shape).TotalSize())
	jitter(r, x)
	labels, classOf := make([]int32, rows), make([]int, rows)
	for i := range labels {
		labels[i] = r.Int32N(classes)
		classOf[i] = int(labels[i])
	}
	loss, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, nn.Batch{
		X: nn.Tensor{Shape: shape, Data: nn.Host(x)}, Labels: nn.HostInts(labels),
	})
	require.NoError(t, err)

	weights := graph.Weights{}
	for _, q := range m.Params().List {
		weights[q.Name], err = m.Params().Weight(q.Name)
		require.NoError(t, err)
	}
	wantLoss, want, err := graph.Learn(network, weights, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x)), classOf)
	require.NoError(t, err)
	require.InEpsilon(t, wantLoss, loss.Float32s()[0], closeEnough)
	require.Len(t, want, len(m.Params().List))
	worst := 0.
	for _, q := range m.Params().List {
		require.Equal(t, q.Shape, []int(want[q.Name].Shape()), q.Name)
		worst = max(worst, distance(want[q.Name].Data().([]float32), q.Grads.Float32s()))
		require.Less(t, worst, closeEnough, q.Name)
	}
	t.Logf("losses %v and %v, gradients differ by at most %.1e", loss.Float32s()[0], wantLoss, worst)
}

// jitter changes every element a little.
func jitter(r *rand.Rand, v []float32) {
	for i := range v {
		v[i] += r.Float32()*.4 - .2
	}
}

// distance returns the largest difference of two slices, relative to the largest element,
// which must not be 0.
func distance(want, got []float32) float64 {
	largest, difference := 0., 0.
	for i, w := range want {
		largest = max(largest, math.Abs(float64(w)))
		difference = max(difference, math.Abs(float64(w-got[i])))
	}
	return difference / largest
}

func TestLearnErrors(t *testing.T) {
	dense := func(shape ...int) *tensor.Dense {
		return tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
	}
	linear := func(b *graph.Builder, x *gorgonia.Node) *gorgonia.Node { return b.Linear("a", x) }
	good := graph.Weights{"a.W": dense(2, 3), "a.b": dense(2)}
	for _, c := range []struct {
		name    string
		weights graph.Weights
		labels  []int
		want    string
	}{
		{"missing parameter", graph.Weights{"a.W": dense(2, 3)}, []int{0, 0}, `no parameter "a.b"`},
		{"shapes", graph.Weights{"a.W": dense(2, 4), "a.b": dense(2)}, []int{0, 0}, "graph: "},
		{"labels", good, []int{0}, "got 1 labels for logits of shape (2, 2)"},
		{"class", good, []int{0, 2}, "row 1 has label 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := graph.Learn(linear, c.weights, dense(2, 3), c.labels)
			require.ErrorContains(t, err, c.want)
		})
	}
	loss, _, err := graph.Learn(linear, good, dense(2, 3), []int{0, 1})
	require.NoError(t, err)
	require.InDelta(t, 2*math.Ln2, loss, 1e-6)
}
