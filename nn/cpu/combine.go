package cpu

import "github.com/ringtrain/ringtrain/nn"

// Add implements nn.Combine.
func (b *Backend) Add(y, x, z nn.Buffer) {
	ys := y.Float32s()
	zs := z.Float32s()[:len(ys)]
	for i, v := range x.Float32s()[:len(ys)] {
		ys[i] = v + zs[i]
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
