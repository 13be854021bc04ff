package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A plane of output is computed at the pitch of its input: element (i, j) stands
// at i*pitch+j, behind each row is a gap of Size-1 elements, and one element of
// a filter contributes to all of the plane by a single axpy over a run of the
// input. The gaps get sums across the edge of the image that nobody reads; in
// gradients they are 0. Input with padding is copied into a larger image first.
// Steps other than 1 have no such runs and go element by element.

// Conv2D implements nn.Conv. The bias comes first, then the elements of a filter
// in order.
func (b *Backend) Conv2D(y, x, w, bias nn.Buffer, s nn.Window) {
	g := newGeometry(s)
	ys, xs, ws := y.Float32s(), x.Float32s(), w.Float32s()
	image, run := g.scratch(b)
	biases := b.temp.take(len(run) * bias.Len())
	for o, v := range bias.Float32s() {
		fill(biases[o*len(run):][:len(run)], v)
	}
	for row := range images(xs, s.In()) {
		in := g.pad(image, xs[row*s.In():][:s.In()])
		for o := range bias.Len() {
			copy(run, biases[o*len(run):])
			for k, v := range ws[o*g.taps():][:g.taps()] {
				g.gather(run, v, in[g.start(k):])
			}
			g.narrow(ys[(row*bias.Len()+o)*s.Plane():][:s.Plane()], run)
		}
	}
}

// Conv2DGrad implements nn.Conv. With a step of 1 an element of a filter gets a
// dot product of a plane of dy with a run of the input, see dot; else it goes
// through the elements of dy that are not 0, which behind a pooling layer are
// few.
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

// Conv2DInputGrad implements nn.Conv. Filters come in order, and the elements of
// each.
func (b *Backend) Conv2DInputGrad(dx, dy, w nn.Buffer, s nn.Window) {
	g := newGeometry(s)
	dxs, dys, ws := dx.Float32s(), dy.Float32s(), w.Float32s()
	filters := len(ws) / g.taps()
	image, run := g.scratch(b)
	clear(run)
	for row := range images(dxs, s.In()) {
		out := dxs[row*s.In():][:s.In()]
		if s.Padding > 0 {
			out = image
		}
		clear(out)
		for o := range filters {
			g.widen(run, dys[(row*filters+o)*s.Plane():][:s.Plane()])
			for k, v := range ws[o*g.taps():][:g.taps()] {
				g.scatter(out[g.start(k):], v, run)
			}
		}
		if s.Padding > 0 {
			g.crop(dxs[row*s.In():][:s.In()], image)
		}
	}
}

// images returns how many rows of the given width v holds.
func images(v []float32, width int) int {
	if len(v)%width != 0 {
		panic("cpu: the rows of a batch of images do not fit its length")
	}
	return len(v) / width
}

// A geometry is a window with the sizes of the padded image.
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

// start returns where the element k of a filter meets the first output's window
// in the padded image.
func (g *geometry) start(k int) int { return g.starts[k] }

// scratch returns memory for a padded image, zeroed, and for one plane of output
// at the input's pitch if the step is 1, else as it is.
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

// pad returns x with its padding, in image, or x itself if there is none.
func (g *geometry) pad(image, x []float32) []float32 {
	if g.Padding == 0 {
		return x
	}
	for r := range g.Channels * g.Height {
		copy(image[g.inner(r):][:g.Width], x[r*g.Width:])
	}
	return image
}

// crop is the inverse of pad.
func (g *geometry) crop(x, image []float32) {
	for r := range g.Channels * g.Height {
		copy(x[r*g.Width:][:g.Width], image[g.inner(r):])
	}
}

// inner returns where row r of all channels' rows begins in the padded image.
func (g *geometry) inner(r int) int {
	return (r/g.Height*g.height+r%g.Height+g.Padding)*g.pitch + g.Padding
}

// narrow sets plane to what run holds without the gaps.
func (g *geometry) narrow(plane, run []float32) {
	if g.Stride != 1 {
		copy(plane, run)
		return
	}
	for i := range g.outHeight {
		copy(plane[i*g.outWidth:][:g.outWidth], run[i*g.pitch:])
	}
}

// widen is the inverse of narrow and leaves the gaps as they are.
func (g *geometry) widen(run, plane []float32) {
	if g.Stride != 1 {
		copy(run, plane)
		return
	}
	for i := range g.outHeight {
		copy(run[i*g.pitch:][:g.outWidth], plane[i*g.outWidth:])
	}
}

// gather adds v times each window's first element to its output.
func (g *geometry) gather(run []float32, v float32, in []float32) {
	if g.Stride == 1 {
		axpy(v, in, run)
		return
	}
	for i := range g.outHeight {
		line, to := in[i*g.Stride*g.pitch:], run[i*g.outWidth:][:g.outWidth]
		for j := range to {
			to[j] += float32(v * line[j*g.Stride])
		}
	}
}

// scatter adds v times each output to its window's first element.
func (g *geometry) scatter(in []float32, v float32, run []float32) {
	if g.Stride == 1 {
		axpy(v, run, in)
		return
	}
	for i := range g.outHeight {
		line, from := in[i*g.Stride*g.pitch:], run[i*g.outWidth:][:g.outWidth]
		for j, d := range from {
			line[j*g.Stride] += float32(v * d)
		}
	}
}

// A nonzero is an element of a plane of gradients that is not 0, and where its
// window begins in the padded image.
type nonzero struct {
	v  float32
	at int32
}

// nonzeros puts the elements of d that are not 0 into list, which has room for
// one more than all, and returns those it put there. Every element is written,
// and the next takes the place of a 0: faster than branches that nobody can
// foresee.
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

// axpy adds v·x to y for the length of the shorter.
func axpy(v float32, x, y []float32) {
	n := min(len(x), len(y))
	x, y = x[:n], y[:n]
	done := fastAxpy(y, v, x)
	axpyLoop(y[done:], v, x[done:])
}
