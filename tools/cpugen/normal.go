package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The offsets of the constants of exp and normal, one register each. nn/cpu/simd_amd64.go
// has the same list.
const (
	expLeast = iota * kernel.Vector
	expMost
	log2e
	roundTo
	ln2Hi
	ln2Lo
	expTerms
)

const (
	one  = expTerms + (6+iota)*kernel.Vector
	bias // 127, an integer
	infinity
	minusHalf
	magnitude // all bits but the sign
	slope
	inverseRoot2Pi
	normalTerms
)

// The number of terms of the two polynomials.
const (
	expCount    = 6
	normalCount = 9
)

// horner emits the polynomial in x whose terms begin at an offset.
func horner(c Mem, first, count int, x reg.VecVirtual) reg.VecVirtual {
	p := load(c.Offset(first))
	for k := 1; k < count; k++ {
		VMULPS(x, p, p)
		VADDPS(c.Offset(first+k*kernel.Vector), p, p)
	}
	return p
}

// exp emits nn/cpu's exp of x, with the constants at c.
func exp(c Mem, x reg.VecVirtual) reg.VecVirtual {
	shifted, n, r, part := YMM(), YMM(), YMM(), YMM()
	VMULPS(c.Offset(log2e), x, shifted)
	VADDPS(c.Offset(roundTo), shifted, shifted)
	VSUBPS(c.Offset(roundTo), shifted, n)
	VMULPS(c.Offset(ln2Hi), n, part)
	VSUBPS(part, x, r)
	VMULPS(c.Offset(ln2Lo), n, part)
	VSUBPS(part, r, r)
	p := horner(c, expTerms, expCount, r)
	VMULPS(r, r, part)
	VMULPS(part, p, p)
	VADDPS(r, p, p)
	VADDPS(c.Offset(one), p, p)
	// 2ⁿ in two factors.
	low, high := YMM(), YMM()
	VPSUBD(c.Offset(roundTo), shifted, shifted)
	VPSRAD(U8(1), shifted, low)
	VPSUBD(low, shifted, high)
	for _, k := range []reg.VecVirtual{low, high} {
		VPADDD(c.Offset(bias), k, k)
		VPSLLD(U8(23), k, k)
		VMULPS(k, p, p)
	}
	mask := load(c.Offset(expLeast))
	VCMPPS(U8(lessThan), mask, x, mask)
	VANDNPS(p, mask, p)
	most := load(c.Offset(expMost))
	VCMPPS(U8(lessThan), x, most, mask)
	VBLENDVPS(mask, c.Offset(infinity), p, p)
	return p
}

// normal emits nn/cpu's normal of x: Φ(x) and exp(-x²/2).
func normal(c Mem, x reg.VecVirtual) (cumulative, e reg.VecVirtual) {
	square := YMM()
	VMULPS(c.Offset(minusHalf), x, square)
	VMULPS(x, square, square)
	e = exp(c, square)
	t, unit := YMM(), load(c.Offset(one))
	VANDPS(c.Offset(magnitude), x, t)
	VMULPS(c.Offset(slope), t, t)
	VADDPS(unit, t, t)
	VDIVPS(t, unit, t)
	tail := horner(c, normalTerms, normalCount, t)
	VMULPS(t, tail, tail)
	VMULPS(e, tail, tail)
	cumulative = YMM()
	VSUBPS(tail, unit, cumulative)
	mask := YMM()
	VXORPS(mask, mask, mask)
	VCMPPS(U8(lessThan), mask, x, mask)
	VBLENDVPS(mask, tail, cumulative, cumulative)
	return cumulative, e
}

// eachLong is each without unrolling.
func eachLong(first string, step func(), pointers ...Mem) {
	kernel.Loop(kernel.Length(first), lanes, func(int) { step() }, func(int) { kernel.Move(kernel.Vector, pointers...) })
	kernel.End()
}

// exps emits y = exp(y - top).
func exps() {
	kernel.Begin("expBlocks", "(y []float32, top float32, constants *[28][8]float32)", "expBlocks is expLoop for whole blocks.")
	y, top, c := kernel.Base("y"), broadcast("top"), kernel.Pointer("constants")
	eachLong("y", func() {
		x := load(y)
		VSUBPS(top, x, x)
		VMOVUPS(exp(c, x), y)
	}, y)
}

// gelu emits y = x·Φ(x).
func gelu() {
	kernel.Begin("geluBlocks", "(y, x []float32, constants *[28][8]float32)", "geluBlocks is geluLoop for whole blocks.")
	y, x, c := kernel.Base("y"), kernel.Base("x"), kernel.Pointer("constants")
	eachLong("y", func() {
		v := load(x)
		cumulative, _ := normal(c, v)
		VMULPS(cumulative, v, v)
		VMOVUPS(v, y)
	}, y, x)
}

// geluGrad emits dx = dy·(Φ(x) + x·φ(x)).
func geluGrad() {
	kernel.Begin("geluGradBlocks", "(dx, dy, x []float32, constants *[28][8]float32)", "geluGradBlocks is geluGradLoop for whole blocks.")
	dx, dy, x, c := kernel.Base("dx"), kernel.Base("dy"), kernel.Base("x"), kernel.Pointer("constants")
	eachLong("dx", func() {
		v := load(x)
		cumulative, e := normal(c, v)
		VMULPS(c.Offset(inverseRoot2Pi), e, e)
		VMULPS(e, v, e)
		VADDPS(e, cumulative, e)
		VMULPS(dy, e, e)
		VMOVUPS(e, dx)
	}, dx, dy, x)
}
