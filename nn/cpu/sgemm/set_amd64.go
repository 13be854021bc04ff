//go:build !noasm

package sgemm

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/cpu"
)

var avx2 = kernels{
	name: "AVX2 FMA", lanes: 8, copy: avx2Copy, transpose: avx2Transpose, dotRows: 10, narrowRows: 16,
	product: [9]([]func(*tileWords)){
		1: {nil, avx2Rows1x1, avx2Rows2x1, avx2Rows3x1, avx2Rows4x1, avx2Rows5x1, avx2Rows6x1,
			avx2Rows7x1, avx2Rows8x1, avx2Rows9x1, avx2Rows10x1, avx2Rows11x1, avx2Rows12x1},
		2: {nil, avx2Rows1x2, avx2Rows2x2, avx2Rows3x2, avx2Rows4x2, avx2Rows5x2, avx2Rows6x2},
		4: {nil, avx2Rows1x4, avx2Rows2x4, avx2Rows3x4},
		8: {nil, avx2Rows1x8},
	},
	packed:     []func(*tileWords){4: avx2Packed4x2, avx2Packed5x2, avx2Packed6x2},
	fewColumns: 60, // with 64, packing was faster on Zen 3
	dots: [3]([]func(*dotsWords)){
		1: {nil, avx2Dots1x2, avx2Dots2x2, avx2Dots3x2, avx2Dots4x2, avx2Dots5x2},
		2: {nil, avx2Dots1x4},
	},
	narrow: [3]([]func(*dotsWords)){
		1: {nil, avx2Narrow1x1, avx2Narrow2x1, avx2Narrow3x1, avx2Narrow4x1, avx2Narrow5x1,
			avx2Narrow6x1, avx2Narrow7x1, avx2Narrow8x1, avx2Narrow9x1, avx2Narrow10x1},
	},
}

var avx512 = kernels{
	name: "AVX-512", lanes: 16, copy: avx512Copy, transpose: avx512Transpose, dotRows: 8, narrowRows: 32, wideShort: true,
	product: [9]([]func(*tileWords)){
		1: {nil, avx512Rows1x1, avx512Rows2x1, avx512Rows3x1, avx512Rows4x1, avx512Rows5x1, avx512Rows6x1, avx512Rows7x1,
			avx512Rows8x1, avx512Rows9x1, avx512Rows10x1, avx512Rows11x1, avx512Rows12x1, avx512Rows13x1, avx512Rows14x1},
		2: {nil, avx512Rows1x2, avx512Rows2x2, avx512Rows3x2, avx512Rows4x2, avx512Rows5x2, avx512Rows6x2, avx512Rows7x2,
			avx512Rows8x2, avx512Rows9x2, avx512Rows10x2, avx512Rows11x2, avx512Rows12x2, avx512Rows13x2, avx512Rows14x2},
		4: {nil, avx512Rows1x4, avx512Rows2x4, avx512Rows3x4, avx512Rows4x4, avx512Rows5x4, avx512Rows6x4},
		8: {nil, avx512Rows1x8, avx512Rows2x8, avx512Rows3x8},
	},
	packed: []func(*tileWords){7: avx512Packed7x2, avx512Packed8x2, avx512Packed9x2, avx512Packed10x2,
		avx512Packed11x2, avx512Packed12x2, avx512Packed13x2, avx512Packed14x2},
	fewColumns: fewColumns, // with 60, 120 and 250, products of 128 and 289 columns were slower on Zen 4
	dots: [3]([]func(*dotsWords)){
		1: {nil, avx2Dots1x2, avx2Dots2x2, avx2Dots3x2, avx2Dots4x2},
		2: {nil, avx512Dots1x2, avx512Dots2x2, avx512Dots3x2, avx512Dots4x2, avx512Dots5x2, avx512Dots6x2, avx512Dots7x2, avx512Dots8x2},
	},
	narrow: [3]([]func(*dotsWords)){
		1: {nil, avx512Narrow1x1, avx512Narrow2x1, avx512Narrow3x1, avx512Narrow4x1, avx512Narrow5x1, avx512Narrow6x1,
			avx512Narrow7x1, avx512Narrow8x1, avx512Narrow9x1, avx512Narrow10x1, avx512Narrow11x1, avx512Narrow12x1},
		2: {nil, avx512Narrow1x2, avx512Narrow2x2, avx512Narrow3x2, avx512Narrow4x2, avx512Narrow5x2, avx512Narrow6x2,
			avx512Narrow7x2, avx512Narrow8x2, avx512Narrow9x2, avx512Narrow10x2},
	},
}

// avx512Halves is avx512, but multiplies up to 4 rows with registers of AVX2. Wide registers take
// more instructions to fill with parts of rows, so this is faster on processors that compute half
// a wide register at a time.
var avx512Halves = func() kernels {
	k := avx512
	k.dots[2] = slices.Concat([]func(*dotsWords){nil, avx2Dots1x4, nil, nil, nil}, k.dots[2][5:])
	return k
}()

// halvesFirst reports whether avx512Halves is faster than avx512 here. It multiplies 3 rows with
// both, which takes about 200 µs. AMD's CPUID has a bit for whole registers (FP512), but a
// hypervisor may hide it.
var halvesFirst = sync.OnceValue(func() bool {
	const rows, columns, inner = 3, 2 * dotColumns, Block - 16 // not a stride that displaces rows
	a, b, c := make([]float32, rows*inner), make([]float32, columns*inner), make([]float32, rows*columns)
	shortest := func(x *Multiplier, before time.Duration) time.Duration {
		start := time.Now()
		for range 10 {
			x.Multiply(Matrix{c, columns, false}, Matrix{a, inner, false}, Matrix{b, inner, true}, Shape{rows, columns, inner}, 0)
		}
		return min(before, time.Since(start))
	}
	whole, halves := time.Hour, time.Hour
	for range 10 {
		whole = shortest(&Multiplier{kernels: &avx512}, whole)
		halves = shortest(&Multiplier{kernels: &avx512Halves}, halves)
	}
	return halves < whole
})

// available returns the kernels that this processor can run, the fastest first.
func available() []*kernels {
	var all []*kernels
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, &avx512, &avx512Halves)
		if halvesFirst() {
			slices.Reverse(all)
		}
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, &avx2)
	}
	return all
}
