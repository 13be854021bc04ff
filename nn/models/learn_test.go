package models_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/nntest"
	"github.com/ringtrain/ringtrain/nn/optim"
)

const (
	width   = 20
	classes = 4
)

// clusters returns rows scattered around one random centre per class.
func clusters(seed uint64, rows int) nn.Batch {
	centres := rand.New(rand.NewPCG(1, 1))
	centre := make([]float32, classes*width)
	for i := range centre {
		centre[i] = float32(centres.NormFloat64())
	}
	r := rand.New(rand.NewPCG(seed, 2))
	x, labels := make([]float32, rows*width), make([]int32, rows)
	for i := range labels {
		labels[i] = r.Int32N(classes)
		for j := range width {
			x[i*width+j] = centre[int(labels[i])*width+j] + float32(r.NormFloat64())
		}
	}
	return nn.Batch{X: nn.Tensor{Shape: []int{rows, width}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)}
}

// replica is a model and its training state.
type replica struct {
	*testing.T
	be    *cpu.Backend
	m     *nn.Classifier
	o     optim.Optimizer
	state *optim.State
}

func newReplica(t *testing.T, o optim.Optimizer, dropout float32) *replica {
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, models.ReluReluSoftmax(32, dropout), []int{width}, classes, 42)
	require.NoError(t, err)
	return &replica{T: t, be: be, m: m, o: o, state: optim.NewState(be, m.Params(), o)}
}

// learn adds the gradients of a batch whose rows s identifies.
func (r *replica) learn(b nn.Batch, s nn.Stream) float64 {
	loss, _, err := r.m.Learn(&nn.Pass{Backend: r.be, Train: true, Random: s}, b)
	require.NoError(r, err)
	return float64(loss.Float32s()[0])
}

// train takes steps over one batch each and returns their mean losses.
func (r *replica) train(steps, rows int) []float64 {
	var losses []float64
	for step := range steps {
		r.be.Zero(r.m.Params().Grads)
		losses = append(losses, r.learn(clusters(uint64(step+10), rows), nn.Stream{Seed: 3, Step: uint64(step)})/float64(rows))
		r.be.Scale(r.m.Params().Grads, 1/float32(rows))
		optim.Step(r.o, r.be, r.m.Params(), r.state)
	}
	return losses
}

func TestModelLearns(t *testing.T) {
	for name, o := range map[string]optim.Optimizer{
		"adam": adam(.01),
		"sgd":  optim.DefaultSGD(.3),
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t, o, .2)
			losses := r.train(80, 64)
			require.InDelta(t, 1.386, losses[0], .001, "softmax starts at zero, so the first loss is ln 4")
			c := nn.Counts{}
			require.NoError(t, r.m.Score(&nn.Pass{Backend: r.be}, clusters(1, 500), c))
			require.Equal(t, 500., c[nn.CountRows])
			require.Less(t, c[nn.CountLoss]/500, .1)
			require.Greater(t, c[nn.CountCorrect]/500, .97)
		})
	}
}

func adam(rate float64) optim.Adam {
	a := optim.DefaultAdam()
	a.LearnRate = optim.Constant(rate)
	return a
}

func TestNamesAndShapes(t *testing.T) {
	r := newReplica(t, adam(.01), .2)
	var names []string
	for _, q := range r.m.Params().List {
		names = append(names, q.Name)
	}
	require.Equal(t, []string{"layers.0.W", "layers.0.b", "layers.1.W", "layers.1.b", "layers.2.W", "layers.2.b"}, names)
	require.Equal(t, []int{32, width}, r.m.Params().List[0].Shape)
	require.Equal(t, []int{classes, 32}, r.m.Params().List[4].Shape)
	require.Equal(t, 32*width+32+32*32+32+classes*32+classes, r.m.Params().Count())

	_, err := nn.NewClassifier(r.be, models.ReluReluSoftmax(0, 0), []int{width}, classes, 1)
	require.ErrorContains(t, err, "layers.0: Out is not set")
}

func TestGradients(t *testing.T) {
	r := newReplica(t, adam(.01), .2)
	r.train(3, 32) // move away from a softmax of zeros, which blocks all gradients
	nntest.CheckModelGradients(t, r.m, &nn.Pass{Backend: r.be, Train: true, Random: nn.Stream{Seed: 1}}, clusters(5, 10))
}

// Training has the same bits in every run and for any GOMAXPROCS. The hidden width makes
// the products large enough for several goroutines.
func TestTrainingIsReproducible(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []float32
	for _, procs := range []int{1, 2, 2, 5} {
		runtime.GOMAXPROCS(procs)
		r := newReplica(t, adam(.01), .3)
		r.train(5, 300)
		if first == nil {
			first = r.m.Params().Values.Float32s()
		}
		require.Equal(t, first, r.m.Params().Values.Float32s())
	}
}

// The gradients of workers that each take every size-th row of a batch add up to the
// gradient of the whole batch, also with dropout.
func TestShardsSumToTheWhole(t *testing.T) {
	const rows, size = 24, 3
	whole := newReplica(t, adam(.01), .3)
	whole.train(3, 32)
	batch := clusters(5, rows)
	whole.be.Zero(whole.m.Params().Grads)
	loss := whole.learn(batch, nn.Stream{Seed: 3, Step: 9})

	shards := newReplica(t, adam(.01), .3)
	shards.train(3, 32)
	shards.be.Zero(shards.m.Params().Grads)
	for rank := range size {
		var x []float32
		var labels []int32
		for i := rank; i < rows; i += size {
			x = append(x, batch.X.Data.Float32s()[i*width:(i+1)*width]...)
			labels = append(labels, batch.Labels.Int32s()[i])
		}
		mine := nn.Batch{X: nn.Tensor{Shape: []int{rows / size, width}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)}
		loss -= shards.learn(mine, nn.Stream{Seed: 3, Step: 9, First: rank, Stride: size})
	}
	require.InDelta(t, 0, loss, 1e-4)
	got := shards.m.Params().Grads.Float32s()
	for i, g := range whole.m.Params().Grads.Float32s() {
		require.InDelta(t, g, got[i], 1e-4)
	}
}
