package nntest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// windows lists images of odd and even sizes, with windows that fit exactly, leave a
// remainder, overlap, or start outside.
var windows = []nn.Window{
	{Channels: 1, Height: 1, Width: 1, Size: 1, Stride: 1},
	{Channels: 1, Height: 28, Width: 28, Size: 3, Stride: 1},
	{Channels: 3, Height: 26, Width: 26, Size: 3, Stride: 3},
	{Channels: 2, Height: 5, Width: 7, Size: 2, Stride: 1},
	{Channels: 2, Height: 7, Width: 5, Size: 5, Stride: 1},
	{Channels: 3, Height: 4, Width: 9, Size: 3, Stride: 1, Padding: 1},
	{Channels: 2, Height: 3, Width: 2, Size: 3, Stride: 1, Padding: 2},
	{Channels: 2, Height: 9, Width: 8, Size: 3, Stride: 2},
	{Channels: 2, Height: 9, Width: 8, Size: 3, Stride: 2, Padding: 1},
	{Channels: 1, Height: 8, Width: 11, Size: 2, Stride: 3},
}

// each calls f for every element of every window of rows images. in is the element's
// index in the batch of images, plane its plane in the batch, tap its index in the
// filter's plane, and out the index of the window in its output plane.
func each(s nn.Window, rows int, f func(in, plane, tap, out int)) {
	for plane := range rows * s.Channels {
		for out := range s.Plane() {
			top, left := out/s.OutWidth()*s.Stride-s.Padding, out%s.OutWidth()*s.Stride-s.Padding
			for tap := range s.Size * s.Size {
				i, j := top+tap/s.Size, left+tap%s.Size
				if i >= 0 && i < s.Height && j >= 0 && j < s.Width {
					f((plane*s.Height+i)*s.Width+j, plane, tap, out)
				}
			}
		}
	}
}

// eachProduct calls f for every product that a convolution of rows images with filters
// adds up, with the indexes of its elements in x, w and y.
func eachProduct(s nn.Window, rows, filters int, f func(x, w, y int)) {
	square := s.Size * s.Size
	each(s, rows, func(in, plane, tap, out int) {
		row, channel := plane/s.Channels, plane%s.Channels
		for o := range filters {
			f(in, (o*s.Channels+channel)*square+tap, (row*filters+o)*s.Plane()+out)
		}
	})
}

func testConv2D(h *harness) {
	for _, s := range windows {
		for _, filters := range []int{1, 3} {
			const rows = 3
			x, w, b := h.normals(rows*s.In()), h.normals(filters*s.Channels*s.Size*s.Size), h.normals(filters)
			want := make([]float64, rows*filters*s.Plane())
			for i := range want {
				want[i] = float64(b[i/s.Plane()%filters])
			}
			eachProduct(s, rows, filters, func(xi, wi, yi int) { want[yi] += float64(x[xi]) * float64(w[wi]) })
			y := h.b.Temp(len(want))
			h.b.Conv2D(y, h.temp(x), h.temp(w), h.temp(b), s)
			h.near(want, y, 1e-5, "%+v", s)
		}
		h.b.Recycle()
	}
	h.b.Conv2D(h.upload(), h.upload(), h.upload(1), h.upload(1), windows[0]) // no rows
}

func testConv2DGrad(h *harness) {
	for i, s := range windows {
		const rows, filters = 3, 2
		x, w := h.normals(rows*s.In()), h.normals(filters*s.Channels*s.Size*s.Size)
		dy := h.normals(rows * filters * s.Plane())
		if i%2 == 1 { // mostly zeros, as behind a pooling layer
			for k := range dy {
				if k%9 != 0 {
					dy[k] = 0
				}
			}
		}
		before := h.normals(len(w) + filters)
		want, dx := wide(before), make([]float64, len(x))
		eachProduct(s, rows, filters, func(xi, wi, yi int) {
			want[wi] += float64(x[xi]) * float64(dy[yi])
			dx[xi] += float64(w[wi]) * float64(dy[yi])
		})
		for k, d := range dy {
			want[len(w)+k/s.Plane()%filters] += float64(d)
		}
		dw, db := h.temp(before[:len(w)]), h.temp(before[len(w):])
		h.b.Conv2DGrad(dw, db, h.temp(dy), h.temp(x), s)
		h.near(want[:len(w)], dw, 1e-4, "%+v adds to dw", s)
		h.near(want[len(w):], db, 1e-4, "%+v adds to db", s)
		got := h.b.Temp(len(x))
		h.b.Conv2DInputGrad(got, h.temp(dy), h.temp(w), s)
		h.near(dx, got, 1e-5, "%+v", s)
		h.b.Recycle()
	}
	dw, db := h.upload(1), h.upload(2)
	h.b.Conv2DGrad(dw, db, h.upload(), h.upload(), windows[0])
	require.Equal(h, []float32{1, 2}, append(h.read(dw), h.read(db)...), "no rows")
}

