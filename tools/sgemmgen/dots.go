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

// dots emits a kernel for a few rows of A and some registers of columns, where B is transposed.
func dots(s set, rows, vectors int) {
	name := fmt.Sprintf("%sDots%dx%d", s.name, rows, vectors)
	kernel.Begin(name, "(d *[10]uint64)", fmt.Sprintf("%s computes %d rows and %d columns.", name, rows, vectors*s.bytes/4))
	d, sums := chains(s, rows, vectors)
	c, rowC := Mem{Base: field(d, dotsC)}, field(d, dotsRowC)
	ifAdd(d, func(add bool) {
		for _, row := range sums {
			for g, sum := range row {
				if add {
					VADDPS(c.Offset(g*s.bytes), sum, sum)
				}
				VMOVUPS(sum, c.Offset(g*s.bytes))
			}
			ADDQ(rowC, c.Base)
		}
	})
}

// narrow emits a kernel for a few columns of C, where B is transposed, and as many rows as some
// registers have elements. It computes the transpose of that part of C as a dots kernel does,
// with A and B exchanged, and transposes it four by four when it stores it.
func narrow(s set, columns, vectors int) {
	name := fmt.Sprintf("%sNarrow%dx%d", s.name, columns, vectors)
	kernel.Begin(name, "(d *[10]uint64)", fmt.Sprintf("%s computes %d columns and %d rows. Its A and B are exchanged.", name, columns, vectors*s.bytes/4))
	d, sums := chains(s, columns, vectors)
	rowsC := everyFourth(field(d, dotsC), field(d, dotsRowC), vectors*s.bytes/16)
	ifAdd(d, func(add bool) {
		for first := 0; first < columns; first += 4 {
			for g := range vectors {
				var four [4]reg.VecVirtual
				for i := range four {
					four[i] = sums[min(first+i, columns-1)][g]
				}
				for r, v := range fourByFour(s, four) {
					for lane := range s.bytes / 16 {
						at := rowsC.at(g*s.bytes/4 + 4*lane + r).Offset(4 * first)
						storePart(part(v, lane), at, min(4, columns-first), add)
					}
				}
			}
		}
	})
}

// part returns a lane of 16 bytes of v.
func part(v reg.VecVirtual, lane int) reg.VecVirtual {
	if lane == 0 {
		return v.AsX().(reg.VecVirtual)
	}
	x := XMM()
	if v.Size() == 64 {
		VEXTRACTF32X4(U8(lane), v, x)
	} else {
		VEXTRACTF128(U8(lane), v, x)
	}
	return x
}

// storePart stores the first count elements of x, or adds them to those in memory.
func storePart(x reg.VecVirtual, at Mem, count int, add bool) {
	if add {
		old := XMM()
		switch count {
		case 1:
			VMOVSS(at, old)
		case 2:
			VMOVSD(at, old)
		case 3:
			VMOVSD(at, old)
			VINSERTPS(U8(0x20), at.Offset(8), old, old)
		default:
			VMOVUPS(at, old)
		}
		VADDPS(x, old, old)
		x = old
	}
	switch count {
	case 1:
		VMOVSS(x, at)
	case 2:
		VMOVSD(x, at)
	case 3:
		VMOVSD(x, at)
		VEXTRACTPS(U8(2), x, at.Offset(8))
	default:
		VMOVUPS(x, at)
	}
}

// ifAdd emits the end of a kernel twice: for a C that the sums are added to, and one that they
// replace.
func ifAdd(d Mem, end func(add bool)) {
	CMPQ(d.Offset(dotsAdd), Imm(0))
	JE(LabelRef("set"))
	end(true)
	kernel.End()
	Label("set")
	end(false)
	kernel.End()
}

// chains emits the sums over the inner dimension, for rows of A and registers of columns of
// B. It transposes four by four elements of B in registers and uses them at once. It returns
// a new pointer to the fields.
func chains(s set, rows, vectors int) (d Mem, sums [][]reg.VecVirtual) {
	d = kernel.Pointer("d")
	left := &rowSet{pointers: []reg.GPVirtual{field(d, dotsA)}, each: 4} // no more registers than these rows need
	if rows > 1 {
		left.step = field(d, dotsRowA)
	}
	if rows > 3 {
		left = everyFourth(left.pointers[0], left.step, (rows+3)/4)
	}
	rowB := field(d, dotsRowB)
	perVector := s.bytes / 4
	var transposed *rowSet
	if rows > 8 && vectors*perVector > 16 { // too many pointers for the registers
		transposed = everyEighth(field(d, dotsB), rowB, vectors*perVector/8)
	} else {
		transposed = everyFourth(field(d, dotsB), rowB, vectors*perVector/4)
	}
	sums = make([][]reg.VecVirtual, rows)
	for i := range sums {
		for range vectors {
			v := s.vector()
			s.zero(v)
			sums[i] = append(sums[i], v)
		}
	}
	leftAt := func(i, k int) Mem { return left.at(i).Offset(4 * k) }
	// spread loads an element of A into all of a register.
	spread := func(i, k int) reg.VecVirtual {
		v := s.vector()
		VBROADCASTSS(leftAt(i, k), v)
		return v
	}
	// multiply emits a step of the inner dimension. right holds the elements of B, one register
	// for each of the sums from first on.
	multiply := func(k, first int, right ...reg.VecVirtual) {
		for i := range rows {
			if s.masks && len(right) == 1 {
				VFMADD231PS_BCST(leftAt(i, k), right[0], sums[i][first])
				continue
			}
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
		return fourByFour(s, fourOfEach(s, transposed, g*perVector))
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
	for _, p := range append(transposed.pointers, left.pointers...) {
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
	for _, p := range left.pointers {
		ADDQ(U8(4), p)
	}
	DECQ(k)
	JNZ(LabelRef("step"))
	Label("store")
	return d, sums
}
