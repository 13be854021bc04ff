package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// curve returns numbers that cover the range of Φ and some that exceed it, and their
// number.
func (h *harness) curve() []float32 {
	x := h.normals(500)
	for i := range x {
		x[i] *= 3
	}
	return append(x, 0, float32(math.Copysign(0, -1)), 1e-20, -1e-20, 5, -5, 13, -13, 40, -40, 1e20, -1e20)
}

func testGelu(h *harness) {
	x := h.curve()
	dy := h.normals(len(x))
	want, grad := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range wide(x) {
		cumulative := math.Erfc(-v/math.Sqrt2) / 2
		want[i] = v * cumulative
		grad[i] = float64(dy[i]) * (cumulative + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi))
	}
	in, y, d := h.upload(x...), h.b.Temp(len(x)), h.b.Temp(len(x))
	h.b.Gelu(y, in)
	h.near(want, y, 1e-6)
	h.b.GeluGrad(d, h.upload(dy...), in)
	h.near(grad, d, 2e-6)
	in2 := h.upload(x...)
	h.b.Gelu(in2, in2)
	require.Equal(h, h.read(y), h.read(in2), "in place")
	in2 = h.upload(dy...)
	h.b.GeluGrad(in2, in2, in)
	require.Equal(h, h.read(d), h.read(in2), "in place")

	inf := float32(math.Inf(1))
	ends := h.upload(inf, -inf, float32(math.NaN()))
	h.b.Gelu(ends, ends)
	got := h.read(ends)
	require.True(h, math.IsInf(float64(got[0]), 1) && got[2] != got[2], "%v", got)
	h.b.Gelu(h.upload(), h.upload()) // no rows
}

func testMaxout(h *harness) {
	for _, pieces := range []int{1, 2, 3, 5} {
		const outputs = 70
		x, dy := h.normals(outputs*pieces), h.normals(outputs)
		want, grad := make([]float64, outputs), make([]float64, len(x))
		for i := range want {
			best := i * pieces
			for k := range pieces {
				if x[i*pieces+k] > x[best] {
					best = i*pieces + k
				}
			}
			want[i], grad[best] = float64(x[best]), float64(dy[i])
		}
		in, y, dx := h.upload(x...), h.b.Temp(outputs), h.b.Temp(len(x))
		h.b.Maxout(y, in, pieces)
		require.Equal(h, want, wide(h.read(y)), "%d pieces", pieces)
		h.b.MaxoutGrad(dx, h.upload(dy...), in, pieces)
		require.Equal(h, grad, wide(h.read(dx)), "%d pieces", pieces)
		h.b.MaxoutGrad(in, h.upload(dy...), in, pieces)
		require.Equal(h, grad, wide(h.read(in)), "%d pieces, in place", pieces)
	}
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, c := range []struct{ x, dx []float32 }{
		{[]float32{2, 2, 1}, []float32{5, 0, 0}},
		{[]float32{1, 2, 2}, []float32{0, 5, 0}},
		{[]float32{zero, 0, zero}, []float32{5, 0, 0}},
		{[]float32{-inf, -inf, -inf}, []float32{5, 0, 0}},
		{[]float32{1, nan, 2}, []float32{0, 0, 5}},
		{[]float32{nan, 3, inf}, []float32{5, 0, 0}},
	} {
		dx := h.b.Temp(3)
		h.b.MaxoutGrad(dx, h.upload(5), h.upload(c.x...), 3)
		require.Equal(h, c.dx, h.read(dx), "of %v", c.x)
	}
	h.b.Maxout(h.upload(), h.upload(), 3) // no rows
}

func testAvgPool(h *harness) {
	for _, s := range windows {
		const rows = 3
		share := 1 / float64(s.Size*s.Size)
		x, dy := h.normals(rows*s.In()), h.normals(rows*s.Channels*s.Plane())
		want, grad := make([]float64, len(dy)), make([]float64, len(x))
		each(s, rows, func(in, plane, _, out int) {
			at := plane*s.Plane() + out
			want[at] += float64(x[in]) * share
			grad[in] += float64(dy[at]) * share
		})
		xs, dys, y, dx := h.temp(x), h.temp(dy), h.b.Temp(len(want)), h.b.Temp(len(x))
		h.b.AvgPool(y, xs, s)
		h.near(want, y, 1e-6, "%+v", s)
		h.b.AvgPoolGrad(dx, dys, s)
		h.near(grad, dx, 1e-6, "%+v", s)
		h.alone(rows, func(part func(nn.Buffer) nn.Buffer) {
			h.b.AvgPool(part(y), part(xs), s)
			h.b.AvgPoolGrad(part(dx), part(dys), s)
		}, y, dx)
		h.b.Recycle()
	}
}

// alone checks that run gives each row alone the bits that it has in a batch, which results
// hold. run gets a function that returns a row's part of a Buffer.
func (h *harness) alone(rows int, run func(part func(nn.Buffer) nn.Buffer), results ...nn.Buffer) {
	h.Helper()
	var want [][]float32
	for _, r := range results {
		want = append(want, h.read(r))
		h.b.Zero(r)
	}
	for i := range rows {
		run(func(v nn.Buffer) nn.Buffer { return v.Slice(i*v.Len()/rows, (i+1)*v.Len()/rows) })
	}
	for i, r := range results {
		require.Equal(h, want[i], h.read(r), "result %d, row by row", i)
	}
}
