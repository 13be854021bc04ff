package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Gelu implements nn.Activations.
func (b *Backend) Gelu(y, x nn.Buffer) {
	ys := y.Float32s()
	xs := x.Float32s()[:len(ys)]
	done := fastGelu(ys, xs)
	geluLoop(ys[done:], xs[done:])
}

func geluLoop(y, x []float32) {
	for i, v := range x {
		c, _ := normal(v)
		y[i] = v * c
	}
}

// GeluGrad implements nn.Activations.
func (b *Backend) GeluGrad(dx, dy, x nn.Buffer) {
	dxs := dx.Float32s()
	dys, xs := dy.Float32s()[:len(dxs)], x.Float32s()[:len(dxs)]
	done := fastGeluGrad(dxs, dys, xs)
	geluGradLoop(dxs[done:], dys[done:], xs[done:])
}

func geluGradLoop(dx, dy, x []float32) {
	for i, v := range x {
		c, e := normal(v)
		dx[i] = dy[i] * (c + float32(v*float32(e*inverseRoot2Pi)))
	}
}

// Maxout implements nn.Activations.
func (b *Backend) Maxout(y, x nn.Buffer, pieces int) {
	ys, xs := y.Float32s(), x.Float32s()
	matchPieces(ys, xs, pieces)
	done := fastMaxout(ys, xs, pieces)
	maxoutLoop(ys[done:], xs[done*pieces:], pieces)
}

// maxoutLoop and maxoutGradLoop do without branches for 2 and 3 pieces, which spaCy's networks
// have: no processor predicts which piece is the largest. On an AMD EPYC (Zen 1), that takes a
// fifth to three quarters of the time of the general loop.
func maxoutLoop(y, x []float32, pieces int) {
	switch pieces {
	case 2:
		for i := range y {
			p := x[i*2:][:2]
			y[i] = pick(p[0], p[1], p[1] > p[0])
		}
	case 3:
		for i := range y {
			p := x[i*3:][:3]
			best := pick(p[0], p[1], p[1] > p[0])
			y[i] = pick(best, p[2], p[2] > best)
		}
	default:
		for i := range y {
			piece := x[i*pieces:][:pieces]
			y[i] = piece[argmax(piece)]
		}
	}
}

// MaxoutGrad implements nn.Activations.
func (b *Backend) MaxoutGrad(dx, dy, x nn.Buffer, pieces int) {
	dxs, dys, xs := dx.Float32s(), dy.Float32s(), x.Float32s()
	matchPieces(dys, xs, pieces)
	dxs = dxs[:len(xs)]
	done := fastMaxoutGrad(dxs, dys, xs, pieces)
	maxoutGradLoop(dxs[done*pieces:], dys[done:], xs[done*pieces:], pieces)
}

func maxoutGradLoop(dx, dy, x []float32, pieces int) {
	switch pieces {
	case 2:
		for i, v := range dy {
			p, d := x[i*2:][:2], dx[i*2:][:2]
			second := p[1] > p[0]
			d[0], d[1] = pick(v, 0, second), pick(0, v, second)
		}
	case 3:
		for i, v := range dy {
			p, d := x[i*3:][:3], dx[i*3:][:3]
			second := p[1] > p[0]
			third := p[2] > pick(p[0], p[1], second)
			d[0] = pick(pick(v, 0, second), 0, third)
			d[1] = pick(pick(0, v, second), 0, third)
			d[2] = pick(0, v, third)
		}
	default:
		for i, v := range dy {
			best, d := argmax(x[i*pieces:][:pieces]), dx[i*pieces:][:pieces]
			clear(d)
			d[best] = v
		}
	}
}

// pick returns b if second is true, and a otherwise.
func pick(a, b float32, second bool) float32 {
	return math.Float32frombits(math.Float32bits(a)&^ones(second) | math.Float32bits(b)&ones(second))
}

// ones returns a word of ones for true, and 0 for false. It compiles to no branch.
func ones(b bool) (mask uint32) {
	if b {
		mask = 1
	}
	return -mask
}

// matchPieces checks that each output has as many pieces.
func matchPieces(y, x []float32, pieces int) {
	if len(x) != len(y)*pieces {
		panic("cpu: the length of the input is not the number of outputs times that of pieces")
	}
}
