package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Dropout implements nn.Dense.
func (b *Backend) Dropout(y, x nn.Buffer, width int, rate float32, layer uint32, s nn.Stream) {
	// U >= rate for U of 24 bits is an integer comparison with the smallest
	// 24-bit fraction that is not below rate.
	least := uint32(math.Ceil(float64(rate) * (1 << 24)))
	scale := 1 / (1 - rate)
	xs := x.Float32s()
	row := 0
	eachRow(y.Float32s(), width, func(ys []float32) {
		dropRow(ys, xs[row*width:(row+1)*width], least, scale, layer, s, row)
		row++
	})
}

func dropRow(y, x []float32, least uint32, scale float32, layer uint32, s nn.Stream, row int) {
	for lo := 0; lo < len(y); lo += 4 {
		words := s.Draw(layer, row, lo/4)
		for j := lo; j < min(lo+4, len(y)); j++ {
			if words[j-lo]>>8 >= least {
				y[j] = x[j] * scale
			} else {
				y[j] = 0
			}
		}
	}
}
