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
	ys, at := y.Float32s(), 0
	eachPieces(x, pieces, len(ys), func(piece []float32) {
		ys[at] = piece[argmax(piece)]
		at++
	})
}

// MaxoutGrad implements nn.Activations.
func (b *Backend) MaxoutGrad(dx, dy, x nn.Buffer, pieces int) {
	dxs, dys, at := dx.Float32s(), dy.Float32s(), 0
	eachPieces(x, pieces, len(dys), func(piece []float32) {
		best := argmax(piece)
		d := dxs[at*pieces:][:pieces]
		clear(d)
		d[best] = dys[at]
		at++
	})
}

// eachPieces calls f with the pieces of each of n outputs.
func eachPieces(x nn.Buffer, pieces, n int, f func(piece []float32)) {
	if x.Len() != n*pieces {
		panic("cpu: the length of the input is not the number of outputs times that of pieces")
	}
	eachRow(x.Float32s(), pieces, f)
}
