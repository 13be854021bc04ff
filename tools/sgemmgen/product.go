package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The offsets of the fields of nn/cpu/sgemm's tiles.
const (
	tileA = 8 * iota
	tileB
	tileC
	tileRowA
	tileStepA
	tileNextA
	tileStepB
	tileRowC
	tileK
	tileCount
	tileAdd
	tileMask
	tileLanes
	tileFetch = tileLanes + 32
)

// product emits a kernel for tiles of C with a number of rows, each of some registers.
func product(s set, rows, vectors int) {
	name := fmt.Sprintf("%sRows%dx%d", s.name, rows, vectors)
	kernel.Begin(name, "(t *[17]uint64)", fmt.Sprintf("%s computes tiles of %d rows and %d columns.", name, rows, vectors*s.bytes/4))
	t := kernel.Pointer("t")
	a, c := field(t, tileA), field(t, tileC)
	rowA, stepA := field(t, tileRowA), field(t, tileStepA)
	Label("tile")
	sums := tile(s, t, c, rows, vectors)
	steps(s, t, sums, rowPointers(a, rowA, rows), rowA, stepA)
	finish(s, t, sums, c)
	ADDQ(t.Offset(tileNextA), a)
	DECQ(t.Offset(tileCount))
	JNZ(LabelRef("tile"))
	kernel.End()
}

// packed emits a kernel like product's for packed A and B. Steps lie next to each other there,
// so that most of them need no instructions but loads and multiplications.
func packed(s set, rows, vectors int) {
	name := fmt.Sprintf("%sPacked%dx%d", s.name, rows, vectors)
	kernel.Begin(name, "(t *[17]uint64)", fmt.Sprintf("%s computes tiles of %d rows and %d columns from packed A and B.", name, rows, vectors*s.bytes/4))
	t := kernel.Pointer("t")
	a, c := Mem{Base: field(t, tileA)}, field(t, tileC)
	Label("tile")
	sums := tile(s, t, c, rows, vectors)
	b, k := Mem{Base: field(t, tileB)}, field(t, tileK)
	stepA, stepB := 4*rows, vectors*s.bytes
	kernel.Loops(k, 1, func(step int) {
		var right []reg.VecVirtual
		for v := range vectors {
			right = append(right, load(b.Offset(step*stepB+v*s.bytes), s.vector()))
		}
		for i, row := range sums {
			left := s.vector()
			VBROADCASTSS(a.Offset(step*stepA+4*i), left)
			for v, sum := range row {
				VFMADD231PS(right[v], left, sum)
			}
		}
	}, func(steps int) {
		kernel.Move(steps*stepA, a)
		kernel.Move(steps*stepB, b)
	})
	finish(s, t, sums, c)
	DECQ(t.Offset(tileCount))
	JNZ(LabelRef("tile"))
	kernel.End()
}

// tile returns the registers of a tile of C, which it clears, and fetches C if asked to.
func tile(s set, t Mem, c reg.GPVirtual, rows, vectors int) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, rows)
	for i := range sums {
		for range vectors {
			v := s.vector()
			s.zero(v)
			sums[i] = append(sums[i], v)
		}
	}
	CMPQ(t.Offset(tileFetch), Imm(0))
	JE(LabelRef("fetched"))
	prefetch(t, c, rows, vectors*s.bytes)
	Label("fetched")
	return sums
}

// prefetch fetches the tile of C, which is needed only after the loop. In large matrices each
// row of it is in another page.
func prefetch(t Mem, c reg.GPVirtual, rows, width int) {
	at, rowC := Mem{Base: GP64()}, field(t, tileRowC)
	MOVQ(c, at.Base)
	for range rows {
		for line := 0; line < width; line += 64 {
			PREFETCHT1(at.Offset(line))
		}
		PREFETCHT1(at.Offset(width - 4))
		ADDQ(rowC, at.Base)
	}
}

// rowPointers returns pointers to every third row. The addressing modes reach the two rows
// after it.
func rowPointers(a, rowA reg.GPVirtual, rows int) []reg.GPVirtual {
	p := []reg.GPVirtual{GP64()}
	MOVQ(a, p[0])
	for i := 3; i < rows; i += 3 {
		next := GP64()
		LEAQ(Mem{Base: p[len(p)-1], Index: rowA, Scale: 2}, next)
		ADDQ(rowA, next)
		p = append(p, next)
	}
	return p
}

