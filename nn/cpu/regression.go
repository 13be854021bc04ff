package cpu

import "github.com/ringtrain/ringtrain/nn"

// SquaredError implements nn.Dense. The sum is taken in float64.
func (b *Backend) SquaredError(dy, loss, y, t nn.Buffer) {
	ys, ds := y.Float32s(), dy.Float32s()
	ts := t.Float32s()[:len(ys)]
	var sum float64
	for i, v := range ys {
		d := v - ts[i]
		sum += float64(float64(d) * float64(d)) // the conversion forbids a fused multiply-add
		if len(ds) > 0 {
			ds[i] = d
		}
	}
	loss.Float32s()[0] += float32(sum / 2)
}
