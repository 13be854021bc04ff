package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Schedule
		want []float64
	}{
		{"nil", nil, []float64{0, 0}},
		{"constant", Constant(.5), []float64{.5, .5}},
		{"constant then", ConstantThen(.1, 2, Compounding(1, 3, 2)), []float64{.1, .1, 1, 2, 3, 3}},
		{"constant then nil", ConstantThen(.1, 1, nil), []float64{.1, 0}},
		{"decaying", Decaying(.001, 1e-4, 0), []float64{.001, .000999900009999, .000999800039992, .000999700089973}},
		{"decaying with offset", Decaying(1, 1, 1), []float64{1. / 2, 1. / 3}},
		{"compounding", Compounding(1, 32, 1.5), []float64{1, 1.5, 2.25, 3.375, 5.0625}},
		{"compounding down", Compounding(1, .3, .5), []float64{1, .5, .3, .3}},
		{"warmup", WarmupLinear(.01, 2, 6), []float64{0, .005, .01, .0075, .005, .0025, 0, 0}},
		{"no warmup", WarmupLinear(1, 0, 2), []float64{1, .5, 0}},
		{"only warmup", WarmupLinear(1, 2, 2), []float64{0, .5, 0}},
		{"slanted", SlantedTriangular(.1, 20, .1, 10, 0), []float64{.055, .1, .095, .09}},
		{"slanted, after the end", SlantedTriangular(.1, 4, .5, 10, 0), []float64{.055, .1, .055, .01, .01, .01}},
		{"slanted, all at once", SlantedTriangular(.1, 4, .1, 10, 0), []float64{.1, .09, .08}},
		{"cyclic", CyclicTriangular(1, 3, 2), []float64{2, 3, 2, 1, 2, 3, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for step, want := range c.want {
				require.InDelta(t, want, c.s.at(step), 1e-9, "step %d", step)
			}
		})
	}
}

// A step's value does not depend on earlier calls, and equals the recurrence of
// Thinc's generator.
func TestSchedulesEqualGenerators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start, compound := rapid.Float64Range(1e-4, 1).Draw(t, "start"), rapid.Float64Range(.5, 1.5).Draw(t, "compound")
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		s, curr := Compounding(start, 2, compound), start
		for step := range steps {
			require.InEpsilon(t, min(curr, 2), s(step), 1e-12)
			curr *= compound
		}
		warmup, total := rapid.IntRange(0, 20).Draw(t, "warmup"), rapid.IntRange(1, 40).Draw(t, "total")
		w := WarmupLinear(start, warmup, total)
		for step := range steps {
			v := w(step)
			require.False(t, math.IsNaN(v) || v < 0 || v > start*(1+1e-12)*max(1, float64(total)/float64(max(1, total-warmup))), "%v at %d", v, step)
		}
	})
}
