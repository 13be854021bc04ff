package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// Conversions work in blocks of 16 elements: one register of the 16-bit
// format, two of float32.
const (
	block     = 16
	halfBlock = kernel.Vector / 2 // bytes of 8 elements of a 16-bit format
)

func widenHalf() {
	widen("widenHalf", func(src Mem, x reg.Register) { VCVTPH2PS(src, x) })
}

func widenBrain() {
	widen("widenBrain", func(src Mem, x reg.Register) {
		VPMOVZXWD(src, x)
		VPSLLD(U8(16), x, x)
	})
}

// widen emits a conversion to float32; load converts 8 elements.
func widen(name string, load func(src Mem, x reg.Register)) {
	kernel.Begin(name, "(dst []float32, src []uint16)", name+" is Widen for whole blocks.")
	dst, src := kernel.Base("dst"), kernel.Base("src")
	kernel.Loops(kernel.Length("dst"), block, func(k int) {
		for part := 2 * k; part < 2*k+2; part++ {
			x := YMM()
			load(src.Offset(part*halfBlock), x)
			VMOVUPS(x, dst.Offset(part*kernel.Vector))
		}
	}, func(blocks int) {
		ADDQ(U32(2*blocks*kernel.Vector), dst.Base)
		ADDQ(U32(2*blocks*halfBlock), src.Base)
	})
	kernel.End()
}

func roundHalf() {
	round("roundHalf", func(src, dst Mem) {
		for part := range 2 {
			x := YMM()
			VMOVUPS(src.Offset(part*kernel.Vector), x)
			VCVTPS2PH(U8(0), x, dst.Offset(part*halfBlock)) // 0: to nearest even
		}
	}, func() {})
}

// roundBrain adds a bias that carries into the upper 16 bits if the float rounds up. A
// NaN is truncated and made quiet instead.
func roundBrain() {
	var bias, one, quiet reg.Register
	round("roundBrain", func(src, dst Mem) {
		var parts [2]reg.Register
		for part := range parts {
			x, high, odd, mask := YMM(), YMM(), YMM(), YMM()
			VMOVUPS(src.Offset(part*kernel.Vector), x)
			VPSRLD(U8(16), x, high)
			VPAND(one, high, odd)
			VCMPPS(U8(3), x, x, mask) // 3: unordered
			VPADDD(bias, x, x)
			VPADDD(odd, x, x)
			VPSRLD(U8(16), x, x)
			VPOR(quiet, high, high)
			VBLENDVPS(mask, high, x, x)
			parts[part] = x
		}
		VPACKUSDW(parts[1], parts[0], parts[0])
		VPERMQ(U8(0xd8), parts[0], parts[0]) // quarters 0 2 1 3, because the pack works within 128-bit lanes
		VMOVDQU(parts[0], dst)
	}, func() {
		bias, one, quiet = YMM(), YMM(), YMM()
		VPCMPEQD(bias, bias, bias)
		VPSRLD(U8(31), bias, one)
		VPSLLD(U8(6), one, quiet)
		VPSRLD(U8(17), bias, bias) // 0x7fff
	})
}

// round emits a conversion from float32; step converts a block.
func round(name string, step func(src, dst Mem), prepare func()) {
	kernel.Begin(name, "(dst []uint16, src []float32)", name+" is Round for whole blocks.")
	dst, src := kernel.Base("dst"), kernel.Base("src")
	prepare()
	kernel.Loops(kernel.Length("dst"), block, func(k int) {
		step(src.Offset(2*k*kernel.Vector), dst.Offset(2*k*halfBlock))
	}, func(blocks int) {
		ADDQ(U32(2*blocks*kernel.Vector), src.Base)
		ADDQ(U32(2*blocks*halfBlock), dst.Base)
	})
	kernel.End()
}
