package fold

import "math"

// Format is how 16 bits hold a float.
type Format uint8

// The formats. Half is IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
// Brain is the upper half of a float32: 8 and 7.
const (
	Half Format = iota
	Brain
)

// Widen sets dst[i] to the float32 that src[i] is in the format, exactly. A NaN
// keeps its sign and payload, and comes out quiet of Half, as it is of Brain.
// The two have the same length and do not overlap. It allocates nothing.
func Widen(dst []float32, src []uint16, f Format) {
	src = src[:len(dst)]
	done := fastWiden(dst, src, f)
	widenEach(dst[done:], src[done:], f)
}

// Round sets dst[i] to what is nearest to src[i] in the format; of two that are
// equally near, to the even one. What lies half a step or more beyond the
// greatest number is infinite, numbers below the normal ones are kept as
// subnormals. A NaN keeps its sign and the upper bits of its payload and comes
// out quiet. The two have the same length and do not overlap. It allocates
// nothing.
func Round(dst []uint16, src []float32, f Format) {
	src = src[:len(dst)]
	done := fastRound(dst, src, f)
	roundEach(dst[done:], src[done:], f)
}

// widenEach is Widen.
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

// roundEach is Round.
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

// The parts of a float32 and of a half; shift is between their fractions.
const (
	sign32, infinity32 = 1 << 31, 0x7f800000
	sign16, infinity16 = 1 << 15, 0x7c00
	shift              = 13
	biases             = (127 - 15) << 23 // between their exponents
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
	// A subnormal is a count of 2^-24, and so is zero; both have a float32.
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
	case rest >= 0x38800000: // 2^-14, the least normal half
		return sign | uint16(evenShift(rest-biases, shift)) // may carry to infinity
	case rest < 0x33000000: // 2^-25, half the least subnormal
		return sign
	}
	exponent := rest >> 23
	fraction := rest&(1<<23-1) | 1<<23
	return sign | uint16(evenShift(fraction, 126-exponent))
}

// evenShift is bits / 2^by, rounded to nearest even.
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
