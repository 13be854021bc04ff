package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Convolution is a sequence of axpy calls. An output plane is laid out with the row pitch
// of its input: element (i, j) is at i*pitch+j, with a gap of Size-1 elements after each
// row. One filter element then contributes to whole planes with a single axpy over a run
// of the input. In the forward pass the gaps collect meaningless sums that nothing reads;
// in gradients they are 0. A packing provides such runs for several images at once, for
// any padding and stride.

// Conv2D implements nn.Conv. It adds the bias first, then the elements of a
// filter in order.
func (b *Backend) Conv2D(y, x, w, bias nn.Buffer, s nn.Window) {
	ys, xs, ws := y.Float32s(), x.Float32s(), w.Float32s()
	rows, filters, taps := images(xs, s.In()), bias.Len(), s.Channels*s.Size*s.Size
	p := b.newPacking(s, rows)
	p.each(rows, func(lo, hi int) {
		in := p.pack(xs[lo*s.In() : hi*s.In()])
		run := p.run[:p.length(hi-lo)]
		for o, v := range bias.Float32s() {
			fill(run, v)
			for k, v := range ws[o*taps:][:taps] {
				axpy(v, in[p.starts[k]:], run)
			}
			p.narrow(ys[lo*filters*s.Plane():hi*filters*s.Plane()], o, filters)
		}
	})
}

// Conv2DGrad implements nn.Conv. With stride 1, the gradient of a filter element is the
// dot product (see dot) of a plane of dy with a run of the input. Otherwise the code
// visits only the elements of dy that are not 0, which are few behind a pooling layer.
func (b *Backend) Conv2DGrad(dw, db, dy, x nn.Buffer, s nn.Window) {
	g := newGeometry(s)
	dws, dbs, dys, xs := dw.Float32s(), db.Float32s(), dy.Float32s(), x.Float32s()
	image, run := g.scratch(b)
	var list []nonzero
	if s.Stride != 1 {
		list = make([]nonzero, s.Plane()+1)
	}
	clear(run)
	ones := b.temp.take(len(run))
	fill(ones, 1)
	for row := range images(xs, s.In()) {
		in := g.pad(image, xs[row*s.In():][:s.In()])
		for o := range dbs {
			d := dys[(row*len(dbs)+o)*s.Plane():][:s.Plane()]
			taps := dws[o*g.taps():][:g.taps()]
			if s.Stride != 1 {
				dbs[o] += g.addGrad(taps, g.nonzeros(list, d), in)
				continue
			}
			g.widen(run, d)
			for k := range taps {
				taps[k] += dot(run, in[g.start(k):])
			}
			dbs[o] += dot(run, ones)
		}
	}
}

// Conv2DInputGrad implements nn.Conv. It adds filters in order, and the elements of
// each filter in order.
func (b *Backend) Conv2DInputGrad(dx, dy, w nn.Buffer, s nn.Window) {
	dxs, dys, ws := dx.Float32s(), dy.Float32s(), w.Float32s()
	rows, taps := images(dxs, s.In()), s.Channels*s.Size*s.Size
	filters := len(ws) / taps
	p := b.newPacking(s, rows)
	p.each(rows, func(lo, hi int) {
		out := p.packed
		if p.direct {
			out = dxs[lo*s.In() : hi*s.In()]
		}
		clear(out)
		run := p.run[:p.length(hi-lo)]
		for o := range filters {
			p.widen(dys[lo*filters*s.Plane():hi*filters*s.Plane()], o, filters)
			for k, v := range ws[o*taps:][:taps] {
				axpy(v, run, out[p.starts[k]:])
			}
		}
		if !p.direct {
			p.unpack(dxs[lo*s.In() : hi*s.In()])
		}
	})
}

// images returns the number of rows of the given width in v.
func images(v []float32, width int) int {
	if len(v)%width != 0 {
		panic("cpu: the length of a batch of images is not a multiple of its row width")
	}
	return len(v) / width
}

