//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// windows fit their images exactly, leave a remainder, overlap, or begin outside. The second
// and third are those of the network for MNIST.
var windows = []nn.Window{
	{Channels: 1, Height: 1, Width: 1, Size: 1, Stride: 1},
	{Channels: 1, Height: 28, Width: 28, Size: 3, Stride: 1},
	{Channels: 3, Height: 26, Width: 26, Size: 3, Stride: 3},
	{Channels: 2, Height: 5, Width: 7, Size: 2, Stride: 1},
	{Channels: 3, Height: 4, Width: 9, Size: 3, Stride: 1, Padding: 1},
	{Channels: 2, Height: 3, Width: 2, Size: 3, Stride: 1, Padding: 2},
	{Channels: 2, Height: 9, Width: 8, Size: 3, Stride: 2},
	{Channels: 2, Height: 9, Width: 8, Size: 3, Stride: 2, Padding: 1},
	{Channels: 1, Height: 8, Width: 11, Size: 2, Stride: 3},
}

const rows = 3

// convolutions calls f for each window, with one filter and with three.
func (h *harness) convolutions(f func(s nn.Window, filters, weights int)) {
	for _, s := range windows {
		for _, filters := range []int{1, 3} {
			f(s, filters, filters*s.Channels*s.Size*s.Size)
		}
	}
}

func (h *harness) conv() {
	h.convolutions(func(s nn.Window, filters, weights int) {
		x, w, b := h.normals(rows*s.In()), h.normals(weights), h.normals(filters)
		want := h.cpu.Alloc(rows * filters * s.Plane())
		h.cpu.Conv2D(want, h.host(x), h.host(w), h.host(b), s)
		y := h.room(want.Len())
		h.launch("conv2d", want.Len(), y, upload(h, x), upload(h, w), upload(h, b), int32(rows), int32(filters), NewWindow(s))
		h.same(want, y, "%+v", s)
	})
}

func (h *harness) convInputGrad() {
	h.convolutions(func(s nn.Window, filters, weights int) {
		dy, w := h.normals(rows*filters*s.Plane()), h.normals(weights)
		want := h.cpu.Alloc(rows * s.In())
		h.cpu.Conv2DInputGrad(want, h.host(dy), h.host(w), s)
		dx := h.room(want.Len())
		h.launch("conv2d_input_grad", want.Len(), dx, upload(h, dy), upload(h, w), int32(rows), int32(filters), NewWindow(s))
		h.same(want, dx, "%+v", s)
	})
}

func (h *harness) convGrad() {
	h.convolutions(func(s nn.Window, filters, weights int) {
		dy, x, before, bias := h.normals(rows*filters*s.Plane()), h.normals(rows*s.In()), h.normals(weights), h.normals(filters)
		dw, db := h.host(before), h.host(bias)
		h.cpu.Conv2DGrad(dw, db, h.host(dy), h.host(x), s)
		gotW, gotB, parts := upload(h, before), upload(h, bias), h.room(Shares*(weights+filters))
		h.launch("conv2d_grad_parts", weights+filters, parts, upload(h, dy), upload(h, x), int32(rows), int32(filters), NewWindow(s))
		h.launch("conv2d_grad", weights+filters, gotW, gotB, parts, int32(weights), int32(filters), int32(Shares))
		h.near(dw, gotW, 5e-5, "dw, %+v", s)
		h.near(db, gotB, 5e-5, "db, %+v", s)
	})
}

func (h *harness) pools() {
	for _, s := range windows {
		planes := rows * s.Channels
		x, dy := h.normals(rows*s.In()), h.normals(planes*s.Plane())
		for i := range x { // ties, zeros of both signs, and some NaNs
			x[i] = float32(math.Round(float64(x[i])))
			if h.r.IntN(50) == 0 {
				x[i] = float32(math.NaN())
			}
		}
		y, dx := h.cpu.Alloc(planes*s.Plane()), h.cpu.Alloc(len(x))
		h.cpu.MaxPool(y, h.host(x), s)
		h.cpu.MaxPoolGrad(dx, h.host(dy), h.host(x), y, s)
		gotY, gotDX, dev := h.room(y.Len()), h.room(len(x)), upload(h, x)
		h.launch("max_pool", y.Len(), gotY, dev, int32(planes), NewWindow(s))
		h.same(y, gotY, "%+v", s)
		h.launch("max_pool_grad", len(x), gotDX, upload(h, dy), dev, gotY, int32(planes), NewWindow(s))
		h.same(dx, gotDX, "%+v", s)
	}
}
