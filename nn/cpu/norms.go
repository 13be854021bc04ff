package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// LayerNorm implements nn.Norms.
func (b *Backend) LayerNorm(y, moments, x, g, shift nn.Buffer, eps float32) {
	gs, bs := g.Float32s(), shift.Float32s()
	width := len(gs)
	ys, ms := y.Float32s(), moments.Float32s()[:2*rowsOf(y, width)]
	xs := x.Float32s()[:len(ys)]
	done := fastNorm(ys, ms, xs, gs, bs, eps)
	if 2*done == len(ms) {
		return
	}
	ones, d := b.ones(width), b.temp.take(width)
	for row := done; 2*row < len(ms); row++ {
		ms[2*row], ms[2*row+1] = normRow(xs[row*width:][:width], d, ones, eps)
		scaleShift(ys[row*width:][:width], d, gs, bs, ms[2*row+1])
	}
}

// normRow sets d to x minus its mean, and returns the mean and 1/√(variance + eps).
func normRow(x, d, ones []float32, eps float32) (mean, r float32) {
	width := float32(len(x))
	mean = dot(x, ones) / width
	for i, v := range x {
		d[i] = v - mean
	}
	return mean, inverseRoot(dot(d, d)/width + eps)
}

// rowsOf returns the number of rows of a matrix.
func rowsOf(v nn.Buffer, width int) int {
	if width < 1 || v.Len()%width != 0 {
		panic("cpu: the length of a matrix is not a multiple of its row width")
	}
	return v.Len() / width
}

// scaleShift sets y = (d·r)·g + b.
func scaleShift(y, d, g, b []float32, r float32) {
	y, g, b = y[:len(d)], g[:len(d)], b[:len(d)]
	for i, v := range d {
		y[i] = float32(float32(v*r)*g[i]) + b[i]
	}
}

// normGrads are the operands of LayerNormGrad that are shared by rows, and their moments.
type normGrads struct{ dg, db, moments, g []float32 }

// LayerNormGrad implements nn.Norms.
func (b *Backend) LayerNormGrad(dx, dg, db, dy, x, moments, g nn.Buffer) {
	width := g.Len()
	dxs, rows := dx.Float32s(), rowsOf(dx, width)
	xs, dys := x.Float32s()[:len(dxs)], dy.Float32s()[:len(dxs)]
	n := normGrads{dg: dg.Float32s(), db: db.Float32s(), moments: moments.Float32s()[:2*rows], g: g.Float32s()}
	done := fastNormGrad(dxs, dys, xs, n)
	if done == rows {
		return
	}
	ones, h, z := b.ones(width), b.temp.take(width), b.temp.take(width)
	for row := done; row < rows; row++ {
		at := row * width
		n.row(dxs[at:][:width], dys[at:][:width], xs[at:][:width], row, rowMemory{ones, h, z})
	}
}

// rowMemory is temporary memory for one row.
type rowMemory struct{ ones, h, z []float32 }

func (n normGrads) row(dx, dy, x []float32, row int, m rowMemory) {
	width, mean, r := float32(len(x)), n.moments[2*row], n.moments[2*row+1]
	h, z := m.h, m.z
	for i, v := range x {
		z[i] = (v - mean) * r
		h[i] = dy[i] * n.g[i]
		n.dg[i] += float32(dy[i] * z[i])
	}
	add(n.db, dy)
	s, t := dot(h, m.ones)/width, dot(h, z)/width
	for i, v := range h {
		dx[i] = r * ((v - s) - float32(z[i]*t))
	}
}

// ones returns n ones in temporary memory. A product with 1 is exact, so dot with them is a
// sum.
func (b *Backend) ones(n int) []float32 {
	v := b.temp.take(n)
	fill(v, 1)
	return v
}

func inverseRoot(v float32) float32 { return 1 / float32(math.Sqrt(float64(v))) }

