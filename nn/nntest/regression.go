package nntest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testSquaredError(h *harness) {
	for _, n := range []int{1, 7, 1000, 5000} {
		ys, ts := h.normals(n), h.normals(n)
		y, t := h.upload(ys...), h.upload(ts...)
		loss, d := h.upload(100), h.b.Temp(n)
		want, sum := make([]float64, n), 0.
		for i := range ys {
			want[i] = float64(ys[i]) - float64(ts[i])
			sum += want[i] * want[i] / 2
		}
		h.b.SquaredError(d, loss, y, t)
		h.near(want, d, 1e-6, "%d elements", n)
		h.near([]float64{100 + sum}, loss, 1e-6, "adds to the previous value")

		h.b.SquaredError(nn.Buffer{}, loss, y, t)
		h.near([]float64{100 + 2*sum}, loss, 1e-6, "without gradient")
		h.b.SquaredError(y, loss, y, t)
		require.Equal(h, h.read(d), h.read(y), "in place")
	}
	loss := h.upload(5)
	h.b.SquaredError(nn.Buffer{}, loss, h.upload(), h.upload())
	require.Equal(h, []float32{5}, h.read(loss), "nothing to add")
}
