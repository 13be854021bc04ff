package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// Gradients are those of the loss that Learn returns, of every loss.
func TestLossGradients(t *testing.T) {
	for _, loss := range []nn.ClassLoss{nn.CrossEntropy{}, nn.CrossEntropy{Smoothing: .2}} {
		m, be := small(t, 0)
		m.Loss = loss
		nntest.CheckModelGradients(t, m, &nn.Pass{Backend: be, Train: true}, rows(7))
		p, be := newCausal(t)
		p.Loss = loss
		nntest.CheckModelGradients(t, p, &nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1}}, sequences(5))
	}
	for _, loss := range []nn.ValueLoss{nn.SquaredError{}, nn.HuberError{Delta: 1.5}, nn.AbsoluteError{}} {
		m, be := newRegressor(t, nn.Chain(&nn.Gelu{Out: 5}, &nn.Linear{}))
		m.Loss = loss
		nntest.CheckModelGradients(t, m, &nn.Pass{Backend: be, Train: true}, regression(7))
	}
}

// The losses by name are those that models have without one, bit for bit.
func TestLossesOfOld(t *testing.T) {
	learned := func(loss nn.ClassLoss) []float32 {
		m, be := small(t, 0)
		m.Loss = loss
		got, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, rows(7))
		require.NoError(t, err)
		return append(got.Float32s(), m.Params().Grads.Float32s()...)
	}
	require.Equal(t, learned(nil), learned(nn.CrossEntropy{}))
	require.NotEqual(t, learned(nil), learned(nn.CrossEntropy{Smoothing: .1}))
	regressed := func(loss nn.ValueLoss) []float32 {
		m, be := newRegressor(t, nn.Chain(&nn.Linear{}))
		m.Loss = loss
		got, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, regression(7))
		require.NoError(t, err)
		return append(got.Float32s(), m.Params().Grads.Float32s()...)
	}
	require.Equal(t, regressed(nil), regressed(nn.SquaredError{}))
	require.NotEqual(t, regressed(nil), regressed(nn.HuberError{Delta: .1}))
}

// Evaluations count the loss that is minimised, and what metrics need besides it.
func TestLossCounts(t *testing.T) {
	plain, be := small(t, 0)
	smooth, _ := small(t, 0)
	smooth.Loss = nn.CrossEntropy{Smoothing: .2}
	want, got := nn.Counts{}, nn.Counts{}
	for range 2 {
		require.NoError(t, plain.Score(&nn.Pass{Backend: be}, rows(7), want))
		require.NoError(t, smooth.Score(&nn.Pass{Backend: be}, rows(7), got))
	}
	require.Len(t, got, len(smooth.CountNames()))
	require.Equal(t, want[nn.CountLoss], got[nn.CountEntropy])
	require.Equal(t, want[nn.CountCorrect], got[nn.CountCorrect])
	learned, _, err := smooth.Learn(&nn.Pass{Backend: be}, rows(7))
	require.NoError(t, err)
	require.InDelta(t, 2*float64(learned.Float32s()[0]), got[nn.CountLoss], 1e-5)
	require.NotContains(t, want, nn.CountEntropy)

	squares, b := newRegressor(t, nn.Chain(&nn.Linear{}))
	huber, _ := newRegressor(t, nn.Chain(&nn.Linear{}))
	huber.Loss = nn.HuberError{Delta: .5}
	want, got = nn.Counts{}, nn.Counts{}
	for range 2 {
		require.NoError(t, squares.Score(&nn.Pass{Backend: b}, regression(7), want))
		require.NoError(t, huber.Score(&nn.Pass{Backend: b}, regression(7), got))
	}
	require.Len(t, got, len(huber.CountNames()))
	require.Equal(t, 2*want[nn.CountLoss], got[nn.CountErrors])
	require.Less(t, got[nn.CountLoss], want[nn.CountLoss])
	for _, name := range []string{nn.CountRows, nn.CountTargets, nn.CountSquares} {
		require.Equal(t, want[name], got[name])
	}
}

// A smoothed loss is smallest for the smoothed probabilities, which differ from certainty.
func TestSmoothingPrefersDoubt(t *testing.T) {
	_, be := small(t, 0)
	loss := func(right float32) float64 {
		sum := be.Alloc(1)
		rest := (1 - right) / 2
		nn.CrossEntropy{Smoothing: .1}.OfClasses(be, nn.Buffer{}, sum, nn.Host([]float32{rest, right, rest}), nn.HostInts([]int32{1}))
		return float64(sum.Float32s()[0])
	}
	best := -(.9*math.Log(.9) + .1*math.Log(.05))
	require.InDelta(t, best, loss(.9), 1e-6)
	require.Greater(t, loss(.85), best)
	require.Greater(t, loss(.95), best)
}
