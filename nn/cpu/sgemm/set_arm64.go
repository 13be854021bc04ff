//go:build !noasm

package sgemm

var neon = kernels{
	name: "NEON", lanes: 4, copy: neonCopy, transpose: neonTranspose, adjacent: true,
	product: [9]([]func(*tileWords)){
		1: {nil, neonRows1x1, neonRows2x1, neonRows3x1, neonRows4x1, neonRows5x1, neonRows6x1,
			neonRows7x1, neonRows8x1, neonRows9x1, neonRows10x1, neonRows11x1, neonRows12x1},
		2: {nil, neonRows1x2, neonRows2x2, neonRows3x2, neonRows4x2, neonRows5x2, neonRows6x2,
			neonRows7x2, neonRows8x2, neonRows9x2, neonRows10x2, neonRows11x2, neonRows12x2},
		4: {nil, neonRows1x4, neonRows2x4, neonRows3x4, neonRows4x4},
		8: {nil, neonRows1x8, neonRows2x8},
	},
}

// available returns the kernels that this processor can run. Go's arm64 always has NEON.
func available() []*kernels { return []*kernels{&neon} }