// TestConv checks the convolutions of a backend as TestBackend does, except that a row alone
// may be rounded differently than in a batch, because libraries choose kernels by the
// number of rows.
func TestConv(t *testing.T, open func(t *testing.T) nn.Backend) {
	for _, c := range []struct {
		name string
		test func(h *harness)
	}{
		{"Conv2D", testConv2D},
		{"Conv2DGrad", testConv2DGrad},
		{"RowsOfImages", func(h *harness) { testRows(h, 1e-4) }},
	} {
		check(t, open, nil, c.name, c.test)
	}
}

func testRowsOfImages(h *harness) { testRows(h, 0) }

// testRows checks that each row alone gives the same as in a batch, wherever it lies in
// memory, within a tolerance or in every bit, and that the gradients of filters add up.
func testRows(h *harness, tolerance float64) {
	const rows, filters = 4, 3
	for _, s := range windows {
		nW, pool := filters*s.Channels*s.Size*s.Size, s.Channels*s.Plane()
		x, dy, dp := h.temp(h.normals(rows*s.In())), h.temp(h.normals(rows*filters*s.Plane())), h.temp(h.normals(rows*pool))
		w, b := h.temp(h.normals(nW)), h.temp(h.normals(filters))
		y, dx := h.b.Temp(dy.Len()), h.b.Temp(x.Len())
		p, dxp := h.b.Temp(dp.Len()), h.b.Temp(x.Len())
		run := func(lo, hi int, grads nn.Buffer) [][]float32 {
			part := func(v nn.Buffer) nn.Buffer { return v.Slice(lo*v.Len()/rows, hi*v.Len()/rows) }
			h.b.Conv2D(part(y), part(x), w, b, s)
			h.b.Conv2DGrad(grads.Slice(0, nW), grads.Slice(nW, nW+filters), part(dy), part(x), s)
			h.b.Conv2DInputGrad(part(dx), part(dy), w, s)
			h.b.MaxPool(part(p), part(x), s)
			h.b.MaxPoolGrad(part(dxp), part(dp), part(x), part(p), s)
			return [][]float32{h.read(part(y)), h.read(part(dx)), h.read(part(p)), h.read(part(dxp))}
		}
		whole, parts := h.b.Alloc(nW+filters), h.b.Alloc(nW+filters)
		all := run(0, rows, whole)
		for r := range rows {
			for k, one := range run(r, r+1, parts) {
				want := all[k][r*len(one) : (r+1)*len(one)]
				if tolerance == 0 {
					require.Equal(h, want, one, "row %d of %+v", r, s)
				} else {
					require.InDeltaSlice(h, want, one, tolerance, "row %d of %+v", r, s)
				}
			}
		}
		h.near(wide(h.read(whole)), parts, 1e-4, "%+v", s)
		h.b.Recycle()
	}
}

func testMaxPool(h *harness) {
	for _, s := range windows {
		const rows = 3
		x := h.normals(rows * s.In())
		want := make([]float32, rows*s.Channels*s.Plane())
		for i := range want {
			want[i] = float32(math.Inf(-1))
		}
		first := make([]int, len(want))
		each(s, rows, func(in, plane, _, out int) {
			if at := plane*s.Plane() + out; x[in] > want[at] {
				want[at], first[at] = x[in], in
			}
		})
		xs, y := h.temp(x), h.b.Temp(len(want))
		h.b.MaxPool(y, xs, s)
		require.Equal(h, want, h.read(y), "%+v", s)

		dy, dx := h.normals(len(want)), make([]float32, len(x))
		dy[0] = 0
		for i, at := range first {
			dx[at] += dy[i]
		}
		got := h.b.Temp(len(x))
		h.b.MaxPoolGrad(got, h.temp(dy), xs, y, s)
		h.near(wide(dx), got, 1e-6, "%+v", s)
		h.b.Recycle()
	}
}

// testMaxPoolTies pools equal elements, zeros of both signs, infinities and NaN.
func testMaxPoolTies(h *harness) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	s := nn.Window{Channels: 1, Height: 2, Width: 2, Size: 2, Stride: 1}
	for _, c := range []struct{ x, dx []float32 }{
		{[]float32{1, 2, 2, 2}, []float32{0, 5, 0, 0}},
		{[]float32{zero, 0, zero, 0}, []float32{5, 0, 0, 0}},
		{[]float32{-inf, -inf, -inf, -inf}, []float32{5, 0, 0, 0}},
		{[]float32{inf, 1, nan, nan}, []float32{0, 0, 5, 0}},
	} {
		x, y, dx := h.upload(c.x...), h.b.Temp(1), h.b.Temp(4)
		h.b.MaxPool(y, x, s)
		h.b.MaxPoolGrad(dx, h.upload(5), x, y, s)
		require.Equal(h, c.dx, h.read(dx), "of %v", c.x)
	}
}
