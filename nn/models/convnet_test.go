package models_test

import (
	"fmt"
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

// The network of Ray's parameter server example.
func ExampleConvNet() {
	m, err := nn.NewClassifier(cpu.New(cpu.Options{}), models.ConvNet(), []int{784}, 10, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range m.Params().List {
		fmt.Println(q.Name, q.Shape)
	}
	fmt.Println(m.Params().Count(), "parameters")
	// Output:
	// layers.2.W [3 1 3 3]
	// layers.2.b [3]
	// layers.5.W [10 192]
	// layers.5.b [10]
	// 1960 parameters
}

const side = 12

// bars returns rows of noisy images with a vertical, horizontal or diagonal bar at a
// random position.
func bars(seed uint64, rows int) nn.Batch {
	r := rand.New(rand.NewPCG(seed, 3))
	x, labels := make([]float32, rows*side*side), make([]int32, rows)
	for i := range labels {
		labels[i] = r.Int32N(classes)
		image := x[i*side*side:][:side*side]
		for k := range image {
			image[k] = float32(r.NormFloat64()) * .2
		}
		top, left := r.IntN(side-5), r.IntN(side-5)
		for k := range 6 {
			down := [classes][2]int{{k, 3}, {3, k}, {k, k}, {5 - k, k}}[labels[i]]
			image[(top+down[0])*side+left+down[1]] += 2
		}
	}
	return nn.Batch{X: nn.Tensor{Shape: []int{rows, side * side}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)}
}

func newConvNet(t *testing.T) *replica {
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, models.ConvNet(), []int{side * side}, classes, 42)
	require.NoError(t, err)
	o := adam(.01)
	return &replica{T: t, be: be, m: m, o: o, state: optim.NewState(be, m.Params(), o)}
}

// trainBars trains for some steps, each on a new batch of bars.
func (r *replica) trainBars(steps, rows int) {
	for step := range steps {
		r.be.Zero(r.m.Params().Grads)
		r.learn(bars(uint64(step+10), rows), nn.Stream{Seed: 3, Step: uint64(step)})
		r.be.Scale(r.m.Params().Grads, 1/float32(rows))
		optim.Step(r.o, r.be, r.m.Params(), r.state)
	}
}

func TestConvNetLearns(t *testing.T) {
	r := newConvNet(t)
	r.trainBars(300, 64)
	c := nn.Counts{}
	require.NoError(t, r.m.Score(&nn.Pass{Backend: r.be}, bars(1, 500), c))
	require.Greater(t, c[nn.CountCorrect]/c[nn.CountRows], .9)
}

// The filters are scaled up, so that finite differences seldom change which element of a
// window is the largest.
func TestConvNetGradients(t *testing.T) {
	r := newConvNet(t)
	r.be.Scale(r.m.Params().Lookup("layers.2.W").Values, 8)
	r.be.Scale(r.m.Params().Lookup("layers.5.W").Values, 1./8)
	nntest.CheckModelGradients(t, r.m, &nn.Pass{Backend: r.be, Train: true}, bars(5, 10))
}

// Rows shaped as images give the same result as plain rows.
func TestConvNetTakesImages(t *testing.T) {
	plain := newConvNet(t)
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, models.ConvNet(), []int{1, side, side}, classes, 42)
	require.NoError(t, err)
	batch := bars(5, 3)
	loss := plain.learn(batch, nn.Stream{})
	batch.X.Shape = []int{3, 1, side, side}
	got, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, batch)
	require.NoError(t, err)
	require.Equal(t, loss, float64(got.Float32s()[0]))
	require.Equal(t, plain.m.Params().Grads.Float32s(), m.Params().Grads.Float32s())

	_, err = nn.NewClassifier(be, models.ConvNet(), []int{99}, classes, 1)
	require.ErrorContains(t, err, "layers.0: cannot read rows of shape [99]")
}

// Training has the same bits in every run, for any GOMAXPROCS and any alignment of the
// caller's batch.
func TestConvNetIsReproducible(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []float32
	for i, procs := range []int{1, 2, 2, 5} {
		runtime.GOMAXPROCS(procs)
		r := newConvNet(t)
		r.trainBars(3, 40)
		r.be.Zero(r.m.Params().Grads)
		batch := bars(99, 30)
		room := r.be.Alloc(batch.X.Data.Len() + 16)
		x := room.Slice(i, i+batch.X.Data.Len())
		r.be.Copy(x, batch.X.Data.Float32s())
		batch.X.Data = x
		r.learn(batch, nn.Stream{})
		got := append(append([]float32{}, r.m.Params().Values.Float32s()...), r.m.Params().Grads.Float32s()...)
		if first == nil {
			first = got
		}
		require.Equal(t, first, got)
	}
}

// Final announces gradients as soon as they are final, layer by layer.
func TestConvNetAnnouncesGradients(t *testing.T) {
	r := newConvNet(t)
	params := r.m.Params()
	type call struct {
		lo    int
		grads []float32
	}
	var calls []call
	_, _, err := r.m.Learn(&nn.Pass{Backend: r.be, Train: true, Final: func(lo int) {
		calls = append(calls, call{lo, append([]float32{}, params.Grads.Float32s()...)})
	}}, bars(5, 10))
	require.NoError(t, err)
	var los []int
	for _, c := range calls {
		los = append(los, c.lo)
		require.Equal(t, params.Grads.Float32s()[c.lo:], c.grads[c.lo:])
	}
	require.Equal(t, []int{params.Lookup("layers.5.W").Offset, params.Lookup("layers.2.W").Offset, 0}, los)
}
