package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// A float is an element type and the instructions for it.
type float struct {
	name, suffix      string
	lanes             int
	add, mul, or, and func(...Op)
	min, max          func(...Op)
	compare, spread   func(...Op)
	blend             func(mask, yes, no, dst Op)
}

var floats = []float{
	{"float32", "32", 8, VADDPS, VMULPS, VORPS, VANDPS, VMINPS, VMAXPS, VCMPPS, VBROADCASTSS, VBLENDVPS},
	{"float64", "64", 4, VADDPD, VMULPD, VORPD, VANDPD, VMINPD, VMAXPD, VCMPPD, VBROADCASTSD, VBLENDVPD},
}

// ahead is the prefetch distance in bytes. The hardware prefetcher starts over at every
// page, and cache lines that another core has just written arrive slowly.
const ahead = 2 << 10

// into emits a kernel for dst = a op b with the given number of elements in a register.
// prepare sets the registers that op reads.
func into(name, element string, lanes int, op func(...Op), prepare ...func()) {
	kernel.Begin(name, "(dst, a, b []"+element+")", name+" is Into for whole blocks.")
	dst, a, b := kernel.Base("dst"), kernel.Base("a"), kernel.Base("b")
	for _, f := range prepare {
		f()
	}
	kernel.Loops(kernel.Length("dst"), lanes, func(k int) {
		x := YMM()
		VMOVUPS(a.Offset(k*kernel.Vector), x)
		op(b.Offset(k*kernel.Vector), x, x)
		VMOVUPS(x, dst.Offset(k*kernel.Vector))
		if k%2 == 1 { // once per cache line, in the wide loop
			PREFETCHT0(a.Offset((k-1)*kernel.Vector + ahead))
			PREFETCHT0(b.Offset((k-1)*kernel.Vector + ahead))
		}
	}, func(blocks int) {
		for _, p := range []Mem{dst, a, b} {
			ADDQ(U32(blocks*kernel.Vector), p.Base)
		}
	})
	kernel.End()
}

// extreme computes the minimum or maximum. The instruction returns its second operand if
// the two are equal or one is NaN, so it runs in both orders. For numbers the two results
// differ only for zeros of opposite sign, where or (and) selects the smaller (larger)
// one. If an operand is NaN, the sum is the result that Into promises.
func (f float) extreme(op, merge func(...Op)) func(...Op) {
	return func(ops ...Op) {
		x, dst := ops[1], ops[2]
		y, mirrored, sum, mask := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(ops[0], y)
		f.add(y, x, sum)
		f.compare(U8(3), y, x, mask) // 3: unordered
		op(x, y, mirrored)
		op(y, x, dst)
		merge(mirrored, dst, dst)
		f.blend(mask, sum, dst, dst)
	}
}

// scale emits a kernel for x = x * by.
func scale(f float) {
	name := "scale" + f.suffix
	kernel.Begin(name, "(x []"+f.name+", by "+f.name+")", name+" is Scale for whole blocks.")
	x, by := kernel.Base("x"), YMM()
	f.spread(Load(Param("by"), XMM()), by)
	kernel.Loops(kernel.Length("x"), f.lanes, func(k int) {
		v := YMM()
		VMOVUPS(x.Offset(k*kernel.Vector), v)
		f.mul(by, v, v)
		VMOVUPS(v, x.Offset(k*kernel.Vector))
	}, func(blocks int) {
		ADDQ(U32(blocks*kernel.Vector), x.Base)
	})
	kernel.End()
}
