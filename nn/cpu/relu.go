package cpu

import "github.com/ringtrain/ringtrain/nn"

// Relu implements nn.Dense.
func (b *Backend) Relu(y, x nn.Buffer) {
	ys := y.Float32s()
	xs := x.Float32s()[:len(ys)]
	done := fastRelu(ys, xs)
	reluLoop(ys[done:], xs[done:])
}

func reluLoop(y, x []float32) {
	for i, v := range x {
		if v <= 0 { // max would turn NaN into 0
			v = 0
		}
		y[i] = v
	}
}

// ReluGrad implements nn.Dense.
func (b *Backend) ReluGrad(dx, dy, y nn.Buffer, scale float32) {
	dxs := dx.Float32s()
	dys, ys := dy.Float32s()[:len(dxs)], y.Float32s()[:len(dxs)]
	done := fastReluGrad(dxs, dys, ys, scale)
	reluGradLoop(dxs[done:], dys[done:], ys[done:], scale)
}

func reluGradLoop(dx, dy, y []float32, scale float32) {
	for i, d := range dy {
		d *= scale
		if y[i] <= 0 {
			d = 0
		}
		dx[i] = d
	}
}
