package cpu

import "github.com/ringtrain/ringtrain/nn"

// Rescale implements nn.Dense.
func (b *Backend) Rescale(y, x nn.Buffer, scale, shift float32) {
	ys := y.Float32s()
	for i, v := range x.Float32s()[:len(ys)] {
		ys[i] = float32(scale*v) + shift
	}
}
