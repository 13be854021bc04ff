package cpu

import "github.com/ringtrain/ringtrain/nn"

// The loops specify what the kernels compute, with a rounding after every operation: the
// explicit conversions to float32 forbid the compiler to fuse a product with a sum.

// Scale implements nn.Update.
func (b *Backend) Scale(y nn.Buffer, a float32) {
	ys := y.Float32s()
	scaleLoop(ys[fastScale(ys, a):], a)
}

func scaleLoop(y []float32, a float32) {
	for i, v := range y {
		y[i] = a * v
	}
}

// Axpy implements nn.Update.
func (b *Backend) Axpy(y nn.Buffer, a float32, x nn.Buffer) {
	ys := y.Float32s()
	xs := x.Float32s()[:len(ys)]
	done := fastAxpy(ys, a, xs)
	axpyLoop(ys[done:], a, xs[done:])
}

func axpyLoop(y []float32, a float32, x []float32) {
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

// add adds v to y, element by element. Both have the same length.
func add(y, v []float32) {
	v = v[:len(y)]
	done := fastAdd(y, v)
	addLoop(y[done:], v[done:])
}

func addLoop(y, v []float32) {
	for i, x := range v {
		y[i] += x
	}
}

// SquaredNorm implements nn.Update. Within a block, element i is added to partial sum i
// mod 16, so that neighbouring additions do not wait for each other.
func (b *Backend) SquaredNorm(sums, g, w, hyper nn.Buffer) {
	squaredNorm(sums.Float32s(), g.Float32s(), w.Float32s(), 1, hyper.Float32s()[nn.HyperL2])
}

// squaredNorm is SquaredNorm of scale·g.
func squaredNorm(sums, g, w []float32, scale, l2 float32) {
	for k := range sums {
		lo, hi := k*nn.BlockSize, min((k+1)*nn.BlockSize, len(g))
		sums[k] = float32(squares(g[lo:hi], w[lo:hi], scale, l2))
	}
}

func squares(g, w []float32, scale, l2 float32) float64 {
	w = w[:len(g)]
	var s [16]float64
	done := fastSquares(&s, g, w, scale, l2)
	squaresLoop(&s, g[done:], w[done:], scale, l2)
	var quarter [4]float64
	for i := range quarter {
		quarter[i] = s[i] + s[4+i] + (s[8+i] + s[12+i])
	}
	return quarter[0] + quarter[1] + (quarter[2] + quarter[3])
}

func squaresLoop(s *[16]float64, g, w []float32, scale, l2 float32) {
	for i, x := range g {
		wide := float64(float32(scale*x) + float32(l2*w[i]))
		s[i%16] += float64(wide * wide)
	}
}

// largest sets y to the larger of y and v, element by element. Both have the same length.
// Like the built-in max, it returns NaN if either operand is NaN.
func largest(y, v []float32) {
	v = v[:len(y)]
	done := fastMax(y, v)
	maxLoop(y[done:], v[done:])
}

func maxLoop(y, v []float32) {
	for i, x := range v {
		y[i] = max(y[i], x)
	}
}

// dot returns the sum of x·y. Element i is added to partial sum i mod 16; the 16 sums are
// then added pairwise, halving their number each time. y is at least as long as x.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var s [16]float32
	done := fastDot(&s, x, y)
	dotLoop(&s, x[done:], y[done:])
	for half := len(s) / 2; half > 0; half /= 2 {
		for i := range half {
			s[i] += s[i+half]
		}
	}
	return s[0]
}

func dotLoop(s *[16]float32, x, y []float32) {
	for i, v := range x {
		s[i%len(s)] += float32(v * y[i])
	}
}
