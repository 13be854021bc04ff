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

// MaxPoolGrad implements nn.Conv. It looks for the largest elements again rather
// than to remember where they were, and only where there is a gradient.
func (b *Backend) MaxPoolGrad(dx, dy, x, y nn.Buffer, s nn.Window) {
	in, out := s.Height*s.Width, s.Plane()
	dxs, dys, xs, ys := dx.Float32s(), dy.Float32s(), x.Float32s(), y.Float32s()
	clear(dxs)
	for p := range images(xs, in) {
		maxPlaneGrad(dxs[p*in:][:in], dys[p*out:][:out], xs[p*in:][:in], ys[p*out:][:out], s)
	}
}

// maxPlane pools a plane: first the rows of a window into one, in tall, then the
// columns. The largest is NaN if one of them is.
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
				most := window[0]
				for _, v := range window[1:] {
					most = max(most, v)
				}
				line[j] = most
			}
			continue
		}
		for j := range line {
			left, right := clip(j*s.Stride-s.Padding, s.Size, s.Width)
			most := tall[left]
			for _, v := range tall[left+1 : right] {
				most = max(most, v)
			}
			line[j] = most
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
				dx[firstLike(y[at], x, top*s.Width, bottom*s.Width, left, right, s.Width)] += d
			}
			at++
		}
	}
}

// firstLike returns where the first element that equals v, or is NaN if v is,
// stands in the columns left to right of the rows from top to bottom, which are
// offsets of rows of the given width. It goes backwards and through all of them,
// which is faster than branches that nobody can foresee.
func firstLike(v float32, x []float32, top, bottom, left, right, width int) int {
	at, bits := top+left, math.Float32bits(v)
	if v != v || v == 0 { // many bits for one value
		for r := top; r < bottom; r += width {
			for c := left; c < right; c++ {
				if e := x[r+c]; e == v || e != e {
					return r + c
				}
			}
		}
	}
	if right-left == 3 { // the most common window, without a loop in the loop
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

// clip returns the part of the run of size elements from start that lies in
// [0, limit).
func clip(start, size, limit int) (lo, hi int) { return max(start, 0), min(start+size, limit) }
