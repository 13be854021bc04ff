package fold

import "math"

// Format is a 16-bit floating-point format.
type Format uint8

// The formats. Half is IEEE 754 binary16, with 5 exponent and 10 fraction bits. Brain
// (bfloat16) is the upper half of a float32, with 8 exponent and 7 fraction bits.
const (
	Half Format = iota
	Brain
)

// Widen sets dst[i] to the float32 equal to src[i]; the conversion is exact. A NaN keeps
// its sign and payload; Half makes it quiet, Brain leaves it as it is. The slices have
// the same length and do not overlap. Widen does not allocate.
func Widen(dst []float32, src []uint16, f Format) {
	src = src[:len(dst)]
	done := fastWiden(dst, src, f)
	widenEach(dst[done:], src[done:], f)
}

// Round sets dst[i] to the number nearest to src[i] in the format, with ties to even.
// Values at least half a step above the largest finite number become infinite. Values
// below the smallest normal number become subnormal. A NaN is made quiet and keeps its
// sign and the upper bits of its payload. The slices have the same length and do not
// overlap. Round does not allocate.
func Round(dst []uint16, src []float32, f Format) {
	src = src[:len(dst)]
	done := fastRound(dst, src, f)
	roundEach(dst[done:], src[done:], f)
}

// widenEach is the loop that defines Widen.
func widenEach(dst []float32, src []uint16, f Format) {
	src = src[:len(dst)]
	switch f {
	case Half:
		for i, h := range src {
			dst[i] = fromHalf(h)
		}
	case Brain:
		for i, h := range src {
			dst[i] = math.Float32frombits(uint32(h) << 16)
		}
	}
}

// roundEach is the loop that defines Round.
func roundEach(dst []uint16, src []float32, f Format) {
	src = src[:len(dst)]
	switch f {
	case Half:
		for i, x := range src {
			dst[i] = toHalf(x)
		}
	case Brain:
		for i, x := range src {
			dst[i] = toBrain(x)
		}
	}
}

// Bit patterns of float32 and binary16. shift is the difference of their fraction widths.
const (
	sign32, infinity32 = 1 << 31, 0x7f800000
	sign16, infinity16 = 1 << 15, 0x7c00
	shift              = 13
	biases             = (127 - 15) << 23 // difference of the exponent biases
)

func fromHalf(h uint16) float32 {
	sign, rest := uint32(h&sign16)<<16, uint32(h&^sign16)
	switch {
	case rest > infinity16:
		return math.Float32frombits(sign | infinity32 | quiet32 | rest<<shift)
	case rest == infinity16:
		return math.Float32frombits(sign | infinity32)
	case rest >= 1<<10:
		return math.Float32frombits(sign | (rest<<shift + biases))
	}
	// A subnormal half is a multiple of 2^-24, as is zero. float32
	// represents both exactly.
	return math.Float32frombits(sign | math.Float32bits(float32(rest)*0x1p-24))
}

func toHalf(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, rest := uint16(bits>>16)&sign16, bits&^sign32
	switch {
	case rest > infinity32:
		return sign | infinity16 | quiet32>>shift | uint16(rest>>shift)&(1<<10-1)
	case rest >= 0x47800000: // 2^16
		return sign | infinity16
	case rest >= 0x38800000: // 2^-14, the smallest normal half
		return sign | uint16(evenShift(rest-biases, shift)) // may carry to infinity
	case rest < 0x33000000: // 2^-25, half the smallest subnormal
		return sign
	}
	exponent := rest >> 23
	fraction := rest&(1<<23-1) | 1<<23
	return sign | uint16(evenShift(fraction, 126-exponent))
}

// evenShift returns bits / 2^by, rounded to nearest even.
func evenShift(bits, by uint32) uint32 {
	odd := bits >> by & 1
	return (bits + 1<<(by-1) - 1 + odd) >> by
}

func toBrain(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | quiet32>>16
	}
	return uint16(evenShift(bits, 16))
}
