package gpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
)

const pixels, classes = 784, 10

// A training is a network with its batch size and number of steps.
type training struct {
	layer        func() nn.Layer
	batch, steps int
}

// The networks of Thinc's MNIST example and of the ConvNet example.
var (
	perceptron = training{func() nn.Layer { return models.ReluReluSoftmax(128, .2) }, 16, 6}
	convnet    = training{models.ConvNet, 3, 3}
)

// A replica is a network with everything that a step needs in its backend's memory.
type replica struct {
	nn.Backend
	training
	t      *testing.T
	m      *nn.Classifier
	random nn.Stream
	x      nn.Buffer
	labels nn.Buffer

	hyper, norms, first, second, average, total nn.Buffer
}

func newReplica(t *testing.T, b nn.Backend, k training) *replica {
	m, err := nn.NewClassifier(b, k.layer(), []int{pixels}, classes, 7)
	require.NoError(t, err)
	n := m.Params().Values.Len()
	return &replica{
		Backend: b, training: k, t: t, m: m, x: b.Alloc(k.batch * pixels), labels: b.AllocInts(k.batch),
		hyper: b.Alloc(nn.HyperLen), norms: b.Alloc(nn.Blocks(n)), first: b.Alloc(n), second: b.Alloc(n), average: b.Alloc(n), total: b.Alloc(1),
	}
}

// load prepares a step: it copies the batch and hyper-parameters to the backend.
func (r *replica) load(step int) {
	random := rand.New(rand.NewPCG(uint64(step), 5))
	x, labels := make([]float32, r.batch*pixels), make([]int32, r.batch)
	for i := range x {
		x[i] = random.Float32()
	}
	for i := range labels {
		labels[i] = random.Int32N(classes)
	}
	r.Copy(r.x, x)
	r.CopyInts(r.labels, labels)
	var h [nn.HyperLen]float32
	h[nn.HyperRate], h[nn.HyperEps], h[nn.HyperClip] = .001*float32(step+1), 1e-8, 1
	h[nn.HyperBeta1], h[nn.HyperMix1], h[nn.HyperBeta2], h[nn.HyperMix2] = .9, .1, .999, .001
	h[nn.HyperAverage] = .5
	r.Copy(r.hyper, h[:])
	r.random = nn.Stream{Seed: 9, Step: uint64(step), First: 3, Stride: 2}
}

// step is a whole training step. Everything that differs between steps is in Buffers,
// except the random stream.
func (r *replica) step() error {
	p := r.m.Params()
	r.Zero(p.Grads)
	loss, rows, err := r.m.Learn(&nn.Pass{Backend: r, Train: true, Random: r.random}, nn.Batch{
		X: nn.Tensor{Shape: []int{r.batch, pixels}, Data: r.x}, Labels: r.labels,
	})
	if err != nil {
		return err
	}
	r.Axpy(r.total, 1, loss)
	r.Scale(p.Grads, 1/float32(rows))
	for _, q := range p.List {
		lo, hi := q.Offset, q.Offset+q.Values.Len()
		norms := r.norms.Slice(0, nn.Blocks(hi-lo))
		r.SquaredNorm(norms, q.Grads, q.Values, r.hyper)
		r.Adam(q.Values, q.Grads, r.first.Slice(lo, hi), r.second.Slice(lo, hi), r.average.Slice(lo, hi), norms, r.hyper)
	}
	return nil
}

// outcome is the result of some steps.
type outcome struct{ weights, average, losses []float32 }

func (r *replica) outcome() outcome {
	return outcome{read(r, r.m.Params().Values), read(r, r.average), read(r, r.total)}
}

// direct runs all steps without recording them.
func direct(t *testing.T, b nn.Backend, k training) outcome {
	r := newReplica(t, b, k)
	for step := range k.steps {
		r.load(step)
		require.NoError(t, r.step())
	}
	return r.outcome()
}

// recorded records the first step and repeats it.
func recorded(t *testing.T, b *gpu.Backend, k training) outcome {
	r := newReplica(t, b, k)
	r.load(0)
	replay, err := b.Record("step", r.step)
	require.NoError(t, err)
	for step := 1; step < k.steps; step++ {
		r.load(step)
		require.NoError(t, b.Redraw("step", r.random))
		require.NoError(t, replay())
	}
	return r.outcome()
}

// Recorded and repeated steps have the same bits as steps that are not recorded, and are
// near those of nn/cpu.
func TestTraining(t *testing.T) {
	for name, k := range map[string]training{"perceptron": perceptron, "convnet": convnet} {
		t.Run(name, func(t *testing.T) {
			var want, graph, plain outcome
			within(t, gpu.Options{}, func(b *gpu.Backend) { want = direct(t, b, k) })
			within(t, gpu.Options{}, func(b *gpu.Backend) { graph = recorded(t, b, k) })
			within(t, gpu.Options{Plain: true}, func(b *gpu.Backend) { plain = recorded(t, b, k) })
			require.Equal(t, want, graph)
			require.Equal(t, want, plain)

			host := cpu.New(cpu.Options{})
			reference := direct(t, host, k)
			require.NoError(t, host.Close())
			near(t, reference.losses, want.losses, 1e-5)
			near(t, reference.weights, want.weights, 1e-3)
			near(t, reference.average, want.average, 1e-3)
			require.Greater(t, want.losses[0], float32(k.batch), "losses of all steps must be summed")
		})
	}
}

// near requires that the distance of two vectors is at most tolerance.
func near(t *testing.T, want, got []float32, tolerance float64) {
	t.Helper()
	require.Len(t, got, len(want))
	require.LessOrEqual(t, distance(want, got), tolerance)
}

// distance returns |want-got| / |want|, in Euclidean norms, or 0 if the vectors are equal.
func distance(want, got []float32) float64 {
	var length, difference float64
	for i, w := range want {
		length += float64(w) * float64(w)
		difference += math.Pow(float64(w)-float64(got[i]), 2)
	}
	if difference == 0 {
		return 0
	}
	return math.Sqrt(difference / length) // may be NaN or infinite
}
