package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A mask decides which elements of a matrix are kept, and scales those.
type mask struct {
	threshold uint32 // elements whose 24 random bits are at least this are kept
	scale     float32
	layer     uint32
	stream    nn.Stream
}

func newMask(rate float32, layer uint32, s nn.Stream) mask {
	return mask{
		// U >= rate for a 24-bit U is an integer comparison with the smallest 24-bit
		// fraction that is not below rate.
		threshold: uint32(math.Ceil(float64(rate) * (1 << 24))),
		scale:     1 / (1 - rate), layer: layer, stream: s,
	}
}

// The increments of the two Philox key words per round.
const (
	philoxW0     = 0x9E3779B9
	philoxW1     = 0xBB67AE85
	philoxRounds = 10
)

// roundKeys returns the pairs of key words of all rounds, for the kernels.
func (m mask) roundKeys() (keys [2 * philoxRounds]uint32) {
	key, _ := m.stream.Counter(m.layer, 0, 0)
	for r := range philoxRounds {
		keys[2*r], keys[2*r+1] = key[0], key[1]
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return keys
}

// Dropout implements nn.Dense.
func (b *Backend) Dropout(y, x nn.Buffer, width int, rate float32, layer uint32, s nn.Stream) {
	m := newMask(rate, layer, s)
	kernel := newDropKernel(m)
	xs := x.Float32s()
	row := 0
	eachRow(y.Float32s(), width, func(ys []float32) {
		xs := xs[row*width : (row+1)*width]
		done := kernel.fast(ys, xs, row)
		dropLoop(ys[done:], xs[done:], m, row, done)
		row++
	})
}

// dropLoop applies m to the part of a row that starts at element from, a multiple of 4.
func dropLoop(y, x []float32, m mask, row, from int) {
	for lo := 0; lo < len(y); lo += 4 {
		words := m.stream.Draw(m.layer, row, (from+lo)/4)
		for j := lo; j < min(lo+4, len(y)); j++ {
			if words[j-lo]>>8 >= m.threshold {
				y[j] = x[j] * m.scale
			} else {
				y[j] = 0
			}
		}
	}
}
