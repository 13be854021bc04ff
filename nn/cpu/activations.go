package cpu

import "github.com/ringtrain/ringtrain/nn"

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

func maxoutLoop(y, x []float32, pieces int) {
	for i := range y {
		piece := x[i*pieces:][:pieces]
		y[i] = piece[argmax(piece)]
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
	for i, v := range dy {
		best, d := argmax(x[i*pieces:][:pieces]), dx[i*pieces:][:pieces]
		clear(d)
		d[best] = v
	}
}

// matchPieces checks that each output has as many pieces.
func matchPieces(y, x []float32, pieces int) {
	if len(x) != len(y)*pieces {
		panic("cpu: the length of the input is not the number of outputs times that of pieces")
	}
}
