package main

import "fmt"

// The offsets of the fields of nn/cpu/sgemm's strip.
const (
	stripTo = 8 * iota
	stripFrom
	stripStepTo
	stripStepFrom
	stripCount
	stripMask
	_
	_
	_
	_
	stripEnd
)

// fields loads the fields of a strip: R1 to, R2 from, R3 and R4 the steps, R5 the count, R11 the
// mask.
func (g generator) fields() {
	for _, f := range []struct{ register, offset int }{
		{1, stripTo}, {2, stripFrom}, {3, stripStepTo}, {4, stripStepFrom}, {5, stripCount}, {11, stripMask},
	} {
		g.Emit("MOVD %d(R0), R%d", f.offset, f.register)
	}
}

// copies emits a kernel that copies rows of at most one register.
func (g generator) copies() {
	g.begin("neonCopy", "s", stripEnd/8, "copies rows of at most one register, and writes whole registers.")
	g.fields()
	g.Emit("VEOR V0.B16, V0.B16, V0.B16")
	g.Emit("CMP $15, R11")
	g.Emit("BNE partial")
	g.Label("row")
	g.Emit("VLD1 (R2), [V0.S4]")
	g.Emit("VST1 [V0.S4], (R1)")
	g.Emit("ADD R4, R2")
	g.Emit("ADD R3, R1")
	g.Emit("SUBS $1, R5")
	g.Emit("BNE row")
	g.Emit("RET")
	g.Label("partial")
	g.lanes(0, "R2", func(r, lane int) { g.Emit("VLD1 (R14), V%d.S[%d]", r, lane) })
	g.Emit("VST1 [V0.S4], (R1)")
	g.Emit("ADD R4, R2")
	g.Emit("ADD R3, R1")
	g.Emit("SUBS $1, R5")
	g.Emit("BNE partial")
	g.Emit("RET")
}

// transposes emits a kernel that transposes four columns of four rows at a time.
func (g generator) transposes() {
	g.begin("neonTranspose", "s", stripEnd/8, "writes columns of four rows. The count is a multiple of 4.")
	g.fields()
	g.Emit("ADD R4, R2, R6")
	g.Emit("ADD R4, R6, R7")
	g.Emit("ADD R4, R7, R8")
	g.Label("columns")
	for r, from := range []string{"R2", "R6", "R7", "R8"} {
		g.Emit("VLD1.P 16(%s), [V%d.S4]", from, r)
	}
	for half := range 2 { // pairs of elements of two rows, first the even columns and then the odd ones
		g.Emit("VTRN%d V1.S4, V0.S4, V%d.S4", half+1, 4+2*half)
		g.Emit("VTRN%d V3.S4, V2.S4, V%d.S4", half+1, 5+2*half)
	}
	for column := range 4 {
		pair := 4 + column%2*2
		g.Emit("VTRN%d V%d.D2, V%d.D2, V%d.D2", column/2+1, pair+1, pair, 16+column)
		g.Emit("VST1 [%s], (R1)", fmt.Sprintf("V%d.S4", 16+column))
		g.Emit("ADD R3, R1")
	}
	g.Emit("SUBS $4, R5")
	g.Emit("BNE columns")
	g.Emit("RET")
}
