package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// integers emits the kernels of Into for the integer types.
func integers() {
	into("sumInt32", "int32", 8, VPADDD)
	into("prodInt32", "int32", 8, VPMULLD)
	into("minInt32", "int32", 8, VPMINSD)
	into("maxInt32", "int32", 8, VPMAXSD)

	into("sumInt64", "int64", 4, VPADDQ)
	into("prodInt64", "int64", 4, prodInt64)
	into("minInt64", "int64", 4, minInt64)
	into("maxInt64", "int64", 4, maxInt64)

	into("sumUint8", "uint8", 32, VPADDB)
	prodUint8()
	into("minUint8", "uint8", 32, VPMINUB)
	into("maxUint8", "uint8", 32, VPMAXUB)
}

// prodInt64 computes the lower 64 bits of a product from 32-bit halves: all of low·low,
// the lower halves of low·high and high·low, and nothing of high·high.
func prodInt64(ops ...Op) {
	x, dst := ops[1], ops[2]
	y, cross, high := YMM(), YMM(), YMM()
	VMOVDQU(ops[0], y)
	VPSHUFD(U8(0xb1), y, cross) // 1 0 3 2: swap halves
	VPMULLD(cross, x, cross)
	VPSRLQ(U8(32), cross, high)
	VPADDD(high, cross, cross)
	VPSLLQ(U8(32), cross, cross)
	VPMULUDQ(y, x, dst)
	VPADDQ(cross, dst, dst)
}

// minInt64 selects y where x is greater.
func minInt64(ops ...Op) {
	x, dst := ops[1], ops[2]
	y, mask := YMM(), YMM()
	VMOVDQU(ops[0], y)
	VPCMPGTQ(y, x, mask) // x > y
	VBLENDVPD(mask, y, x, dst)
}

// maxInt64 selects x where x is greater.
func maxInt64(ops ...Op) {
	x, dst := ops[1], ops[2]
	y, mask := YMM(), YMM()
	VMOVDQU(ops[0], y)
	VPCMPGTQ(y, x, mask) // x > y
	VBLENDVPD(mask, x, y, dst)
}

// prodUint8 multiplies in 16-bit lanes: the even bytes in place, the odd bytes shifted
// down. The upper half of each product is dropped.
func prodUint8() {
	var low reg.Register
	into("prodUint8", "uint8", 32, func(ops ...Op) {
		x, dst := ops[1], ops[2]
		y, odd, highs := YMM(), YMM(), YMM()
		VMOVDQU(ops[0], y)
		VPSRLW(U8(8), x, odd)
		VPANDN(y, low, highs)
		VPMULLW(highs, odd, odd) // (y << 8)·x, whose lower byte is 0
		VPMULLW(y, x, dst)
		VPAND(low, dst, dst)
		VPOR(odd, dst, dst)
	}, func() {
		low = YMM()
		VPCMPEQW(low, low, low)
		VPSRLW(U8(8), low, low) // 0x00ff
	})
}
