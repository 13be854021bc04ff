package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The multipliers and the number of rounds of Philox4x32-10.
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxRounds = 10
)

// The layout of the kernel's state, one register each; pairs of round keys follow at the
// end. nn/cpu/simd_amd64.go has the same list.
const (
	column = iota
	row
	layer
	step
	next // added to column after each iteration
	limit
	factor
	keys
)

// dropout draws the words of four Philox counters at a time, each in 64 bits of a
// register. The upper halves may hold anything, because a multiplication reads only the
// lower ones. Counters are in the order 0 2 1 3, which the unpacking at the end undoes.
func dropout() {
	kernel.Begin("dropoutBlocks", "(y, x []float32, s *[27][4]uint64)", "dropoutBlocks is dropLoop for whole blocks of 16 elements.")
	y, x, s := kernel.Base("y"), kernel.Base("x"), kernel.Pointer("s")
	field := func(i int) Mem { return s.Offset(i * kernel.Vector) }
	m0, m1 := multiplier(philoxM0), multiplier(philoxM1)
	block, below := load(field(column)), load(field(limit))
	kernel.Loop(kernel.Length("y"), 2*lanes, func(int) {
		c := [4]reg.VecVirtual{YMM(), load(field(row)), load(field(layer)), load(field(step))}
		VMOVDQU(block, c[0])
		for r := range philoxRounds {
			p0, p1 := YMM(), YMM()
			VPMULUDQ(c[0], m0, p0)
			VPMULUDQ(c[2], m1, p1)
			high0, high1 := YMM(), YMM()
			VPSRLQ(U8(32), p0, high0)
			VPSRLQ(U8(32), p1, high1)
			VPXOR(field(keys+2*r), c[1], c[1])
			VPXOR(field(keys+2*r+1), c[3], c[3])
			VPXOR(high1, c[1], c[1])
			VPXOR(high0, c[3], c[3])
			c = [4]reg.VecVirtual{c[1], p1, c[3], p0}
		}
		pair(c[0], c[1])
		pair(c[2], c[3])
		low, high := YMM(), YMM()
		VPUNPCKLQDQ(c[2], c[0], low)
		VPUNPCKHQDQ(c[2], c[0], high)
		for i, words := range []reg.VecVirtual{low, high} {
			VPSRLD(U8(8), words, words)
			VPCMPGTD(below, words, words)
			v := load(x.Offset(i * kernel.Vector))
			VMULPS(field(factor), v, v)
			VANDPS(v, words, v)
			VMOVUPS(v, y.Offset(i*kernel.Vector))
		}
		VPADDQ(field(next), block, block)
	}, func(int) { kernel.Move(2*kernel.Vector, y, x) })
	kernel.End()
}

// multiplier returns a register with m in every 64 bits.
func multiplier(m uint32) reg.VecVirtual {
	g, v := GP64(), YMM()
	MOVL(U32(m), g.As32())
	VMOVQ(g, v.AsX())
	VPBROADCASTQ(v.AsX(), v)
	return v
}

// pair puts the lower halves of b above those of a.
func pair(a, b reg.Register) {
	VPSLLQ(U8(32), b, b)
	VPBLENDD(U8(0xaa), b, a, a)
}