// ChannelMoments implements nn.Norms.
func (b *Backend) ChannelMoments(m nn.Moments, x nn.Buffer) {
	means, variances := m.Mean.Float32s(), m.Variance.Float32s()
	clear(means)
	clear(variances)
	ones, d := b.ones(m.Plane), b.temp.take(m.Plane)
	n := float32(x.Len() / len(means))
	eachPlane(x, m, func(c int, plane []float32) { means[c] += dot(plane, ones) })
	for c := range means {
		means[c] /= n
	}
	eachPlane(x, m, func(c int, plane []float32) {
		for i, v := range plane {
			d[i] = v - means[c]
		}
		variances[c] += dot(d, d)
	})
	for c := range variances {
		variances[c] /= n
	}
}

// eachPlane calls f with each plane of rows of images, and its channel.
func eachPlane(x nn.Buffer, m nn.Moments, f func(c int, plane []float32)) {
	if x.Len()%(m.Mean.Len()*m.Plane) != 0 {
		panic("cpu: the length of a batch of images is not a multiple of its row width")
	}
	c := 0
	eachRow(x.Float32s(), m.Plane, func(plane []float32) {
		f(c, plane)
		if c++; c == m.Mean.Len() {
			c = 0
		}
	})
}

// BatchNorm implements nn.Norms.
func (b *Backend) BatchNorm(y, x, g, shift nn.Buffer, m nn.Moments) {
	ys, gs, bs := y.Float32s(), g.Float32s(), shift.Float32s()
	means, scales := m.Mean.Float32s(), b.scales(m)
	eachPlane(x, m, func(c int, plane []float32) {
		out, mean, r, scale, shift := ys[:m.Plane], means[c], scales[c], gs[c], bs[c]
		for i, v := range plane {
			out[i] = float32(float32((v-mean)*r)*scale) + shift
		}
		ys = ys[m.Plane:]
	})
}

// scales returns 1/√(variance + eps) of each channel.
func (b *Backend) scales(m nn.Moments) []float32 {
	s := b.temp.take(m.Variance.Len())
	for c, v := range m.Variance.Float32s() {
		s[c] = inverseRoot(v + m.Eps)
	}
	return s
}

// BatchNormGrad implements nn.Norms.
func (b *Backend) BatchNormGrad(dx, dg, db, dy, x, g nn.Buffer, m nn.Moments) {
	channels := g.Len()
	means, gs, scales := m.Mean.Float32s(), g.Float32s(), b.scales(m)
	sums, products := b.temp.take(channels), b.temp.take(channels)
	clear(sums)
	clear(products)
	ones, z := b.ones(m.Plane), b.temp.take(m.Plane)
	dys := dy.Float32s()
	eachPlane(x, m, func(c int, plane []float32) {
		normalise(z, plane, means[c], scales[c])
		sums[c] += dot(dys[:m.Plane], ones)
		products[c] += dot(dys[:m.Plane], z)
		dys = dys[m.Plane:]
	})
	add(db.Float32s(), sums)
	add(dg.Float32s(), products)
	n := float32(x.Len() / channels)
	dys, dxs := dy.Float32s(), dx.Float32s()
	eachPlane(x, m, func(c int, plane []float32) {
		d, out := dys[:m.Plane], dxs[:m.Plane]
		dys, dxs = dys[m.Plane:], dxs[m.Plane:]
		factor := gs[c] * scales[c]
		if m.Fixed {
			for i, v := range d {
				out[i] = factor * v
			}
			return
		}
		normalise(z, plane, means[c], scales[c])
		s, t := sums[c]/n, products[c]/n
		for i, v := range d {
			out[i] = factor * ((v - s) - float32(z[i]*t))
		}
	})
}

// normalise sets z = (x-mean)·r.
func normalise(z, x []float32, mean, r float32) {
	z = z[:len(x)]
	for i, v := range x {
		z[i] = (v - mean) * r
	}
}
