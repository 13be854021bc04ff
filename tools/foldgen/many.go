package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

const (
	header = 24 // bytes of a slice header in a slice of slices; the pointer comes first
	tile   = 8  // accumulators that pass over all operands together
)

// across is a kernel over any number of operands, for whole blocks of elements lo to hi.
// first loads the first operand into an accumulator, next adds another operand, and
// store writes the result.
type across struct {
	name, parameters, doc string
	size, lanes           int // bytes of an element, elements in an accumulator
	prepare               func()
	first, next           func(src Mem, acc reg.Register)
	store                 func(acc reg.Register, dst Mem)
}

func (k across) emit() {
	kernel.Begin(k.name, k.parameters, k.name+k.doc)
	dst := Load(Param("dst").Base(), GP64())
	table := Load(Param("operands").Base(), GP64())
	end := Load(Param("operands").Len(), GP64())
	IMUL3Q(U8(header), end, end)
	ADDQ(table, end)
	at, hi := Load(Param("lo"), GP64()), Load(Param("hi"), GP64())
	k.prepare()
	k.tiles("wide", "narrow", tile, dst, table, end, at, hi)
	k.tiles("narrow", "done", 1, dst, table, end, at, hi)
	Label("done")
	kernel.End()
}

// tiles emits the loop over tiles of count accumulators. It writes a tile after reading
// all of its operands, so that dst may be an operand.
func (k across) tiles(name, next string, count int, dst, table, end, at, hi reg.Register) {
	after, entry, src := GP64(), GP64(), GP64()
	acc := make([]reg.Register, count)
	for i := range acc {
		acc[i] = YMM()
	}
	operand := func(base reg.Register, i int) Mem {
		return Mem{Base: base, Index: at, Scale: uint8(k.size), Disp: i * k.lanes * k.size}
	}
	Label(name)
	LEAQ(Mem{Base: at, Disp: count * k.lanes}, after)
	CMPQ(after, hi)
	JG(LabelRef(next))
	MOVQ(table, entry)
	MOVQ(Mem{Base: entry}, src)
	for i, x := range acc {
		k.first(operand(src, i), x)
	}
	Label(name + "Next")
	ADDQ(U32(header), entry)
	CMPQ(entry, end)
	JGE(LabelRef(name + "Store"))
	MOVQ(Mem{Base: entry}, src)
	for i, x := range acc {
		k.next(operand(src, i), x)
	}
	JMP(LabelRef(name + "Next"))
	Label(name + "Store")
	for i, x := range acc {
		k.store(x, operand(dst, i))
	}
	MOVQ(after, at)
	JMP(LabelRef(name))
}

// sumAll32 emits a kernel for (a + b + ...) * by.
func sumAll32() {
	var by reg.Register
	across{
		name: "sumAll32", parameters: "(dst []float32, operands [][]float32, by float32, lo, hi int)",
		doc:  " is SumAll for the whole blocks from lo to hi.",
		size: 4, lanes: 8,
		prepare: func() {
			by = YMM()
			VBROADCASTSS(Load(Param("by"), XMM()), by)
		},
		first: func(src Mem, acc reg.Register) { VMOVUPS(src, acc) },
		next:  func(src Mem, acc reg.Register) { VADDPS(src, acc, acc) },
		store: func(acc reg.Register, dst Mem) {
			VMULPS(by, acc, acc)
			VMOVUPS(acc, dst)
		},
	}.emit()
}

// meanAllInt32 sums in float64, which is exact, and then moves the sum half a unit away
// from zero. That keeps it so far from every multiple of the divisor that the rounding of
// its product with the reciprocal cannot reach one. Truncating the product therefore
// gives the exact result.
func meanAllInt32() {
	var by, half, sign reg.Register
	across{
		name: "meanAllInt32", parameters: "(dst []int32, operands [][]int32, by float64, lo, hi int)",
		doc:  " is MeanAll for the whole blocks from lo to hi; by is 1/len(operands).",
		size: 4, lanes: 4,
		prepare: func() {
			by, half, sign = YMM(), YMM(), YMM()
			VBROADCASTSD(Load(Param("by"), XMM()), by)
			VPCMPEQQ(half, half, half)
			VPSLLQ(U8(63), half, sign)
			VPSLLQ(U8(55), half, half)
			VPSRLQ(U8(2), half, half) // 0x3fe0000000000000: 0.5
		},
		first: func(src Mem, acc reg.Register) { VCVTDQ2PD(src, acc) },
		next: func(src Mem, acc reg.Register) {
			x := YMM()
			VCVTDQ2PD(src, x)
			VADDPD(x, acc, acc)
		},
		store: func(acc reg.Register, dst Mem) {
			away, mean := YMM(), XMM()
			VANDPD(sign, acc, away)
			VORPD(half, away, away)
			VADDPD(away, acc, acc)
			VMULPD(by, acc, acc)
			VCVTTPD2DQY(acc, mean)
			VMOVDQU(mean, dst)
		},
	}.emit()
}

// meanAllUint8 is meanAllInt32 with 32-bit sums and products in float32.
func meanAllUint8() {
	var by, half reg.Register
	across{
		name: "meanAllUint8", parameters: "(dst []uint8, operands [][]uint8, by float32, lo, hi int)",
		doc:  " is MeanAll for the whole blocks from lo to hi; by is 1/len(operands).",
		size: 1, lanes: 8,
		prepare: func() {
			by, half = YMM(), YMM()
			VBROADCASTSS(Load(Param("by"), XMM()), by)
			VPCMPEQD(half, half, half)
			VPSLLD(U8(26), half, half)
			VPSRLD(U8(2), half, half) // 0x3f000000: 0.5
		},
		first: func(src Mem, acc reg.Register) { VPMOVZXBD(src, acc) },
		next: func(src Mem, acc reg.Register) {
			x := YMM()
			VPMOVZXBD(src, x)
			VPADDD(x, acc, acc)
		},
		store: func(acc reg.Register, dst Mem) {
			low, high := XMM(), XMM()
			VCVTDQ2PS(acc, acc)
			VADDPS(half, acc, acc)
			VMULPS(by, acc, acc)
			VCVTTPS2DQ(acc, acc)
			VEXTRACTI128(U8(0), acc, low)
			VEXTRACTI128(U8(1), acc, high)
			VPACKUSDW(high, low, low)
			VPACKUSWB(low, low, low)
			VMOVQ(low, dst)
		},
	}.emit()
}
