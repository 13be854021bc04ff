package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// lanes is the number of float32 in a register.
const lanes = kernel.Vector / 4

// VCMPPS predicates that are false if an operand is NaN.
const (
	lessThan    = 0x11
	lessOrEqual = 0x12
)

// VCMPPS predicates that are true for equal numbers, and if an operand is NaN.
const (
	equal     = 0x00
	unordered = 0x03
)

// broadcast returns a register with a float32 parameter in every lane.
func broadcast(name string) reg.VecVirtual {
	v := YMM()
	VBROADCASTSS(Load(Param(name), XMM()), v)
	return v
}

// each emits the loops of a kernel whose pointers advance together. The first slice
// determines the length. step is given the displacement of the k-th block.
func each(first string, step func(at int), pointers ...Mem) {
	kernel.Loops(kernel.Length(first), lanes,
		func(k int) { step(k * kernel.Vector) },
		func(blocks int) { kernel.Move(blocks*kernel.Vector, pointers...) })
	kernel.End()
}

// load returns a register loaded from memory.
func load(m Mem) reg.VecVirtual {
	x := YMM()
	VMOVUPS(m, x)
	return x
}

// add emits y = y + v.
func add() {
	kernel.Begin("addBlocks", "(y, v []float32)", "addBlocks is addLoop for whole blocks.")
	y, v := kernel.Base("y"), kernel.Base("v")
	each("y", func(at int) {
		x := load(y.Offset(at))
		VADDPS(v.Offset(at), x, x)
		VMOVUPS(x, y.Offset(at))
	}, y, v)
}

// scale emits y = a·y.
func scale() {
	kernel.Begin("scaleBlocks", "(y []float32, a float32)", "scaleBlocks is scaleLoop for whole blocks.")
	y, a := kernel.Base("y"), broadcast("a")
	each("y", func(at int) {
		x := YMM()
		VMULPS(y.Offset(at), a, x)
		VMOVUPS(x, y.Offset(at))
	}, y)
}

// axpy emits y = y + a·x.
func axpy() {
	kernel.Begin("axpyBlocks", "(y []float32, a float32, x []float32)", "axpyBlocks is axpyLoop for whole blocks.")
	y, x, a := kernel.Base("y"), kernel.Base("x"), broadcast("a")
	each("y", func(at int) {
		v, sum := YMM(), load(y.Offset(at))
		VMULPS(x.Offset(at), a, v)
		VADDPS(v, sum, sum)
		VMOVUPS(sum, y.Offset(at))
	}, y, x)
}

// relu emits y = x, or 0 where x <= 0.
func relu() {
	kernel.Begin("reluBlocks", "(y, x []float32)", "reluBlocks is reluLoop for whole blocks.")
	y, x, zero := kernel.Base("y"), kernel.Base("x"), YMM()
	VXORPS(zero, zero, zero)
	each("y", func(at int) {
		v, mask := load(x.Offset(at)), YMM()
		VCMPPS(U8(lessOrEqual), zero, v, mask)
		VANDNPS(v, mask, v)
		VMOVUPS(v, y.Offset(at))
	}, y, x)
}

// reluGrad emits dx = scale·dy, or 0 where y <= 0.
func reluGrad() {
	kernel.Begin("reluGradBlocks", "(dx, dy, y []float32, scale float32)", "reluGradBlocks is reluGradLoop for whole blocks.")
	dx, dy, y := kernel.Base("dx"), kernel.Base("dy"), kernel.Base("y")
	scale, zero := broadcast("scale"), YMM()
	VXORPS(zero, zero, zero)
	each("dx", func(at int) {
		d, mask := YMM(), load(y.Offset(at))
		VMULPS(dy.Offset(at), scale, d)
		VCMPPS(U8(lessOrEqual), zero, mask, mask)
		VANDNPS(d, mask, d)
		VMOVUPS(d, dx.Offset(at))
	}, dx, dy, y)
}

// largest emits y = max(y, v): NaN if either is NaN, and 0 for 0 and -0.
func largest() {
	kernel.Begin("maxBlocks", "(y, v []float32)", "maxBlocks is maxLoop for whole blocks.")
	y, v := kernel.Base("y"), kernel.Base("v")
	each("y", func(at int) {
		a, b := load(y.Offset(at)), load(v.Offset(at))
		m, mask, other := YMM(), YMM(), YMM()
		VMAXPS(b, a, m)
		VCMPPS(U8(equal), b, a, mask)
		VANDPS(b, a, other)
		VBLENDVPS(mask, other, m, m)
		VCMPPS(U8(unordered), b, a, mask)
		VADDPS(b, a, other)
		VBLENDVPS(mask, other, m, m)
		VMOVUPS(m, y.Offset(at))
	}, y, v)
}

// dot adds the products x·y to 16 sums: element i to sum i mod 16.
func dot() {
	kernel.Begin("dotBlocks", "(sums *[16]float32, x, y []float32)", "dotBlocks is dotLoop for whole blocks of 16 elements.")
	sums, x, y := kernel.Pointer("sums"), kernel.Base("x"), kernel.Base("y")
	parts := []reg.VecVirtual{load(sums), load(sums.Offset(kernel.Vector))}
	kernel.Loops(kernel.Length("x"), 2*lanes, func(k int) {
		for half, part := range parts {
			at := (2*k + half) * kernel.Vector
			p := load(x.Offset(at))
			VMULPS(y.Offset(at), p, p)
			VADDPS(p, part, part)
		}
	}, func(blocks int) { kernel.Move(blocks*2*kernel.Vector, x, y) })
	for half, part := range parts {
		VMOVUPS(part, sums.Offset(half*kernel.Vector))
	}
	kernel.End()
}
