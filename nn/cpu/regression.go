package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// SquaredError implements nn.Dense. The sum is taken in float64.
func (b *Backend) SquaredError(dy, loss, y, t nn.Buffer) {
	sum := eachError(dy, y, t, func(e float32) (gradient float32, loss float64) {
		return e, float64(float64(e) * float64(e)) // the conversion forbids a fused multiply-add
	})
	loss.Float32s()[0] += float32(sum / 2)
}

// HuberError implements nn.Dense. The sum is taken in float64.
func (b *Backend) HuberError(dy, loss, y, t nn.Buffer, delta float32) {
	limit := float64(delta)
	sum := eachError(dy, y, t, func(e float32) (gradient float32, loss float64) {
		size := math.Abs(float64(e))
		switch {
		case e > delta:
			return delta, float64(limit * (2*size - limit))
		case e < -delta:
			return -delta, float64(limit * (2*size - limit))
		}
		return e, float64(size * size)
	})
	loss.Float32s()[0] += float32(sum / 2)
}

// AbsoluteError implements nn.Dense. The sum is taken in float64.
func (b *Backend) AbsoluteError(dy, loss, y, t nn.Buffer) {
	sum := eachError(dy, y, t, func(e float32) (gradient float32, loss float64) {
		switch {
		case e > 0:
			return 1, float64(e)
		case e < 0:
			return -1, -float64(e)
		}
		return e, float64(e) // 0 or NaN
	})
	loss.Float32s()[0] += float32(sum)
}

// eachError calls f with the difference of each element of y and t. It sets dy to the
// gradients, unless dy is empty, and returns the sum of the losses.
func eachError(dy, y, t nn.Buffer, f func(e float32) (gradient float32, loss float64)) (sum float64) {
	ys, ds := y.Float32s(), dy.Float32s()
	ts := t.Float32s()[:len(ys)]
	for i, v := range ys {
		gradient, loss := f(v - ts[i])
		sum += loss
		if len(ds) > 0 {
			ds[i] = gradient
		}
	}
	return sum
}
