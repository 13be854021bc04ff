package gpu_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// An ordeal is the size of a comparison with nn/cpu: its steps, rows per step, and rows to
// evaluate on.
type ordeal struct{ steps, batch, held int }

// compared returns 200 steps on a GPU and few on the emulator, which is slow.
// RINGTRAIN_PARITY_STEPS sets another number of steps.
func compared(t *testing.T) ordeal {
	o := ordeal{20, 16, 100}
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		o = ordeal{200, 128, 2000}
	}
	if text := os.Getenv("RINGTRAIN_PARITY_STEPS"); text != "" {
		var err error
		o.steps, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return o
}

// networks are the networks to compare, with their learning rates.
var networks = map[string]struct {
	layer func() nn.Layer
	rate  float64
}{
	"perceptron": {func() nn.Layer { return models.ReluReluSoftmax(128, .2) }, .001},
	"plain":      {func() nn.Layer { return models.ReluReluSoftmax(128, 0) }, .001},
	"convnet":    {models.ConvNet, .01},
}

// A learner is a network and its optimizer on one backend.
type learner struct {
	nn.Backend
	t     *testing.T
	m     *nn.Classifier
	o     optim.Optimizer
	state *optim.State
}

func newLearner(t *testing.T, b nn.Backend, layer nn.Layer, rate float64) *learner {
	m, err := nn.NewClassifier(b, layer, []int{pixels}, classes, 7)
	require.NoError(t, err)
	o := optim.DefaultAdam()
	o.LearnRate = optim.Constant(rate)
	return &learner{b, t, m, o, optim.NewState(b, m.Params(), o)}
}

// rowsOf returns images of ten patterns with so much noise that some are misclassified.
func rowsOf(seed uint64, rows int) (x []float32, labels []int32) {
	patterns, r := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(seed, 3))
	const side, cell = 28, 7 // all pixels of a cell share a value, so that convolutions can learn
	field := make([]float32, classes*side/cell*side/cell)
	for i := range field {
		field[i] = .5 + .1*float32(patterns.NormFloat64())
	}
	x, labels = make([]float32, rows*pixels), make([]int32, rows)
	for i := range labels {
		labels[i] = r.Int32N(classes)
		for j := range pixels {
			at := (int(labels[i])*side/cell+j/side/cell)*side/cell + j%side/cell
			x[i*pixels+j] = min(1, max(0, field[at]+.5*float32(r.NormFloat64())))
		}
	}
	return x, labels
}

func (l *learner) batch(x []float32, labels []int32) nn.Batch {
	b := nn.Batch{X: nn.Tensor{Shape: []int{len(labels), pixels}, Data: l.Alloc(len(x))}, Labels: l.AllocInts(len(labels))}
	l.Copy(b.X.Data, x)
	l.CopyInts(b.Labels, labels)
	return b
}

// refill overwrites the batch with the rows of a step.
func (l *learner) refill(b nn.Batch, step int) {
	x, labels := rowsOf(uint64(step+100), b.Rows())
	l.Copy(b.X.Data, x)
	l.CopyInts(b.Labels, labels)
}

// gradients computes the gradients of a step, for the mean over its rows, and returns the
// mean loss.
func (l *learner) gradients(b nn.Batch, step int) (loss float32) {
	l.Zero(l.m.Params().Grads)
	sum, rows, err := l.m.Learn(&nn.Pass{Backend: l.Backend, Train: true, Random: nn.Stream{Seed: 9, Step: uint64(step)}}, b)
	require.NoError(l.t, err)
	l.Scale(l.m.Params().Grads, 1/float32(rows))
	return read(l, sum)[0] / float32(rows)
}

func (l *learner) accuracy(b nn.Batch) float64 {
	c := nn.Counts{}
	require.NoError(l.t, l.m.Score(&nn.Pass{Backend: l.Backend}, b, c))
	return c[nn.CountCorrect] / c[nn.CountRows]
}

// If the input of a ReLU is 0 within rounding, it may be positive on only one of the two
// backends, and then only that one passes a gradient. With 64 rows or more this moves
// gradients by at most flipped. It happens to one or two inputs among ten million, so in
// at most mostFlip steps.
const (
	flipped  = 5e-2
	mostFlip = 3 // steps
)

