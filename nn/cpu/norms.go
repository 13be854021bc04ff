package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// LayerNorm implements nn.Norms.
func (b *Backend) LayerNorm(y, moments, x, g, shift nn.Buffer, eps float32) {
	gs, bs, ms, xs := g.Float32s(), shift.Float32s(), moments.Float32s(), x.Float32s()
	width := len(gs)
	ones, d := b.ones(width), b.temp.take(width)
	row := 0
	eachRow(y.Float32s(), width, func(ys []float32) {
		in := xs[row*width:][:width]
		mean := dot(in, ones) / float32(width)
		for i, v := range in {
			d[i] = v - mean
		}
		r := inverseRoot(dot(d, d)/float32(width) + eps)
		scaleShift(ys, d, gs, bs, r)
		ms[2*row], ms[2*row+1] = mean, r
		row++
	})
}

// scaleShift sets y = (d·r)·g + b.
func scaleShift(y, d, g, b []float32, r float32) {
	y, g, b = y[:len(d)], g[:len(d)], b[:len(d)]
	for i, v := range d {
		y[i] = float32(float32(v*r)*g[i]) + b[i]
	}
}

// LayerNormGrad implements nn.Norms.
func (b *Backend) LayerNormGrad(dx, dg, db, dy, x, moments, g nn.Buffer) {
	gs, ms, xs, dys := g.Float32s(), moments.Float32s(), x.Float32s(), dy.Float32s()
	dgs, dbs, width := dg.Float32s(), db.Float32s(), g.Len()
	ones, h, z := b.ones(width), b.temp.take(width), b.temp.take(width)
	row := 0
	eachRow(dx.Float32s(), width, func(dxs []float32) {
		in, d := xs[row*width:][:width], dys[row*width:][:width]
		mean, r := ms[2*row], ms[2*row+1]
		for i, v := range in {
			z[i] = (v - mean) * r
			h[i] = d[i] * gs[i]
			dgs[i] += float32(d[i] * z[i])
		}
		add(dbs, d)
		s, t := dot(h, ones)/float32(width), dot(h, z)/float32(width)
		for i, v := range h {
			dxs[i] = r * ((v - s) - float32(z[i]*t))
		}
		row++
	})
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
