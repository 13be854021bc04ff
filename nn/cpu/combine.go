package cpu

import "github.com/ringtrain/ringtrain/nn"

// Add implements nn.Combine.
func (b *Backend) Add(y, x, z nn.Buffer) {
	ys := y.Float32s()
	xs, zs := x.Float32s()[:len(ys)], z.Float32s()[:len(ys)]
	done := fastSum(ys, xs, zs)
	sumLoop(ys[done:], xs[done:], zs[done:])
}

func sumLoop(y, x, z []float32) {
	for i, v := range x {
		y[i] = v + z[i]
	}
}

// Insert implements nn.Combine.
func (b *Backend) Insert(y, x nn.Buffer, width, at, part int) {
	ys, xs := y.Float32s(), x.Float32s()
	eachRow(ys, width, func(row []float32) {
		copy(row[at:at+part], xs[:part])
		xs = xs[part:]
	})
}

// Extract implements nn.Combine.
func (b *Backend) Extract(x, y nn.Buffer, width, at, part int) {
	xs := x.Float32s()
	eachRow(y.Float32s(), width, func(row []float32) {
		copy(xs[:part], row[at:at+part])
		xs = xs[part:]
	})
}
