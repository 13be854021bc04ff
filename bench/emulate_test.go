package bench_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
)

func emulated(t *testing.T, ctx context.Context, took time.Duration) (real nn.Model, m *bench.Emulated, b nn.Backend, batch nn.Batch) {
	b = cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	real, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{6}, 3, 1)
	require.NoError(t, err)
	batch = nn.Batch{X: nn.Tensor{Shape: []int{5, 6}, Data: b.Alloc(30)}, Labels: b.AllocInts(5)}
	return real, bench.Emulate(ctx, real, b, took), b, batch
}

// An emulated model takes its time and releases gradients like the real one, last
// parameters first.
func TestEmulated(t *testing.T) {
	const took = 60 * time.Millisecond
	real, m, b, batch := emulated(t, t.Context(), took)
	require.Same(t, real.Params(), m.Params())
	var want, got []int
	_, weight, err := real.Learn(&nn.Pass{Backend: b, Train: true, Final: func(lo int) { want = append(want, lo) }}, batch)
	require.NoError(t, err)
	b.Zero(m.Params().Grads)
	var at []time.Duration
	begin := time.Now()
	loss, n, err := m.Learn(&nn.Pass{Backend: b, Train: true, Final: func(lo int) {
		got = append(got, lo)
		at = append(at, time.Since(begin))
	}}, batch)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), took)
	require.Equal(t, weight, n)
	require.Zero(t, loss.Float32s()[0])
	require.Equal(t, 1, loss.Len())
	for _, lo := range want {
		require.Contains(t, got, lo, "what leaves with the model leaves here")
	}
	require.Zero(t, got[len(got)-1])
	require.True(t, slices.IsSortedFunc(got, func(a, b int) int { return b - a }))
	require.GreaterOrEqual(t, at[0], took/3, "not before the forward pass is over")
	require.Less(t, at[0], at[len(at)-1])
	for _, g := range m.Params().Grads.Float32s() {
		require.Zero(t, g)
	}
}

func TestEmulatedIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, m, b, batch := emulated(t, ctx, time.Hour)
	time.AfterFunc(5*time.Millisecond, cancel)
	_, _, err := m.Learn(&nn.Pass{Backend: b}, batch)
	require.ErrorIs(t, err, context.Canceled)
}
