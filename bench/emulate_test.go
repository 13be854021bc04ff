package bench_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// one is the same batch at every step.
type one struct{ batch nn.Batch }

func (o one) Batch(int) (nn.Batch, error) { return o.batch, nil }

func emulated(t *testing.T, ctx context.Context, took time.Duration) (real trainer.Task, m *bench.Emulated, b nn.Backend) {
	b = cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	model, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{6}, 3, 1)
	require.NoError(t, err)
	rows := one{nn.Batch{X: nn.Tensor{Shape: []int{5, 6}, Data: b.Alloc(30)}, Labels: b.AllocInts(5)}}
	stage := data.Stage[nn.Batch](func([]int32) (nn.Batch, error) { return rows.Batch(0) })
	real = trainer.NewTask(model, rows, data.NewPart(stage, 10, 0, 1, 5))
	m = bench.Emulate(ctx, real, b, took)
	for _, task := range []trainer.Task{real, m} {
		n, err := task.Load(0, 0)
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	return real, m, b
}

// An emulated model takes its time and releases gradients like the real one, last
// parameters first.
func TestEmulated(t *testing.T) {
	const took = 60 * time.Millisecond
	real, m, b := emulated(t, t.Context(), took)
	require.Same(t, real.Params(), m.Params())
	var want, got []int
	_, weight, err := real.Learn(&nn.Pass{Backend: b, Train: true, Final: func(lo int) { want = append(want, lo) }})
	require.NoError(t, err)
	b.Zero(m.Params().Grads)
	var at []time.Duration
	begin := time.Now()
	loss, n, err := m.Learn(&nn.Pass{Backend: b, Train: true, Final: func(lo int) {
		got = append(got, lo)
		at = append(at, time.Since(begin))
	}})
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
	_, m, b := emulated(t, ctx, time.Hour)
	time.AfterFunc(5*time.Millisecond, cancel)
	_, _, err := m.Learn(&nn.Pass{Backend: b})
	require.ErrorIs(t, err, context.Canceled)
}

// Compute that is emulated may take no time, evaluates like its model, and says why it was
// ended.
func TestEmulatedEdges(t *testing.T) {
	real, m, b := emulated(t, t.Context(), 0)
	_, n, err := m.Learn(&nn.Pass{Backend: b})
	require.NoError(t, err, "a time of 0, and no Final")
	require.Equal(t, 5, n)

	counts, want := nn.Counts{}, nn.Counts{}
	require.NoError(t, m.Score(&nn.Pass{Backend: b}, counts))
	require.NoError(t, real.Score(&nn.Pass{Backend: b}, want))
	require.Equal(t, want, counts, "evaluations compute")

	why := errors.New("the rank was asked to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, m, b = emulated(t, ctx, time.Hour)
	released := 0
	_, _, err = m.Learn(&nn.Pass{Backend: b, Final: func(int) { released++ }})
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "bench: emulated compute: ")
	require.Zero(t, released, "no gradient is final before the forward pass is over")
}
