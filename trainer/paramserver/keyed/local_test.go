package keyed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// shapes are those of a network whose parameters have one element, many blocks, and a last
// block that is not full.
func shapes() map[string][]int {
	return map[string][]int{"layers.0.W": {160, 64}, "layers.0.b": {160}, "layers.1.W": {10, 160}, "layers.1.b": {10}, "scale": {1}}
}

// random returns elements that are the same in every call.
func random(seed uint64, n int) []float32 {
	r, x := rand.New(rand.NewPCG(seed, 1)), make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Pushing gradients gives the bits of the optimizer, in this process and on any number of
// servers. The optimizer updates all parameters at once, and a store each by itself.
func TestEqualsOptimizer(t *testing.T) {
	adam, clipped := optim.DefaultAdam(), optim.DefaultAdam()
	adam.LearnRate = optim.WarmupLinear(.01, 3, 10)
	clipped.GradClip, clipped.L2, clipped.L2IsWeightDecay = optim.Constant(.1), optim.Constant(.01), false
	for name, o := range map[string]optim.Optimizer{"Adam": adam, "clipped": clipped, "RAdam": optim.DefaultRAdam(), "SGD": optim.DefaultSGD(.1)} {
		want := optimized(t, o)
		t.Run(name, func(t *testing.T) { testEqual(t, newLocal(t, o), want) })
		for servers := 1; servers <= 3; servers++ {
			t.Run(fmt.Sprintf("%s, %d servers", name, servers), func(t *testing.T) {
				s := connected(t, collectivetest.Local(t, 1+servers), locals(t, servers, o))
				testEqual(t, s, want)
			})
		}
	}
}

// steps is enough for all forms of RAdam.
const steps = 8

// gradient returns the gradient of a parameter in a step.
func gradient(key string, step, n int) []float32 { return random(uint64(100*step+len(key)), n) }

// optimized returns the values after steps of o.
func optimized(t *testing.T, o optim.Optimizer) map[string][]float32 {
	b, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	defer b.Close()
	for key, shape := range shapes() {
		builder.Param(key, shape, nn.Zeros)
	}
	p, err := builder.Build(b)
	require.NoError(t, err)
	for _, q := range p.List {
		b.Copy(q.Values, random(7, q.Values.Len()))
	}
	state := optim.NewState(b, p, o)
	for step := range steps {
		for _, q := range p.List {
			b.Copy(q.Grads, gradient(q.Name, step, q.Grads.Len()))
		}
		optim.Step(o, b, p, state)
	}
	values := make(map[string][]float32)
	for _, q := range p.List {
		values[q.Name] = append([]float32(nil), q.Values.Float32s()...)
	}
	return values
}

// testEqual trains in a store and compares.
func testEqual(t *testing.T, s Store, want map[string][]float32) {
	ctx := t.Context()
	for key, shape := range shapes() {
		_, err := s.Set(ctx, key, tensor(t, random(7, len(want[key])), shape...), 0)
		require.NoError(t, err)
	}
	for step := range steps {
		var gradients []Gradient
		for key, shape := range shapes() {
			gradients = append(gradients, Gradient{key, tensor(t, gradient(key, step, len(want[key])), shape...)})
		}
		require.NoError(t, s.Push(ctx, gradients...))
	}
	for key := range shapes() {
		v, version, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.EqualValues(t, 1+steps, version)
		require.Equal(t, want[key], floats(t, v), key)
	}
}

// Set keeps the moments and the step of the optimizer.
func TestSetKeepsState(t *testing.T) {
	o := optim.DefaultAdam()
	s, g := newLocal(t, o), Gradient{"w", tensor(t, []float32{1, -2, 3})}
	ctx := t.Context()
	_, err := s.Set(ctx, "w", tensor(t, []float32{1, 1, 1}), 0)
	require.NoError(t, err)
	require.NoError(t, s.Push(ctx, g))
	first, version, err := s.Get(ctx, "w")
	require.NoError(t, err)
	_, err = s.Set(ctx, "w", tensor(t, make([]float32, 3)), version)
	require.NoError(t, err)
	_, err = s.Set(ctx, "w", first, version+1)
	require.NoError(t, err)
	require.NoError(t, s.Push(ctx, g))

	plain := newLocal(t, o)
	_, err = plain.Set(ctx, "w", tensor(t, []float32{1, 1, 1}), 0)
	require.NoError(t, err)
	require.NoError(t, plain.Push(ctx, g, g))
	want, _, err := plain.Get(ctx, "w")
	require.NoError(t, err)
	got, _, err := s.Get(ctx, "w")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Pull allocates nothing if nothing has changed, nor for values that it has memory for.
func TestPullAllocatesNothing(t *testing.T) {
	s, ctx := newLocal(t, optim.DefaultSGD(.1)), t.Context()
	var copies []Copy
	for key := range shapes() {
		_, err := s.Set(ctx, key, tensor(t, make([]float32, 100)), 0)
		require.NoError(t, err)
		copies = append(copies, Copy{Key: key})
	}
	pull := func() {
		if _, err := s.Pull(ctx, copies); err != nil {
			t.Error(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(10, pull))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for i := range copies {
			copies[i].Version = 0
		}
		pull()
	}))
}

// A failure of the backend leaves the value as it was.
func TestBackendFails(t *testing.T) {
	b, ctx := cpu.New(cpu.Options{}), t.Context()
	s := NewLocal(b, optim.DefaultSGD(.1))
	_, err := s.Set(ctx, "w", tensor(t, []float32{1}), 0)
	require.NoError(t, err)
	g := Gradient{"w", tensor(t, []float32{1})}
	require.NoError(t, s.Push(ctx, g))
	before, version, err := s.Get(ctx, "w")
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.ErrorIs(t, s.Push(ctx, g), cpu.ErrClosed)
	_, err = s.Set(ctx, "w", tensor(t, []float32{5}), store.Any)
	require.ErrorIs(t, err, cpu.ErrClosed)
	after, now, err := s.Get(ctx, "w")
	require.NoError(t, err)
	require.Equal(t, version, now)
	require.Equal(t, before, after)
}
