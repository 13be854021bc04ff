package trainer

import (
	"encoding/binary"
	"math"
)

// quantBlock is the number of elements that share a scale. Small blocks lose less,
// because neighbouring gradients have similar magnitudes. With 256 the scales add
// 1.6 % to the size.
const quantBlock = 256

// scaleLen is the size of a scale: a little-endian float32 before its block.
const scaleLen = 4

// leastScaled is the magnitude below which a block is sent as zeros, because the
// inverse of its scale would overflow.
const leastScaled = 0x1p-100

// quantizedLen is the size in bytes of n quantized elements.
func quantizedLen(n int) int { return n + (n+quantBlock-1)/quantBlock*scaleLen }

// quantize packs x block by block into b, which has quantizedLen(len(x)) bytes, and
// sets rest to what that loses. All elements of x are finite.
func quantize(b []byte, rest, x []float32) {
	for len(x) > 0 {
		n := min(len(x), quantBlock)
		quantizeBlock(b[:scaleLen+n], rest[:n], x[:n])
		b, rest, x = b[scaleLen+n:], rest[n:], x[n:]
	}
}

func quantizeBlock(b []byte, rest, x []float32) {
	var most uint32 // magnitudes are ordered as their bits
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	scale, inverse := math.Float32frombits(most)/127, float32(0)
	if most < math.Float32bits(leastScaled) {
		scale = 0
	} else {
		inverse = 127 / math.Float32frombits(most)
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(scale))
	b = b[scaleLen:][:len(x)]
	rest = rest[:len(x)]
	// Floats of this size have no fraction, so adding it rounds to the nearest even.
	const whole = 3 << 22
	for i, v := range x {
		// The conversions keep the compiler from fusing product and sum.
		level := int8(int32(math.Float32bits(float32(v*inverse) + whole)))
		b[i] = byte(level)
		rest[i] = v - float32(float32(level)*scale)
	}
}

// dequantize unpacks into x what quantize has packed.
func dequantize(x []float32, b []byte) {
	for len(x) > 0 {
		n := min(len(x), quantBlock)
		scale := math.Float32frombits(binary.LittleEndian.Uint32(b))
		levels := b[scaleLen:][:n]
		for i, level := range levels {
			x[i] = float32(int8(level)) * scale
		}
		b, x = b[scaleLen+n:], x[n:]
	}
}
