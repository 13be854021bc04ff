package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The kernels here work on rows of a multiple of 16 elements, with AVX-512. A register
// then has the 16 partial sums of nn/cpu's dot.

// times emits a loop that runs body with the displacement, in bytes, of each register of a
// row. length is the size of a row in bytes.
func times(name string, length reg.Register, body func(at reg.Register)) {
	at := GP64()
	XORQ(at, at)
	Label(name)
	body(at)
	ADDQ(U32(wide), at)
	CMPQ(at, length)
	JL(LabelRef(name))
}

// at returns memory displaced by a register.
func at(m Mem, displacement reg.Register) Mem { return m.Idx(displacement, 1) }

// halve emits op of the two halves of a register, as often as it takes to reduce 16
// elements to one, which ends up in every lane.
func halve(x reg.VecVirtual, op func(ops ...Op)) {
	high := ZMM()
	VEXTRACTF64X4(U8(1), x, high.AsY())
	op(high.AsY(), x.AsY(), x.AsY())
	VEXTRACTF128(U8(1), x.AsY(), high.AsX())
	op(high.AsX(), x.AsX(), x.AsX())
	VPERMILPS(U8(0x0e), x.AsX(), high.AsX())
	op(high.AsX(), x.AsX(), x.AsX())
	VPERMILPS(U8(0x01), x.AsX(), high.AsX())
	op(high.AsX(), x.AsX(), x.AsX())
	VBROADCASTSS(x.AsX(), x)
}

// zeroWide returns a register of zeros.
func zeroWide() reg.VecVirtual {
	x := ZMM()
	VPXORD(x, x, x)
	return x
}

// parameterWide returns a register with a float32 parameter in every lane.
func parameterWide(name string) reg.VecVirtual {
	x := ZMM()
	VBROADCASTSS(Load(Param(name), XMM()), x)
	return x
}

// size returns an integer parameter that counts elements, in bytes.
func size(name string) reg.Register {
	n := Load(Param(name), GP64())
	SHLQ(U8(2), n)
	return n
}

// eachRow emits a loop over rows, whose number is a parameter.
func eachRow(body, advance func()) {
	rows := Load(Param("rows"), GP64())
	Label("row")
	TESTQ(rows, rows)
	JLE(LabelRef("done"))
	body()
	advance()
	DECQ(rows)
	JMP(LabelRef("row"))
	Label("done")
	kernel.End()
}