// A geometry is a window plus the sizes of the padded image.
type geometry struct {
	nn.Window
	height, pitch       int // of a padded plane
	outHeight, outWidth int
	starts              []int // see start
}

func newGeometry(s nn.Window) geometry {
	g := geometry{Window: s, height: s.Height + 2*s.Padding, pitch: s.Width + 2*s.Padding, outHeight: s.OutHeight(), outWidth: s.OutWidth()}
	square := g.Size * g.Size
	g.starts = make([]int, g.taps())
	for k := range g.starts {
		g.starts[k] = (k/square*g.height+k%square/g.Size)*g.pitch + k%g.Size
	}
	return g
}

// taps returns the number of elements of one filter.
func (g *geometry) taps() int { return g.Channels * g.Size * g.Size }

// start returns the offset, in the padded image, of filter element k in the
// first output's window.
func (g *geometry) start(k int) int { return g.starts[k] }

// scratch returns memory for a zeroed padded image and for one output plane: at the pitch
// of the input if the stride is 1, and without gaps otherwise.
func (g *geometry) scratch(b *Backend) (image, run []float32) {
	if g.Padding > 0 {
		image = b.temp.take(g.Channels * g.height * g.pitch)
		clear(image)
	}
	n := g.Plane()
	if g.Stride == 1 {
		n = (g.outHeight-1)*g.pitch + g.outWidth
	}
	return image, b.temp.take(n)
}

// pad copies x into image, inside the padding, and returns image. Without
// padding it returns x.
func (g *geometry) pad(image, x []float32) []float32 {
	if g.Padding == 0 {
		return x
	}
	for r := range g.Channels * g.Height {
		copy(image[g.inner(r):][:g.Width], x[r*g.Width:])
	}
	return image
}

// inner returns the offset in the padded image of row r, counting the rows
// of all channels.
func (g *geometry) inner(r int) int {
	return (r/g.Height*g.height+r%g.Height+g.Padding)*g.pitch + g.Padding
}

// widen copies plane to run, with gaps. It leaves the gaps unchanged.
func (g *geometry) widen(run, plane []float32) {
	for i := range g.outHeight {
		copy(run[i*g.pitch:][:g.outWidth], plane[i*g.outWidth:])
	}
}

// A nonzero is a nonzero element of a plane of gradients, and the offset of its window
// in the padded image.
type nonzero struct {
	v  float32
	at int32
}

// nonzeros collects the nonzero elements of d in list and returns them. list must have
// room for one more than all elements. Every element is written, and the next one
// overwrites a 0: this is faster than branches that cannot be predicted.
func (g *geometry) nonzeros(list []nonzero, d []float32) []nonzero {
	n := 0
	for i := range g.outHeight {
		line, base := d[i*g.outWidth:][:g.outWidth], i*g.Stride*g.pitch
		for j, v := range line {
			list[n] = nonzero{v, int32(base + j*g.Stride)}
			next := n + 1
			if math.Float32bits(v)<<1 != 0 {
				n = next
			}
		}
	}
	return list[:n]
}

// addGrad adds each d times its window to dw and returns the sum of d.
func (g *geometry) addGrad(dw []float32, d []nonzero, in []float32) float32 {
	for k := range dw {
		tap, sum := in[g.start(k):], dw[k]
		for _, e := range d {
			sum += float32(e.v * tap[e.at])
		}
		dw[k] = sum
	}
	var sum float32
	for _, e := range d {
		sum += e.v
	}
	return sum
}

func fill(v []float32, x float32) {
	for i := range v {
		v[i] = x
	}
}

// axpy adds v·x to y, up to the length of the shorter one.
func axpy(v float32, x, y []float32) {
	n := min(len(x), len(y))
	x, y = x[:n], y[:n]
	done := fastAxpy(y, v, x)
	axpyLoop(y[done:], v, x[done:])
}
