package ner

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The gradient is that of the loss, and follows its definition.
func TestLogLoss(t *testing.T) {
	scores := []float32{.3, -1.2, 2, .7, .1}
	costs := []uint8{costWrong, costNone, impossible, costNone, costWrong}
	d := make([]float32, len(scores))
	loss := logLoss(d, scores, costs, costNone)
	all, good := 0., math.Exp(-1.2)+math.Exp(.7)
	for _, s := range scores {
		all += math.Exp(float64(s))
	}
	require.InDelta(t, math.Log(all/good), loss, 1e-6)
	sum := 0.
	for i := range scores {
		const h = 1. / 256
		moved := append([]float32{}, scores...)
		moved[i] += h
		up := logLoss(make([]float32, len(scores)), moved, costs, costNone)
		moved[i] -= 2 * h
		down := logLoss(make([]float32, len(scores)), moved, costs, costNone)
		require.InDelta(t, (up-down)/(2*h), d[i], 1e-4, "score %d", i)
		sum += float64(d[i])
	}
	require.InDelta(t, 0, sum, 1e-6)
	require.Equal(t, 3, mostLikely(scores, costs), "the highest score is impossible")
}
