package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// pieces are those of 16 outputs of Maxout, which lie next to each other for each output.
type pieces struct {
	count, bytes reg.Register // of an output
	index        reg.VecVirtual
	one          reg.VecVirtual
}

// newPieces takes their number from a parameter. lane has the number of each lane.
func newPieces(lane Mem) pieces {
	p := pieces{count: Load(Param("pieces"), GP64()), bytes: GP64(), index: ZMM(), one: ZMM()}
	VPBROADCASTD(p.count.(reg.GP).As32(), p.index)
	VPMULLD(lane, p.index, p.index)
	unit := GP32()
	MOVL(U32(1), unit)
	VPBROADCASTD(unit, p.one)
	MOVQ(p.count, p.bytes)
	SHLQ(U8(6), p.bytes) // 16 outputs of float32
	return p
}

// each emits a loop over the pieces of an output: body gets the memory of one piece of all
// outputs, and its number in every lane.
func (p pieces) each(name string, x Mem, body func(piece Mem, number reg.VecVirtual)) {
	left, piece, number := GP64(), Mem{Base: GP64(), Index: p.index, Scale: 4}, zeroWide()
	MOVQ(p.count, left)
	MOVQ(x.Base, piece.Base)
	Label(name)
	body(piece, number)
	VPADDD(p.one, number, number)
	ADDQ(U32(4), piece.Base)
	DECQ(left)
	JNZ(LabelRef(name))
}

// largest emits the largest piece of each output, and the number of the first one.
func (p pieces) largest(x Mem) (best, which reg.VecVirtual) {
	best, which = ZMM(), zeroWide()
	all := K()
	KXNORW(all, all, all)
	VGATHERDPS(Mem{Base: x.Base, Index: p.index, Scale: 4}, all, best)
	p.each("piece", x, func(piece Mem, number reg.VecVirtual) {
		next, all, more := ZMM(), K(), K()
		KXNORW(all, all, all)
		VGATHERDPS(piece, all, next)
		VCMPPS(U8(greaterThan), best, next, more)
		VMOVAPS(next, more, best)
		VMOVDQA32(number, more, which)
	})
	return best, which
}

// maxouts emits the kernels of Maxout.
func maxouts() {
	lane := GLOBL("lanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	maxout(lane)
	maxoutGrad(lane)
}

// maxout emits the largest piece of each output.
func maxout(lane Mem) {
	kernel.Begin("maxoutWide", "(y []float32, x *float32, pieces int)", "maxoutWide is maxoutLoop for whole blocks of 16 outputs, with AVX-512.")
	y, x, p := kernel.Base("y"), kernel.Pointer("x"), newPieces(lane)
	kernel.Loop(kernel.Length("y"), 2*lanes, func(int) {
		best, _ := p.largest(x)
		VMOVUPS(best, y)
	}, func(int) {
		kernel.Move(wide, y)
		ADDQ(p.bytes, x.Base)
	})
	kernel.End()
}

// maxoutGrad emits dy at the first largest piece of each output, and 0 at the others. dx may
// be x.
func maxoutGrad(lane Mem) {
	kernel.Begin("maxoutGradWide", "(dx *float32, dy []float32, x *float32, pieces int)", "maxoutGradWide is maxoutGradLoop for whole blocks of 16 outputs, with AVX-512.")
	dx, dy, x, p := kernel.Pointer("dx"), kernel.Base("dy"), kernel.Pointer("x"), newPieces(lane)
	kernel.Loop(kernel.Length("dy"), 2*lanes, func(int) {
		_, which := p.largest(x)
		d := loadWide(dy)
		p.each("scatter", dx, func(piece Mem, number reg.VecVirtual) {
			one, all, here := ZMM(), K(), K()
			VPCMPEQD(number, which, here)
			VMOVAPS_Z(d, here, one)
			KXNORW(all, all, all)
			VSCATTERDPS(one, all, piece)
		})
	}, func(int) {
		kernel.Move(wide, dy)
		ADDQ(p.bytes, x.Base)
		ADDQ(p.bytes, dx.Base)
	})
	kernel.End()
}
