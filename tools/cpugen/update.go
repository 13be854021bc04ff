package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The offsets of the terms of an update, one register each. nn/cpu/adam.go
// has the same list.
const (
	termClip = iota * kernel.Vector
	termL2
	termRate
	termDecay
	termEps
	termBeta1
	termMix1
	termBeta2
	termMix2
)

// squares adds the squares of g + l2·w to 16 sums in float64: element i to sum i mod 16.
func squares() {
	kernel.Begin("squaresBlocks", "(sums *[16]float64, g, w []float32, l2 float32)",
		"squaresBlocks is squaresLoop for whole blocks of 16 elements.")
	sums, g, w, l2 := kernel.Pointer("sums"), kernel.Base("g"), kernel.Base("w"), broadcast("l2")
	var parts [4]reg.VecVirtual
	for i := range parts {
		parts[i] = load(sums.Offset(i * kernel.Vector))
	}
	kernel.Loop(kernel.Length("g"), 2*lanes, func(int) {
		for half := range 2 {
			x := YMM()
			VMULPS(w.Offset(half*kernel.Vector), l2, x)
			VADDPS(g.Offset(half*kernel.Vector), x, x)
			high := XMM()
			VEXTRACTF128(U8(1), x, high)
			for i, four := range []reg.Register{x.AsX(), high} {
				wide := YMM()
				VCVTPS2PD(four, wide)
				VMULPD(wide, wide, wide)
				VADDPD(wide, parts[2*half+i], parts[2*half+i])
			}
		}
	}, func(int) { kernel.Move(2*kernel.Vector, g, w) })
	for i, p := range parts {
		VMOVUPD(p, sums.Offset(i*kernel.Vector))
	}
	kernel.End()
}

// clipped returns clip·(g + l2·w).
func clipped(g Mem, w reg.Register, terms Mem) reg.VecVirtual {
	x := YMM()
	VMULPS(terms.Offset(termL2), w, x)
	VADDPS(g, x, x)
	VMULPS(terms.Offset(termClip), x, x)
	return x
}

// subtract sets w to w - d, then subtracts decay times the result.
func subtract(w, d reg.Register, terms, to Mem) {
	VSUBPS(d, w, w)
	VMULPS(terms.Offset(termDecay), w, d)
	VSUBPS(d, w, w)
	VMOVUPS(w, to)
}

func adam() {
	kernel.Begin("adamBlocks", "(w, g, m, v []float32, terms *[9][8]float32)", "adamBlocks is adamLoop for whole blocks.")
	w, g, m, v, terms := kernel.Base("w"), kernel.Base("g"), kernel.Base("m"), kernel.Base("v"), kernel.Pointer("terms")
	magnitude, tiny := YMM(), YMM()
	VPCMPEQD(tiny, tiny, tiny)
	VPSRLD(U8(1), tiny, magnitude) // all bits but the sign
	VPSRLD(U8(31), tiny, tiny)
	VPSLLD(U8(23), tiny, tiny) // the smallest normal number
	each("w", func(at int) {
		wi := load(w.Offset(at))
		gi := clipped(g.Offset(at), wi, terms)
		mi, vi, x := load(m.Offset(at)), load(v.Offset(at)), YMM()
		VMULPS(terms.Offset(termBeta1), mi, mi)
		VMULPS(terms.Offset(termMix1), gi, x)
		VADDPS(x, mi, mi)
		VMULPS(terms.Offset(termBeta2), vi, vi)
		VMULPS(terms.Offset(termMix2), gi, x)
		VMULPS(gi, x, x)
		VADDPS(x, vi, vi)
		VANDPS(mi, magnitude, x)
		VCMPPS(U8(lessThan), tiny, x, x)
		VANDNPS(mi, x, mi)
		VCMPPS(U8(lessThan), tiny, vi, x)
		VANDNPS(vi, x, vi)
		VMOVUPS(mi, m.Offset(at))
		VMOVUPS(vi, v.Offset(at))
		VMULPS(terms.Offset(termRate), mi, mi)
		VSQRTPS(vi, vi)
		VADDPS(terms.Offset(termEps), vi, vi)
		VDIVPS(vi, mi, mi)
		subtract(wi, mi, terms, w.Offset(at))
	}, w, g, m, v)
}

func sgd() {
	kernel.Begin("sgdBlocks", "(w, g []float32, terms *[9][8]float32)", "sgdBlocks is sgdLoop for whole blocks.")
	w, g, terms := kernel.Base("w"), kernel.Base("g"), kernel.Pointer("terms")
	each("w", func(at int) {
		wi := load(w.Offset(at))
		gi := clipped(g.Offset(at), wi, terms)
		VMULPS(terms.Offset(termRate), gi, gi)
		subtract(wi, gi, terms, w.Offset(at))
	}, w, g)
}