// Each step starts from nn/cpu's weights. The loss and every gradient match those of
// nn/cpu, except in a few steps in which a ReLU flips.
func TestLockstep(t *testing.T) {
	lockstep(t, compared(t), gpu.Options{}, func(host nn.Backend) nn.Backend { return host }, 1e-5, 1e-4)
}

// lockstep compares a backend with these options to nn/cpu, as wrap changes it. loss and
// gradients are the tolerances.
func lockstep(t *testing.T, n ordeal, o gpu.Options, wrap func(nn.Backend) nn.Backend, loss, gradients float64) {
	for name, k := range networks {
		t.Run(name, func(t *testing.T) {
			host := wrap(cpu.New(cpu.Options{}))
			within(t, o, func(b *gpu.Backend) {
				want, got := newLearner(t, host, k.layer(), k.rate), newLearner(t, b, k.layer(), k.rate)
				x, labels := rowsOf(0, n.batch)
				wantBatch, gotBatch := want.batch(x, labels), got.batch(x, labels)
				var first, last float32
				flips := 0
				for step := range n.steps {
					want.refill(wantBatch, step)
					got.refill(gotBatch, step)
					b.Copy(got.m.Params().Values, want.m.Params().Values.Float32s())
					sum := want.gradients(wantBatch, step)
					require.InEpsilon(t, sum, got.gradients(gotBatch, step), loss, "loss of step %d", step)
					worst := 0.
					for i, q := range want.m.Params().List {
						d := distance(q.Grads.Float32s(), read(b, got.m.Params().List[i].Grads))
						require.LessOrEqual(t, d, flipped, "gradient of %s in step %d", q.Name, step)
						worst = max(worst, d)
					}
					if worst > gradients {
						t.Logf("step %d: a gradient is off by %.2g, as if a ReLU had flipped", step, worst)
						flips++
					}
					optim.Step(want.o, host, want.m.Params(), want.state)
					if step == 0 {
						first = sum
					}
					last = sum
				}
				t.Logf("%d steps, in %d of them a ReLU flipped: the loss goes from %v to %v", n.steps, flips, first, last)
				require.LessOrEqual(t, flips, mostFlip, "steps with a gradient that is off by more than %v", gradients)
			})
			require.NoError(t, host.Close())
		})
	}
}

// A flippingHost flips a ReLU in one step: it treats the smallest positive input as not
// positive.
type flippingHost struct {
	nn.Backend
	calls int
}

func (h *flippingHost) ReluGrad(dx, dy, y nn.Buffer, scale float32) {
	if h.calls++; h.calls == 3 {
		values := slices.Clone(y.Float32s())
		least := -1
		for i, v := range values {
			if v > 0 && (least < 0 || v < values[least]) {
				least = i
			}
		}
		values[least] = 0
		y = nn.Host(values)
	}
	h.Backend.ReluGrad(dx, dy, y, scale)
}

func TestLockstepToleratesFlips(t *testing.T) {
	lockstep(t, ordeal{steps: 3, batch: 64}, gpu.Options{}, func(host nn.Backend) nn.Backend { return &flippingHost{Backend: host} }, 1e-5, 1e-4)
}

// Trained independently, both backends reach the same accuracy.
func TestFreeRun(t *testing.T) {
	n := compared(t)
	for name, k := range networks {
		t.Run(name, func(t *testing.T) {
			run := func(b nn.Backend) float64 {
				l := newLearner(t, b, k.layer(), k.rate)
				x, labels := rowsOf(0, n.batch)
				batch := l.batch(x, labels)
				for step := range n.steps {
					l.refill(batch, step)
					l.gradients(batch, step)
					optim.Step(l.o, b, l.m.Params(), l.state)
				}
				x, labels = rowsOf(1, n.held)
				return l.accuracy(l.batch(x, labels))
			}
			host := cpu.New(cpu.Options{})
			want := run(host)
			require.NoError(t, host.Close())
			var got float64
			within(t, gpu.Options{}, func(b *gpu.Backend) { got = run(b) })
			t.Logf("accuracy after %d steps: %.4f, and %.4f on the host", n.steps, got, want)
			// Allow one percentage point, or one row if there are few.
			require.InDelta(t, want, got, max(.01, 1/float64(n.held)))
		})
	}
}
