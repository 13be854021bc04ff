package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The kernels here are those of normal.go for AVX-512, with the same operations in the same
// order. Their registers hold two blocks.

// wide is the size of a register in bytes.
const wide = 2 * kernel.Vector

// VCMPPS predicates: greaterThan is false if an operand is NaN, notLess is true.
const (
	greaterThan = 0x1e
	notLess     = 0x15
)

// loadWide returns a register loaded from memory.
func loadWide(m Mem) reg.VecVirtual {
	x := ZMM()
	VMOVUPS(m, x)
	return x
}

// constantWide returns a register with a constant in every lane.
func constantWide(m Mem) reg.VecVirtual {
	x := ZMM()
	VBROADCASTSS(m, x)
	return x
}

// ahead is how many bytes ahead a kernel fetches. Activations of a forward pass have left
// the caches when the backward pass reads them, and the processor alone fetches too late.
const ahead = 2048

// fetch fetches memory that a kernel will soon read or write.
func fetch(m ...Mem) {
	for _, each := range m {
		PREFETCHT0(each.Offset(ahead))
	}
}

// hornerWide is horner.
func hornerWide(c Mem, first, count int, x reg.VecVirtual) reg.VecVirtual {
	p := constantWide(c.Offset(first))
	for k := 1; k < count; k++ {
		VMULPS(x, p, p)
		VADDPS_BCST(c.Offset(first+k*kernel.Vector), p, p)
	}
	return p
}

// expWide is exp.
func expWide(c Mem, x reg.VecVirtual) reg.VecVirtual {
	shifted, n, r, part := ZMM(), ZMM(), ZMM(), ZMM()
	VMULPS_BCST(c.Offset(log2e), x, shifted)
	VADDPS_BCST(c.Offset(roundTo), shifted, shifted)
	VSUBPS_BCST(c.Offset(roundTo), shifted, n)
	VMULPS_BCST(c.Offset(ln2Hi), n, part)
	VSUBPS(part, x, r)
	VMULPS_BCST(c.Offset(ln2Lo), n, part)
	VSUBPS(part, r, r)
	p := hornerWide(c, expTerms, expCount, r)
	VMULPS(r, r, part)
	VMULPS(part, p, p)
	VADDPS(r, p, p)
	VADDPS_BCST(c.Offset(one), p, p)
	low, high := ZMM(), ZMM()
	VPSUBD_BCST(c.Offset(roundTo), shifted, shifted)
	VPSRAD(U8(1), shifted, low)
	VPSUBD(low, shifted, high)
	for _, k := range []reg.VecVirtual{low, high} {
		VPADDD_BCST(c.Offset(bias), k, k)
		VPSLLD(U8(23), k, k)
		VMULPS(k, p, p)
	}
	mask := K()
	VCMPPS_BCST(U8(notLess), c.Offset(expLeast), x, mask)
	VMOVAPS_Z(p, mask, p)
	VCMPPS_BCST(U8(greaterThan), c.Offset(expMost), x, mask)
	VBROADCASTSS(c.Offset(infinity), mask, p)
	return p
}

// normalWide is normal.
func normalWide(c Mem, x reg.VecVirtual) (cumulative, e reg.VecVirtual) {
	square := ZMM()
	VMULPS_BCST(c.Offset(minusHalf), x, square)
	VMULPS(x, square, square)
	e = expWide(c, square)
	t, unit := ZMM(), constantWide(c.Offset(one))
	VPANDD_BCST(c.Offset(magnitude), x, t)
	VMULPS_BCST(c.Offset(slope), t, t)
	VADDPS(unit, t, t)
	VDIVPS(t, unit, t)
	tail := hornerWide(c, normalTerms, normalCount, t)
	VMULPS(t, tail, tail)
	VMULPS(e, tail, tail)
	cumulative = ZMM()
	VSUBPS(tail, unit, cumulative)
	zero, mask := ZMM(), K()
	VPXORD(zero, zero, zero)
	VCMPPS(U8(lessThan), zero, x, mask)
	VMOVAPS(tail, mask, cumulative)
	return cumulative, e
}

// eachWide is eachLong.
func eachWide(first string, step func(), pointers ...Mem) {
	kernel.Loop(kernel.Length(first), 2*lanes, func(int) { step() }, func(int) { kernel.Move(wide, pointers...) })
	kernel.End()
}

// expsWide is exps.
func expsWide() {
	kernel.Begin("expWide", "(y []float32, top float32, constants *[28][8]float32)", "expWide is expLoop for whole blocks of 16 elements, with AVX-512.")
	y, top, c := kernel.Base("y"), ZMM(), kernel.Pointer("constants")
	VBROADCASTSS(Load(Param("top"), XMM()), top)
	eachWide("y", func() {
		x := loadWide(y)
		VSUBPS(top, x, x)
		VMOVUPS(expWide(c, x), y)
	}, y)
}

// geluWide is gelu.
func geluWide() {
	kernel.Begin("geluWide", "(y, x []float32, constants *[28][8]float32)", "geluWide is geluLoop for whole blocks of 16 elements, with AVX-512.")
	y, x, c := kernel.Base("y"), kernel.Base("x"), kernel.Pointer("constants")
	eachWide("y", func() {
		v := loadWide(x)
		cumulative, _ := normalWide(c, v)
		VMULPS(cumulative, v, v)
		VMOVUPS(v, y)
	}, y, x)
}

// geluGradWide is geluGrad.
func geluGradWide() {
	kernel.Begin("geluGradWide", "(dx, dy, x []float32, constants *[28][8]float32)", "geluGradWide is geluGradLoop for whole blocks of 16 elements, with AVX-512.")
	dx, dy, x, c := kernel.Base("dx"), kernel.Base("dy"), kernel.Base("x"), kernel.Pointer("constants")
	eachWide("dx", func() {
		fetch(x, dy)
		v := loadWide(x)
		cumulative, e := normalWide(c, v)
		VMULPS_BCST(c.Offset(inverseRoot2Pi), e, e)
		VMULPS(e, v, e)
		VADDPS(e, cumulative, e)
		VMULPS(dy, e, e)
		VMOVUPS(e, dx)
	}, dx, dy, x)
}
