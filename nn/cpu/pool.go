package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// MaxPool implements nn.Conv.
func (b *Backend) MaxPool(y, x nn.Buffer, s nn.Window) {
	in, out := s.Height*s.Width, s.Plane()
	ys, xs := y.Float32s(), x.Float32s()
	tall := b.temp.take(s.Width)
	for p := range images(xs, in) {
		maxPlane(ys[p*out:][:out], xs[p*in:][:in], tall, s)
	}
}

// MaxPoolGrad implements nn.Conv. It searches for the largest elements again instead of
// storing their positions, and only where dy is not 0.
func (b *Backend) MaxPoolGrad(dx, dy, x, y nn.Buffer, s nn.Window) {
	in, out := s.Height*s.Width, s.Plane()
	dxs, dys, xs, ys := dx.Float32s(), dy.Float32s(), x.Float32s(), y.Float32s()
	clear(dxs)
	for p := range images(xs, in) {
		maxPlaneGrad(dxs[p*in:][:in], dys[p*out:][:out], xs[p*in:][:in], ys[p*out:][:out], s)
	}
}

// maxPlane pools a plane: for each output row it first reduces the rows of the windows to
// one, in tall, and then the columns. The maximum is NaN if any element is NaN.
func maxPlane(y, x, tall []float32, s nn.Window) {
	for i := range s.OutHeight() {
		top, bottom := clip(i*s.Stride-s.Padding, s.Size, s.Height)
		copy(tall, x[top*s.Width:])
		for r := top + 1; r < bottom; r++ {
			largest(tall, x[r*s.Width:])
		}
		line := y[i*s.OutWidth():][:s.OutWidth()]
		if s.Padding == 0 && s.Size == 3 {
			for j := range line {
				window := (*[3]float32)(tall[j*s.Stride:])
				line[j] = max(window[0], window[1], window[2])
			}
			continue
		}
		if s.Padding == 0 { // every window is whole
			for j := range line {
				window := tall[j*s.Stride:][:s.Size]
				best := window[0]
				for _, v := range window[1:] {
					best = max(best, v)
				}
				line[j] = best
			}
			continue
		}
		for j := range line {
			left, right := clip(j*s.Stride-s.Padding, s.Size, s.Width)
			best := tall[left]
			for _, v := range tall[left+1 : right] {
				best = max(best, v)
			}
			line[j] = best
		}
	}
}

func maxPlaneGrad(dx, dy, x, y []float32, s nn.Window) {
	at := 0
	for i := range s.OutHeight() {
		top, bottom := clip(i*s.Stride-s.Padding, s.Size, s.Height)
		for j := range s.OutWidth() {
			if d := dy[at]; d != 0 {
				left, right := clip(j*s.Stride-s.Padding, s.Size, s.Width)
				dx[firstEqual(y[at], x, top*s.Width, bottom*s.Width, left, right, s.Width)] += d
			}
			at++
		}
	}
}

// firstEqual returns the position of the first element of a window that equals v, or that
// is NaN if v is NaN. The window has columns left to right of the rows from top to
// bottom; top and bottom are offsets of rows of the given width. It scans backwards
// through all elements, which is faster than branches that cannot be predicted.
func firstEqual(v float32, x []float32, top, bottom, left, right, width int) int {
	at, bits := top+left, math.Float32bits(v)
	if v != v || v == 0 { // several bit patterns compare as equal
		for r := top; r < bottom; r += width {
			for c := left; c < right; c++ {
				if e := x[r+c]; e == v || e != e {
					return r + c
				}
			}
		}
	}
	if right-left == 3 { // the most common window, with the inner loop unrolled
		for r := bottom - width; r >= top; r -= width {
			row := (*[3]float32)(x[r+left:])
			if math.Float32bits(row[2]) == bits {
				at = r + left + 2
			}
			if math.Float32bits(row[1]) == bits {
				at = r + left + 1
			}
			if math.Float32bits(row[0]) == bits {
				at = r + left
			}
		}
		return at
	}
	for r := bottom - width; r >= top; r -= width {
		row := x[r+left : r+right]
		for c := len(row) - 1; c >= 0; c-- {
			if math.Float32bits(row[c]) == bits {
				at = r + left + c
			}
		}
	}
	return at
}

// clip returns the part of the size elements from start that lies in [0, limit).
func clip(start, size, limit int) (lo, hi int) { return max(start, 0), min(start+size, limit) }

// AvgPool implements nn.Conv.
func (b *Backend) AvgPool(y, x nn.Buffer, s nn.Window) {
	ys, share := y.Float32s(), 1/float32(s.Size*s.Size)
	eachRow(x.Float32s(), s.Height*s.Width, func(plane []float32) {
		eachSquare(s, func(at, top, bottom, left, right int) {
			var sum float32
			for r := top; r < bottom; r++ {
				for _, v := range plane[r*s.Width+left : r*s.Width+right] {
					sum += v
				}
			}
			ys[at] = sum * share
		})
		ys = ys[s.Plane():]
	})
}

// AvgPoolGrad implements nn.Conv.
func (b *Backend) AvgPoolGrad(dx, dy nn.Buffer, s nn.Window) {
	dys, share := dy.Float32s(), 1/float32(s.Size*s.Size)
	eachRow(dx.Float32s(), s.Height*s.Width, func(plane []float32) {
		clear(plane)
		eachSquare(s, func(at, top, bottom, left, right int) {
			d := float32(dys[at] * share)
			for r := top; r < bottom; r++ {
				line := plane[r*s.Width+left : r*s.Width+right]
				for c := range line {
					line[c] += d
				}
			}
		})
		dys = dys[s.Plane():]
	})
}

// eachSquare calls f for every window of a plane, with the index of its output and its part
// inside the image.
func eachSquare(s nn.Window, f func(at, top, bottom, left, right int)) {
	at := 0
	for i := range s.OutHeight() {
		top, bottom := clip(i*s.Stride-s.Padding, s.Size, s.Height)
		for j := range s.OutWidth() {
			left, right := clip(j*s.Stride-s.Padding, s.Size, s.Width)
			f(at, top, bottom, left, right)
			at++
		}
	}
}
