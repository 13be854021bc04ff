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
	a, rowA := Mem{Base: field(d, dotsA)}, reg.GPVirtual(nil)
	if rows > 1 {
		rowA = field(d, dotsRowA)
	}
	left := rowsFrom(a, rowA, rows)
	rowB := field(d, dotsRowB)
	quarters := []reg.GPVirtual{field(d, dotsB)} // pointers to every fourth row of B
	for range 2*groups - 1 {
		next := GP64()
		LEAQ(Mem{Base: quarters[len(quarters)-1], Index: rowB, Scale: 4}, next)
		quarters = append(quarters, next)
	}
	third := GP64()
	LEAQ(Mem{Base: rowB, Index: rowB, Scale: 2}, third)
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
			VBROADCASTSS(left[i].Offset(4*k), v)
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
	CMPQ(d.Offset(dotsAdd), Imm(0))
	JE(LabelRef("set"))
	for _, row := range sums {
		for g, sum := range row {
			VADDPS(c.Offset(g*s.bytes), sum, sum)
			VMOVUPS(sum, c.Offset(g*s.bytes))
		}
		ADDQ(rowC, c.Base)
	}
	kernel.End()
	Label("set")
	for _, row := range sums {
		for g, sum := range row {
			VMOVUPS(sum, c.Offset(g*s.bytes))
		}
		ADDQ(rowC, c.Base)
	}
	kernel.End()
}

// eightRows loads four elements of each of eight rows. The fifth row begins at quarters[1].
// Rows r and r+4 share a register.
func eightRows(s set, quarters []reg.GPVirtual, rowB, third reg.GPVirtual) [4]reg.VecVirtual {
	var four [4]reg.VecVirtual
	for r := range four {
		four[r] = s.vector()
		at := func(base reg.GPVirtual) Mem {
			m := Mem{Base: base}
			switch r {
			case 1, 2:
				m.Index, m.Scale = rowB, uint8(r)
			case 3:
				m.Index, m.Scale = third, 1
			}
			return m
		}
		// VMOVUPS writes half of a register. avo would then think that the other half is still needed.
		VBROADCASTF128(at(quarters[0]), four[r])
		VINSERTF128(U8(1), at(quarters[1]), four[r], four[r])
	}
	return four
}

// rowsFrom returns where up to four rows begin, whose first one is at a.
func rowsFrom(a Mem, rowA reg.GPVirtual, rows int) []Mem {
	var all []Mem
	for i := range rows {
		at := a
		switch i {
		case 1, 2:
			at.Index, at.Scale = rowA, uint8(i)
		case 3:
			third := GP64()
			LEAQ(Mem{Base: rowA, Index: rowA, Scale: 2}, third)
			at.Index, at.Scale = third, 1
		}
		all = append(all, at)
	}
	return all
}
