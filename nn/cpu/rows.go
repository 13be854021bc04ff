package cpu

import "github.com/ringtrain/ringtrain/nn"

// AddBias implements nn.Dense.
func (b *Backend) AddBias(y, bias nn.Buffer) {
	eachRow(y.Float32s(), bias.Len(), func(row []float32) { add(row, bias.Float32s()) })
}

// SumRows implements nn.Dense.
func (b *Backend) SumRows(sum, y nn.Buffer) {
	eachRow(y.Float32s(), sum.Len(), func(row []float32) { add(sum.Float32s(), row) })
}

// eachRow calls f with each run of width elements of v.
func eachRow(v []float32, width int, f func(row []float32)) {
	if width < 1 || len(v)%width != 0 {
		panic("cpu: the length of a matrix is not a multiple of its row width")
	}
	for ; len(v) > 0; v = v[width:] {
		f(v[:width:width])
	}
}
