package cpu

import "github.com/ringtrain/ringtrain/nn"

// AddBias implements nn.Dense.
func (b *Backend) AddBias(y, bias nn.Buffer) {
	eachRow(y.Float32s(), bias.Len(), func(row []float32) { add(row, bias.Float32s()) })
}

// sumBlock is the number of rows that SumRows adds up before it adds their sum to the others. So
// the error of a sum of a million rows is that of a few thousand additions, not of a million.
const sumBlock = 256

// SumRows implements nn.Dense.
func (b *Backend) SumRows(sum, y nn.Buffer) {
	width, rows := sum.Len(), y.Float32s()
	if len(rows) <= sumBlock*width {
		eachRow(rows, width, func(row []float32) { add(sum.Float32s(), row) })
		return
	}
	part := b.temp.take(width)
	for len(rows) > 0 {
		n := min(sumBlock*width, len(rows))
		clear(part)
		eachRow(rows[:n], width, func(row []float32) { add(part, row) })
		add(sum.Float32s(), part)
		rows = rows[n:]
	}
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
