package main

import (
	"fmt"

	"github.com/ringtrain/ringtrain/tools/neon"
)

// The offsets of the fields of nn/cpu/sgemm's tiles.
const (
	tileA = 8 * iota
	tileB
	tileC
	_ // rowA
	tileStepA
	tileNextA
	tileStepB
	tileRowC
	tileK
	tileCount
	tileAdd
	tileMask
	_
	_
	_
	_
	_
	tileEnd
)

// The registers of a product kernel. Sums begin at V0.
const (
	left  = 28 // elements of A
	spare = 31
)

// right returns the first register with elements of B.
func right(vectors int) int { return 28 - max(4, vectors) }

// product emits a kernel for tiles of C with a number of rows, each of some registers.
func (g generator) product(rows, vectors int) {
	g.begin(fmt.Sprintf("neonRows%dx%d", rows, vectors), "t", tileEnd/8, fmt.Sprintf("computes tiles of %d rows and %d columns.", rows, 4*vectors))
	for _, f := range []struct{ register, offset int }{
		{1, tileA}, {3, tileC}, {4, tileStepA}, {5, tileNextA}, {6, tileStepB}, {7, tileRowC}, {9, tileCount}, {10, tileAdd}, {11, tileMask},
	} {
		g.Emit("MOVD %d(R0), R%d", f.offset, f.register)
	}
	g.Label("tile")
	g.Emit("MOVD %d(R0), R2", tileB)
	g.Emit("MOVD R1, R8")
	g.Emit("MOVD %d(R0), R12", tileK)
	g.Emit("MOVD R3, R13")
	for i := range rows {
		g.Emit("PRFM (R13), PLDL2KEEP") // needed only after the loop
		g.Emit("ADD R7, R13")
		for v := range vectors {
			n := i*vectors + v
			g.Emit("VEOR V%d.B16, V%d.B16, V%d.B16", n, n, n)
		}
	}
	g.Label("step")
	b := right(vectors)
	g.Emit("VLD1 (R2), %s", neon.List(b, min(4, vectors), "S4"))
	if vectors == 8 {
		g.Emit("ADD $64, R2, R13")
		g.Emit("VLD1 (R13), %s", neon.List(b+4, 4, "S4"))
	}
	g.Emit("VLD1 (R8), %s", neon.List(left, (rows+3)/4, "S4"))
	for i := range rows {
		for v := range vectors {
			g.multiplyAdd(i*vectors+v, b+v, left+i/4, i%4)
		}
	}
	g.Emit("ADD R6, R2")
	g.Emit("ADD R4, R8")
	g.Emit("SUBS $1, R12")
	g.Emit("BNE step")
	g.finish(rows, vectors)
	g.Emit("ADD R5, R1")
	g.Emit("SUBS $1, R9")
	g.Emit("BNE tile")
	g.Emit("RET")
}

// finish stores the sums in C or adds them to it, and moves R3 to the next tile.
func (g generator) finish(rows, vectors int) {
	last := vectors - 1
	each := func(whole, partial func(sum int)) {
		for i := range rows {
			g.Emit("MOVD R3, R13")
			for v := range vectors {
				if v == last {
					partial(i*vectors + v)
				} else {
					whole(i*vectors + v)
					g.Emit("ADD $16, R13")
				}
			}
			g.Emit("ADD R7, R3")
		}
	}
	store := func(sum int) { g.Emit("VST1 %s, (R13)", neon.List(sum, 1, "S4")) }
	add := func(sum int) {
		g.Emit("VLD1 (R13), %s", neon.List(spare, 1, "S4"))
		g.Three(fadd, sum, sum, spare)
		store(sum)
	}
	g.Emit("CMP $15, R11")
	g.Emit("BNE partial")
	g.Emit("CBNZ R10, add")
	each(store, store)
	g.Emit("B next")
	g.Label("add")
	each(add, add)
	g.Emit("B next")
	g.Label("partial")
	g.Emit("CBNZ R10, addPartial")
	each(store, func(sum int) { g.lanes(sum, "R13", func(r, lane int) { g.Emit("VST1 V%d.S[%d], (R14)", r, lane) }) })
	g.Emit("B next")
	g.Label("addPartial")
	each(add, func(sum int) {
		g.lanes(spare, "R13", func(r, lane int) { g.Emit("VLD1 (R14), V%d.S[%d]", r, lane) })
		g.Three(fadd, sum, sum, spare)
		g.lanes(sum, "R13", func(r, lane int) { g.Emit("VST1 V%d.S[%d], (R14)", r, lane) })
	})
	g.Label("next")
}

// lanes emits move for the lanes of a register that the mask in R11 has, at most three, with the
// address in R14.
func (g generator) lanes(r int, from string, move func(r, lane int)) {
	g.Emit("MOVD %s, R14", from)
	move(r, 0)
	g.Emit("ADD $4, R14")
	g.Emit("TBZ $1, R11, 5(PC)")
	move(r, 1)
	g.Emit("ADD $4, R14")
	g.Emit("TBZ $2, R11, 2(PC)")
	move(r, 2)
}
