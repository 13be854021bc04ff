package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testSquaredError(h *harness) {
	testErrors(h, h.b.SquaredError, func(e float64) (gradient, loss float64) { return e, e * e / 2 })
}

func testHuberError(h *harness) {
	for _, delta := range []float64{.25, 1.5, 100} {
		testErrors(h, func(dy, loss, y, t nn.Buffer) { h.b.HuberError(dy, loss, y, t, float32(delta)) }, func(e float64) (gradient, loss float64) {
			if math.Abs(e) <= delta {
				return e, e * e / 2
			}
			return math.Copysign(delta, e), delta * (math.Abs(e) - delta/2)
		})
	}
}

func testAbsoluteError(h *harness) {
	testErrors(h, h.b.AbsoluteError, func(e float64) (gradient, loss float64) {
		if e == 0 {
			return 0, 0
		}
		return math.Copysign(1, e), math.Abs(e)
	})
}

// testErrors compares a loss of predictions and targets with its formula, a function of
// their difference.
func testErrors(h *harness, add func(dy, loss, y, t nn.Buffer), formula func(e float64) (gradient, loss float64)) {
	for _, n := range []int{1, 7, 1000, 5000} {
		ys, ts := h.normals(n), h.normals(n)
		if n > 1 {
			ts[1] = ys[1]
		}
		y, t := h.upload(ys...), h.upload(ts...)
		loss, d := h.upload(100), h.b.Temp(n)
		want, sum := make([]float64, n), 0.
		for i := range ys {
			gradient, one := formula(float64(ys[i] - ts[i]))
			want[i] = gradient
			sum += one
		}
		add(d, loss, y, t)
		h.near(want, d, 1e-6, "%d elements", n)
		h.near([]float64{100 + sum}, loss, 1e-6, "adds to the previous value")

		add(nn.Buffer{}, loss, y, t)
		h.near([]float64{100 + 2*sum}, loss, 1e-6, "without gradient")
		add(y, loss, y, t)
		require.Equal(h, h.read(d), h.read(y), "in place")
	}
	loss := h.upload(5)
	add(nn.Buffer{}, loss, h.upload(), h.upload())
	require.Equal(h, []float32{5}, h.read(loss), "nothing to add")

	nan := h.upload(float32(math.NaN()))
	add(nan, loss, nan, h.upload(1))
	require.True(h, math.IsNaN(float64(h.read(nan)[0])), "the gradient of NaN")
	require.True(h, math.IsNaN(float64(h.read(loss)[0])), "the loss of NaN")
}
