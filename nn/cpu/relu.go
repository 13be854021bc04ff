package cpu

import "github.com/ringtrain/ringtrain/nn"

// Relu implements nn.Dense.
func (b *Backend) Relu(y, x nn.Buffer) {
	ys := y.Float32s()
	xs := x.Float32s()[:len(ys)]
	for i, v := range xs {
		if v <= 0 { // and not max, which would turn NaN into 0
			v = 0
		}
		ys[i] = v
	}
}

// ReluGrad implements nn.Dense.
func (b *Backend) ReluGrad(dx, dy, y nn.Buffer, scale float32) {
	dxs := dx.Float32s()
	dys, ys := dy.Float32s()[:len(dxs)], y.Float32s()[:len(dxs)]
	for i, d := range dys {
		d *= scale
		if ys[i] <= 0 {
			d = 0
		}
		dxs[i] = d
	}
}
