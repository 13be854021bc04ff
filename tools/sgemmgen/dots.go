package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The offsets of the fields of nn/cpu/sgemm's dots.
const (
	dotsA = 8 * iota
	dotsB
	dotsC
	dotsRowA
	dotsRowB
	dotsRowC
	dotsWhole
	dotsRest
	dotsTail
	dotsAdd
)

// groups is the number of registers of columns of a dots kernel. With two, the chains of
// one are computed while the other waits. With four, rows whose distance is a large power of
// two displace each other from the L1 cache.
const groups = 2

// dots emits a kernel for a few rows of A, where B is transposed. It transposes four by four
// elements of B in registers and uses them at once.
func dots(s set, rows int) {
	name := fmt.Sprintf("%sDots%d", s.name, rows)
	kernel.Begin(name, "(d *[10]uint64)", fmt.Sprintf("%s computes %d rows and %d columns.", name, rows, groups*s.bytes/4))
	d := kernel.Pointer("d")
	a := Mem{Base: field(d, dotsA)}
	var rowA, thirdA reg.GPVirtual // used by as many rows as need them
	if rows > 1 {
		rowA = field(d, dotsRowA)
	}
	if rows > 3 {
		thirdA = threeOf(rowA)
	}
	rowB := field(d, dotsRowB)
	quarters, third := everyFourth(field(d, dotsB), rowB, 2*groups)
	sums := make([][]reg.VecVirtual, rows)
	for i := range sums {
		for range groups {
			v := s.vector()
			VXORPS(v, v, v)
			sums[i] = append(sums[i], v)
		}
	}
	// multiply emits a step of the inner dimension for the groups from first on, one for each
	// register of B.
	multiply := func(k, first int, right ...reg.VecVirtual) {
		for i := range rows {
			v := s.vector()
			VBROADCASTSS(rowAfter(a, rowA, thirdA, i).Offset(4*k), v)
			for g, r := range right {
				VFMADD231PS(r, v, sums[i][first+g])
			}
		}
	}
	k := field(d, dotsWhole)
	Label("whole")
	CMPQ(k, U8(4))
	JL(LabelRef("rest"))
	var right [groups][4]reg.VecVirtual
	shared := rows <= 2 // there are enough registers to keep B of all groups
	for g := range groups {
		right[g] = fourByFour(s, eightRows(s, quarters[2*g:], rowB, third))
		for k := 0; k < 4 && !shared; k++ {
			multiply(k, g, right[g][k])
		}
	}
	for k := 0; k < 4 && shared; k++ {
		multiply(k, 0, right[0][k], right[1][k])
	}
	for _, p := range append(quarters, a.Base.(reg.GPVirtual)) {
		ADDQ(U8(16), p)
	}
	SUBQ(U8(4), k)
	JMP(LabelRef("whole"))
	Label("rest")
	MOVQ(d.Offset(dotsRest), k)
	TESTQ(k, k)
	JZ(LabelRef("store"))
	tail := Mem{Base: field(d, dotsTail)}
	Label("step")
	multiply(0, 0, load(tail, s.vector()), load(tail.Offset(s.bytes), s.vector()))
	ADDQ(U32(uint32(groups*s.bytes)), tail.Base)
	ADDQ(U8(4), a.Base)
	DECQ(k)
	JNZ(LabelRef("step"))
	Label("store")
	c, rowC := Mem{Base: field(d, dotsC)}, field(d, dotsRowC)
	store := func(add bool) {
		for _, row := range sums {
			for g, sum := range row {
				if add {
					VADDPS(c.Offset(g*s.bytes), sum, sum)
				}
				VMOVUPS(sum, c.Offset(g*s.bytes))
			}
			ADDQ(rowC, c.Base)
		}
		kernel.End()
	}
	CMPQ(d.Offset(dotsAdd), Imm(0))
	JE(LabelRef("set"))
	store(true)
	Label("set")
	store(false)
}

// eightRows loads four elements of each of eight rows. The fifth row begins at quarters[1].
// Rows r and r+4 share a register.
func eightRows(s set, quarters []reg.GPVirtual, rowB, third reg.GPVirtual) [4]reg.VecVirtual {
	var four [4]reg.VecVirtual
	for r := range four {
		four[r] = s.vector()
		at := func(base reg.GPVirtual) Mem { return rowAfter(Mem{Base: base}, rowB, third, r) }
		// VMOVUPS writes half of a register. avo would then think that the other half is still needed.
		VBROADCASTF128(at(quarters[0]), four[r])
		VINSERTF128(U8(1), at(quarters[1]), four[r], four[r])
	}
	return four
}
