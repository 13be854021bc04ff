package optim

import (
	"math"

	"github.com/ringtrain/ringtrain/nn/portable"
)

// A Schedule is a hyper-parameter that may change during training. Its argument is the
// number of updates done so far, 0 for the first update. A nil Schedule is 0. It is a
// pure function, so every worker gets the same value and a resumed run continues with the
// right values. Values should also have the same bits on every processor: see package
// portable, and round products explicitly, as in 1 + float64(x*y). The schedules below are
// Thinc's schedules of the same names.
type Schedule func(step int) float64

// Constant returns a Schedule that is always v.
func Constant(v float64) Schedule { return func(int) float64 { return v } }

// ConstantThen is v for the given number of steps and then another schedule, which
// starts at its own step 0.
func ConstantThen(v float64, steps int, then Schedule) Schedule {
	return func(step int) float64 {
		if step < steps {
			return v
		}
		return then.at(step - steps)
	}
}

// Decaying is base/(1 + decay·(t+step)). t is the offset of the first step, usually 0.
func Decaying(base, decay, t float64) Schedule {
	return func(step int) float64 { return base * (1 / (1 + float64(decay*(t+float64(step))))) }
}

// Compounding is start·compoundˢᵗᵉᵖ, limited by stop: at most stop if start is below it,
// at least stop if start is above it.
func Compounding(start, stop, compound float64) Schedule {
	return func(step int) float64 {
		v := start * portable.Power(compound, step)
		if start > stop {
			return max(v, stop)
		}
		return min(v, stop)
	}
}

// WarmupLinear rises from 0 to rate over warmup steps, then falls to 0 at step
// total and stays there.
func WarmupLinear(rate float64, warmup, total int) Schedule {
	return func(step int) float64 {
		if step < warmup {
			return rate * (float64(step) / float64(max(1, warmup)))
		}
		return rate * max(0, float64(total-step)/float64(max(1, total-warmup)))
	}
}

// SlantedTriangular rises to top over the first cut·steps steps, then falls to top/ratio
// over the remaining steps and stays there (Howard and Ruder, 2018). In Thinc, the rate then
// keeps falling, below 0. Thinc's defaults are cut .1 and ratio 32. t is the offset of the
// first step, usually 0. cut·steps counts as at least 1.
func SlantedTriangular(top float64, steps int, cut, ratio, t float64) Schedule {
	peak := max(1, math.Trunc(float64(steps)*cut))
	return func(step int) float64 {
		at := t + float64(step) + 1
		p := at / peak
		if at >= peak {
			p = max(0, 1-(at-peak)/float64(peak*(1/cut-1)))
		}
		return top * (1 + float64(p*(ratio-1))) * (1 / ratio)
	}
}

// CyclicTriangular rises from low to high in period steps, falls back in as many, and
// repeats (Smith, 2017).
func CyclicTriangular(low, high float64, period int) Schedule {
	return func(step int) float64 {
		at, half := float64(step+1), float64(period)
		cycle := math.Floor(1 + at/(2*half))
		return low + float64((high-low)*max(0, 1-math.Abs(at/half-float64(2*cycle)+1)))
	}
}

// at returns the value at a step, 0 for a nil Schedule.
func (s Schedule) at(step int) float64 {
	if s == nil {
		return 0
	}
	return s(step)
}
