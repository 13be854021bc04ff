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

// dots emits a kernel for a few rows of A and some registers of columns, where B is
// transposed. It transposes four by four elements of B in registers and uses them at once.
func dots(s set, rows, vectors int) {
	name := fmt.Sprintf("%sDots%dx%d", s.name, rows, vectors)
	kernel.Begin(name, "(d *[10]uint64)", fmt.Sprintf("%s computes %d rows and %d columns.", name, rows, vectors*s.bytes/4))
	d := kernel.Pointer("d")
	left := []reg.GPVirtual{field(d, dotsA)} // every fourth row of A
	var rowA, thirdA reg.GPVirtual           // used by as many rows as need them
	if rows > 1 {
		rowA = field(d, dotsRowA)
	}
	if rows > 3 {
		left, thirdA = everyFourth(left[0], rowA, (rows+3)/4)
	}
	rowB := field(d, dotsRowB)
	fourths, third := everyFourth(field(d, dotsB), rowB, vectors*s.bytes/16)
	sums := make([][]reg.VecVirtual, rows)
	for i := range sums {
		for range vectors {
			v := s.vector()
			VXORPS(v, v, v)
			sums[i] = append(sums[i], v)
		}
	}
	// spread loads an element of A into all of a register.
	spread := func(i, k int) reg.VecVirtual {
		v := s.vector()
		VBROADCASTSS(rowAfter(Mem{Base: left[i/4]}, rowA, thirdA, i%4).Offset(4*k), v)
		return v
	}
	// multiply emits a step of the inner dimension. right holds the elements of B, one register
	// for each of the sums from first on.
	multiply := func(k, first int, right ...reg.VecVirtual) {
		for i := range rows {
			v := spread(i, k)
			for g, r := range right {
				VFMADD231PS(r, v, sums[i][first+g])
			}
		}
	}
	k := field(d, dotsWhole)
	Label("whole")
	CMPQ(k, U8(4))
	JL(LabelRef("rest"))
	columns := func(g int) [4]reg.VecVirtual {
		perVector := s.bytes / 16
		return fourByFour(s, fourOfEach(s, fourths[g*perVector:][:perVector], rowB, third))
	}
	const transposing = 8 // registers that fourByFour needs at a time
	inUse := rows * vectors
	switch {
	case inUse+4*rows+transposing <= s.registers: // for four steps of A
		var steps [4][]reg.VecVirtual
		for k := range steps {
			for i := range rows {
				steps[k] = append(steps[k], spread(i, k))
			}
		}
		for g := range vectors {
			for k, right := range columns(g) {
				for i, v := range steps[k] {
					VFMADD231PS(right, v, sums[i][g])
				}
			}
		}
	case inUse+4*(vectors-1)+transposing <= s.registers: // for four steps of B
		steps := make([][]reg.VecVirtual, 4)
		for g := range vectors {
			for k, right := range columns(g) {
				steps[k] = append(steps[k], right)
			}
		}
		for k, right := range steps {
			multiply(k, 0, right...)
		}
	default:
		for g := range vectors {
			for k, right := range columns(g) {
				multiply(k, g, right)
			}
		}
	}
	for _, p := range append(fourths, left...) {
		ADDQ(U8(16), p)
	}
	SUBQ(U8(4), k)
	JMP(LabelRef("whole"))
	Label("rest")
	d = kernel.Pointer("d") // again, so that the loop has its register
	MOVQ(d.Offset(dotsRest), k)
	TESTQ(k, k)
	JZ(LabelRef("store"))
	tail := Mem{Base: field(d, dotsTail)}
	Label("step")
	var right []reg.VecVirtual
	for g := range vectors {
		right = append(right, load(tail.Offset(g*s.bytes), s.vector()))
	}
	multiply(0, 0, right...)
	ADDQ(U32(uint32(vectors*s.bytes)), tail.Base)
	for _, p := range left {
		ADDQ(U8(4), p)
	}
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
