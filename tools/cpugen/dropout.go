package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// Multipliers and rounds of Philox4x32-10.
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxRounds = 10
)

// The places, a register full each, in the memory that dropout is given; the keys
// of the rounds follow in pairs. nn/cpu/dropout.go has the same list.
const (
	column = iota
	row
	layer
	step
	next // what is added to column
	limit
	factor
	keys
)

// dropout draws the words of four Philox counters at once, each in 64 bits of a
// register, whose upper halves may hold anything: a multiplication reads the
// lower. The counters stand in the order 0 2 1 3, which the last step undoes.
func dropout() {
	kernel.Begin("dropoutBlocks", "(y, x []float32, s *[27][4]uint64)", "dropoutBlocks is whole blocks, of 16 elements, of dropLoop.")
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

// multiplier is a register full of m in 64 bits.
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
