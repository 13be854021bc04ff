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
	termScale = iota * kernel.Vector
	termClip
	termL2
	termRate
	termDecay
	termShare
	termEps
	termBeta1
	termMix1
	termBeta2
	termMix2
)

// squares adds the squares of scale·g + l2·w to 16 sums in float64: element i to sum i mod 16.
func squares() {
	kernel.Begin("squaresBlocks", "(sums *[16]float64, g, w []float32, scale, l2 float32)",
		"squaresBlocks is squaresLoop for whole blocks of 16 elements.")
	sums, g, w, scale, l2 := kernel.Pointer("sums"), kernel.Base("g"), kernel.Base("w"), broadcast("scale"), broadcast("l2")
	var parts [4]reg.VecVirtual
	for i := range parts {
		parts[i] = load(sums.Offset(i * kernel.Vector))
	}
	kernel.Loop(kernel.Length("g"), 2*lanes, func(int) {
		fetch(g, w)
		for half := range 2 {
			x, y := YMM(), YMM()
			VMULPS(w.Offset(half*kernel.Vector), l2, x)
			VMULPS(g.Offset(half*kernel.Vector), scale, y)
			VADDPS(x, y, x)
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

// squaresWide is squares for AVX-512.
func squaresWide() {
	kernel.Begin("squaresWide", "(sums *[16]float64, g, w []float32, scale, l2 float32)",
		"squaresWide is squaresLoop for whole blocks of 16 elements, with AVX-512.")
	sums, g, w, scale, l2 := kernel.Pointer("sums"), kernel.Base("g"), kernel.Base("w"), ZMM(), ZMM()
	VBROADCASTSS(Load(Param("scale"), XMM()), scale)
	VBROADCASTSS(Load(Param("l2"), XMM()), l2)
	parts := [2]reg.VecVirtual{loadWide(sums), loadWide(sums.Offset(wide))}
	kernel.Loop(kernel.Length("g"), 2*lanes, func(int) {
		x, y, high := ZMM(), ZMM(), YMM()
		fetch(g, w)
		VMULPS(w, l2, x)
		VMULPS(g, scale, y)
		VADDPS(x, y, x)
		VEXTRACTF64X4(U8(1), x, high)
		for i, eight := range []reg.Register{x.AsY(), high} {
			square := ZMM()
			VCVTPS2PD(eight, square)
			VMULPD(square, square, square)
			VADDPD(square, parts[i], parts[i])
		}
	}, func(int) { kernel.Move(wide, g, w) })
	VMOVUPD(parts[0], sums)
	VMOVUPD(parts[1], sums.Offset(wide))
	kernel.End()
}

// clipped returns clip·(scale·g + l2·w).
func clipped(g Mem, w reg.Register, terms Mem) reg.VecVirtual {
	x, y := load(g), YMM()
	VMULPS(terms.Offset(termScale), x, x)
	VMULPS(terms.Offset(termL2), w, y)
	VADDPS(y, x, x)
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

// An average is the operand of an update that follows the weights. An update without it has
// no pointers.
type average []Mem

// averageOf returns the operand, and the part of the kernel's name and parameters for it.
func averageOf(with bool) (name, parameter string, get func() average) {
	if !with {
		return "", "", func() average { return nil }
	}
	return "Average", ", a", func() average { return average{kernel.Base("a")} }
}

// follow sets a to a - share·(a-w).
func (a average) follow(w reg.Register, terms Mem, at int) {
	for _, a := range a {
		x, d := load(a.Offset(at)), YMM()
		VSUBPS(w, x, d)
		VMULPS(terms.Offset(termShare), d, d)
		VSUBPS(d, x, x)
		VMOVUPS(x, a.Offset(at))
	}
}

// fetchLine fetches what the operands of an update hold ahead of displacement at, once per
// cache line. The processor alone follows too few of the streams, and none into the next page.
func fetchLine(at int, operands ...Mem) {
	if at%wide != 0 {
		return
	}
	for _, m := range operands {
		PREFETCHT0(m.Offset(at + ahead))
	}
}

func adam(averages bool) {
	suffix, parameter, operand := averageOf(averages)
	name := "adam" + suffix + "Blocks"
	kernel.Begin(name, "(w, g, m, v"+parameter+" []float32, terms *[11][8]float32)", name+" is adamLoop for whole blocks.")
	w, g, m, v, a, terms := kernel.Base("w"), kernel.Base("g"), kernel.Base("m"), kernel.Base("v"), operand(), kernel.Pointer("terms")
	magnitude, tiny := YMM(), YMM()
	VPCMPEQD(tiny, tiny, tiny)
	VPSRLD(U8(1), tiny, magnitude) // all bits but the sign
	VPSRLD(U8(31), tiny, tiny)
	VPSLLD(U8(23), tiny, tiny) // the smallest normal number
	all := append(a, w, g, m, v)
	each("w", func(at int) {
		fetchLine(at, all...)
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
		a.follow(wi, terms, at)
	}, all...)
}

func sgd(averages bool) {
	suffix, parameter, operand := averageOf(averages)
	name := "sgd" + suffix + "Blocks"
	kernel.Begin(name, "(w, g"+parameter+" []float32, terms *[11][8]float32)", name+" is sgdLoop for whole blocks.")
	w, g, a, terms := kernel.Base("w"), kernel.Base("g"), operand(), kernel.Pointer("terms")
	all := append(a, w, g)
	each("w", func(at int) {
		fetchLine(at, all...)
		wi := load(w.Offset(at))
		gi := clipped(g.Offset(at), wi, terms)
		VMULPS(terms.Offset(termRate), gi, gi)
		subtract(wi, gi, terms, w.Offset(at))
		a.follow(wi, terms, at)
	}, all...)
}