// steps emits the loop over the inner dimension.
func steps(s set, t Mem, sums [][]reg.VecVirtual, pointers []reg.GPVirtual, rowA, stepA reg.GPVirtual) {
	vectors := len(sums[0])
	b, k := Mem{Base: field(t, tileB)}, field(t, tileK)
	Label("step")
	// Several rows share the registers of B, if there are enough.
	var right []reg.VecVirtual
	if registers := s.bytes / 2; len(sums) > 1 && vectors*(len(sums)+1) < registers {
		for v := range vectors {
			right = append(right, load(b.Offset(v*s.bytes), s.vector()))
		}
	}
	for i, row := range sums {
		left := s.vector()
		at := Mem{Base: pointers[i/3]}
		if i%3 > 0 {
			at.Index, at.Scale = rowA, uint8(i%3)
		}
		VBROADCASTSS(at, left)
		for v, sum := range row {
			if right == nil {
				VFMADD231PS(b.Offset(v*s.bytes), left, sum)
			} else {
				VFMADD231PS(right[v], left, sum)
			}
		}
	}
	for _, p := range pointers {
		ADDQ(stepA, p)
	}
	ADDQ(t.Offset(tileStepB), b.Base)
	DECQ(k)
	JNZ(LabelRef("step"))
}

// finish stores the sums in C or adds them to it, and moves c to the next tile.
func finish(s set, t Mem, sums [][]reg.VecVirtual, c reg.GPVirtual) {
	rowC, to := field(t, tileRowC), Mem{Base: c}
	last := len(sums[0]) - 1
	var mask reg.VecVirtual
	var masked reg.OpmaskVirtual
	each := func(step func(sum reg.VecVirtual, at Mem, partial bool)) {
		for _, row := range sums {
			for v, sum := range row {
				step(sum, to.Offset(v*s.bytes), v == last)
			}
			ADDQ(rowC, c)
		}
	}
	if s.masks {
		masked = K()
		KMOVW(t.Offset(tileMask), masked)
		CMPQ(t.Offset(tileAdd), Imm(0))
		JNE(LabelRef("add"))
		each(func(sum reg.VecVirtual, at Mem, partial bool) {
			if partial {
				VMOVUPS(sum, masked, at)
			} else {
				VMOVUPS(sum, at)
			}
		})
		JMP(LabelRef("next"))
		Label("add")
		each(func(sum reg.VecVirtual, at Mem, partial bool) {
			if partial {
				old := s.vector()
				VMOVUPS_Z(at, masked, old)
				VADDPS(sum, old, sum)
				VMOVUPS(sum, masked, at)
			} else {
				VADDPS(at, sum, sum)
				VMOVUPS(sum, at)
			}
		})
		Label("next")
		return
	}
	CMPQ(t.Offset(tileMask), Imm(0xff))
	JNE(LabelRef("partial"))
	CMPQ(t.Offset(tileAdd), Imm(0))
	JNE(LabelRef("add"))
	each(func(sum reg.VecVirtual, at Mem, _ bool) { VMOVUPS(sum, at) })
	JMP(LabelRef("next"))
	Label("add")
	each(func(sum reg.VecVirtual, at Mem, _ bool) {
		VADDPS(at, sum, sum)
		VMOVUPS(sum, at)
	})
	JMP(LabelRef("next"))
	Label("partial")
	mask = load(t.Offset(tileLanes), s.vector())
	CMPQ(t.Offset(tileAdd), Imm(0))
	JNE(LabelRef("addPartial"))
	each(func(sum reg.VecVirtual, at Mem, partial bool) {
		if partial {
			VMASKMOVPS(sum, mask, at)
		} else {
			VMOVUPS(sum, at)
		}
	})
	JMP(LabelRef("next"))
	Label("addPartial")
	each(func(sum reg.VecVirtual, at Mem, partial bool) {
		if partial {
			old := s.vector()
			VMASKMOVPS(at, mask, old)
			VADDPS(sum, old, sum)
			VMASKMOVPS(sum, mask, at)
		} else {
			VADDPS(at, sum, sum)
			VMOVUPS(sum, at)
		}
	})
	Label("next")
}