// weights emits the softmax of scores. The elements of a row from seen on become 0; step is
// added to seen after each row.
func weights() {
	kernel.Begin("weightsWide", "(s *float32, rows, pitch, keys, seen, step int, scale float32, constants *[28][8]float32)",
		"weightsWide is softmaxWeights of rows of scores that are pitch apart, with AVX-512. keys is a multiple of 16.")
	s, c := kernel.Pointer("s"), kernel.Pointer("constants")
	pitch, length := size("pitch"), size("keys")
	seen, step := Load(Param("seen"), GP64()), Load(Param("step"), GP64())
	scale, count, index, least := parameterWide("scale"), ZMM(), ZMM(), ZMM()
	first := GLOBL("indices", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	lanesOf, more := ZMM(), ZMM()
	VMOVDQU32(first, lanesOf)
	sixteen := GP32()
	MOVL(U32(16), sixteen)
	VPBROADCASTD(sixteen, more)
	VPXORD(least, least, least)
	VSUBPS_BCST(c.Offset(infinity), least, least)
	below := func() reg.Register {
		mask := K()
		VPCMPD(U8(1), count, index, mask) // index < count
		VPADDD(more, index, index)
		return mask
	}
	eachRow(func() {
		VPBROADCASTD(seen.(reg.GP).As32(), count)
		top, sum := ZMM(), zeroWide()
		VMOVAPS(least, top)
		VMOVDQA32(lanesOf, index)
		times("scores", length, func(d reg.Register) {
			x := ZMM()
			VMOVAPS(least, x)
			VMULPS(at(s, d), scale, below(), x)
			VMAXPS(x, top, top)
			VMOVUPS(x, at(s, d))
		})
		halve(top, VMAXPS)
		times("exponentials", length, func(d reg.Register) {
			x := loadWide(at(s, d))
			VSUBPS(top, x, x)
			x = expWide(c, x)
			VADDPS(x, sum, sum)
			VMOVUPS(x, at(s, d))
		})
		halve(sum, VADDPS)
		VMOVDQA32(lanesOf, index)
		share := constantWide(c.Offset(one))
		VDIVPS(sum, share, share)
		times("shares", length, func(d reg.Register) {
			x := ZMM()
			VMULPS_Z(at(s, d), share, below(), x)
			VMOVUPS(x, at(s, d))
		})
	}, func() {
		ADDQ(pitch, s.Base)
		ADDQ(step, seen)
	})
}

// weightsGrad emits p = (w·(p - Σ w·p))·scale.
func weightsGrad() {
	kernel.Begin("weightsGradWide", "(p, w *float32, rows, pitch, keys int, scale float32)",
		"weightsGradWide is scoresGrad of rows that are pitch apart, with AVX-512. keys is a multiple of 16.")
	p, w := kernel.Pointer("p"), kernel.Pointer("w")
	pitch, length, scale := size("pitch"), size("keys"), parameterWide("scale")
	eachRow(func() {
		sum := zeroWide()
		times("products", length, func(d reg.Register) {
			x := loadWide(at(w, d))
			VMULPS(at(p, d), x, x)
			VADDPS(x, sum, sum)
		})
		halve(sum, VADDPS)
		times("scores", length, func(d reg.Register) {
			x := loadWide(at(p, d))
			VSUBPS(sum, x, x)
			VMULPS(at(w, d), x, x)
			VMULPS(scale, x, x)
			VMOVUPS(x, at(p, d))
		})
	}, func() {
		ADDQ(pitch, p.Base)
		ADDQ(pitch, w.Base)
	})
}

// norm emits LayerNorm of rows.
func norm() {
	kernel.Begin("normWide", "(y, moments, x, gain, b *float32, rows, width int, count, eps float32)",
		"normWide is normRow and scaleShift of rows, with AVX-512. width is a multiple of 16, and count is width.")
	y, moments, x, g, b := kernel.Pointer("y"), kernel.Pointer("moments"), kernel.Pointer("x"), kernel.Pointer("gain"), kernel.Pointer("b")
	length, count, eps := size("width"), parameterWide("count"), parameterWide("eps")
	unit := ones()
	eachRow(func() {
		mean := zeroWide()
		times("sum", length, func(d reg.Register) {
			fetch(at(x, d), at(y, d))
			VADDPS(at(x, d), mean, mean)
		})
		halve(mean, VADDPS)
		VDIVPS(count, mean, mean)
		r := zeroWide()
		times("squares", length, func(d reg.Register) {
			v := loadWide(at(x, d))
			VSUBPS(mean, v, v)
			VMULPS(v, v, v)
			VADDPS(v, r, r)
		})
		halve(r, VADDPS)
		VDIVPS(count, r, r)
		VADDPS(eps, r, r)
		VSQRTPS(r, r)
		VDIVPS(r, unit, r)
		times("results", length, func(d reg.Register) {
			v := loadWide(at(x, d))
			VSUBPS(mean, v, v)
			VMULPS(r, v, v)
			VMULPS(at(g, d), v, v)
			VADDPS(at(b, d), v, v)
			VMOVUPS(v, at(y, d))
		})
		VMOVSS(mean.AsX(), moments)
		VMOVSS(r.AsX(), moments.Offset(4))
	}, func() {
		ADDQ(length, y.Base)
		ADDQ(length, x.Base)
		ADDQ(U8(8), moments.Base)
	})
}

// ones returns a register of ones.
func ones() reg.VecVirtual {
	bits, x := GP32(), ZMM()
	MOVL(U32(0x3f800000), bits)
	VPBROADCASTD(bits, x)
	return x
}

// normGrad emits the gradient of LayerNorm of rows.
func normGrad() {
	kernel.Begin("normGradWide", "(dx, dg, db, dy, x, moments, gain *float32, rows, width int, count float32)",
		"normGradWide is normGrads.row of rows, with AVX-512. width is a multiple of 16, and count is width.")
	dx, dg, db, dy := kernel.Pointer("dx"), kernel.Pointer("dg"), kernel.Pointer("db"), kernel.Pointer("dy")
	x, moments, g := kernel.Pointer("x"), kernel.Pointer("moments"), kernel.Pointer("gain")
	length, count := size("width"), parameterWide("count")
	eachRow(func() {
		mean, r := constantWide(moments), constantWide(moments.Offset(4))
		s, t := zeroWide(), zeroWide()
		normed := func(d reg.Register) reg.VecVirtual {
			z := loadWide(at(x, d))
			VSUBPS(mean, z, z)
			VMULPS(r, z, z)
			return z
		}
		times("sums", length, func(d reg.Register) {
			fetch(at(x, d), at(dy, d))
			z, v, part := normed(d), loadWide(at(dy, d)), ZMM()
			VMULPS(z, v, part)
			VADDPS(at(dg, d), part, part)
			VMOVUPS(part, at(dg, d))
			VADDPS(at(db, d), v, part)
			VMOVUPS(part, at(db, d))
			VMULPS(at(g, d), v, v)
			VADDPS(v, s, s)
			VMULPS(z, v, v)
			VADDPS(v, t, t)
		})
		halve(s, VADDPS)
		halve(t, VADDPS)
		VDIVPS(count, s, s)
		VDIVPS(count, t, t)
		times("results", length, func(d reg.Register) {
			z, v := normed(d), loadWide(at(dy, d))
			VMULPS(at(g, d), v, v)
			VSUBPS(s, v, v)
			VMULPS(t, z, z)
			VSUBPS(z, v, v)
			VMULPS(r, v, v)
			VMOVUPS(v, at(dx, d))
		})
	}, func() {
		ADDQ(length, dx.Base)
		ADDQ(length, dy.Base)
		ADDQ(length, x.Base)
		ADDQ(U8(8), moments.Base)
	})
}

// sum emits y = x + z.
func sum() {
	kernel.Begin("sumBlocks", "(y, x, z []float32)", "sumBlocks is sumLoop for whole blocks.")
	y, x, z := kernel.Base("y"), kernel.Base("x"), kernel.Base("z")
	each("y", func(at int) {
		v := load(x.Offset(at))
		VADDPS(z.Offset(at), v, v)
		VMOVUPS(v, y.Offset(at))
	}, y, x, z)
}
