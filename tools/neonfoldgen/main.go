// Command neonfoldgen writes the NEON kernels of collective/fold: the assembly and its Go
// declarations. go generate in that package runs it.
//
// A kernel takes whole blocks of 64 bytes, or of 16 elements if it converts. Processors
// differ in the NaN that an operation returns, so kernels for floats stop before a block
// whose result has one, and return the number of elements that are done. The Go loop does
// that block.
package main

import (
	"fmt"

	"github.com/ringtrain/ringtrain/tools/neon"
)

func main() {
	g := generator{neon.New("neonfoldgen", "fold", "!noasm && !race")}
	neon.Main(g.Writer, func() {
		for _, t := range types {
			for _, o := range t.ops {
				g.into(t, o)
			}
			if t.float {
				g.scale(t)
			}
		}
		g.widen("Half", neon.Op{Name: "FCVTL", Word: 0x0e217800})
		g.widen("Brain", neon.Op{Name: "SHLL", Word: 0x2e613800})
		g.roundHalf()
		g.roundBrain()
	})
}

type generator struct{ *neon.Writer }

// A vectorType is an element type as kernels see it.
type vectorType struct {
	name   string // in Go
	suffix string // of kernels
	shape  string // of a register
	lanes  int    // of a register
	float  bool
	ops    []operation
}

type operation struct {
	name, mnemonic string
	word           int
}

// op returns the instruction.
func (t vectorType) op(o operation) neon.Op {
	return neon.Op{Name: o.mnemonic, Shape: t.shape, Word: o.word}
}

var types = []vectorType{
	{"float32", "32", "S4", 4, true, []operation{
		{"Sum", "FADD", 0x4e20d400}, {"Prod", "FMUL", 0x6e20dc00}, {"Min", "FMIN", 0x4ea0f400}, {"Max", "FMAX", 0x4e20f400},
	}},
	{"float64", "64", "D2", 2, true, []operation{
		{"Sum", "FADD", 0x4e60d400}, {"Prod", "FMUL", 0x6e60dc00}, {"Min", "FMIN", 0x4ee0f400}, {"Max", "FMAX", 0x4e60f400},
	}},
	{"int32", "Int32", "S4", 4, false, []operation{
		{"Sum", "ADD", 0x4ea08400}, {"Prod", "MUL", 0x4ea09c00}, {"Min", "SMIN", 0x4ea06c00}, {"Max", "SMAX", 0x4ea06400},
	}},
	{"int64", "Int64", "D2", 2, false, []operation{{"Sum", "ADD", 0x4ee08400}}}, // NEON has no others
	{"uint8", "Uint8", "B16", 16, false, []operation{
		{"Sum", "ADD", 0x4e208400}, {"Prod", "MUL", 0x4e209c00}, {"Min", "UMIN", 0x6e206c00}, {"Max", "UMAX", 0x6e206400},
	}},
}

// into emits a kernel that folds two operands: dst in R0, a in R1, b in R2, and in R4 how
// many elements are left.
func (g generator) into(t vectorType, o operation) {
	doc := "is Into for whole blocks."
	if t.float {
		doc = "is Into for whole blocks, up to the first that has a NaN."
	}
	g.Begin("neon"+o.name+t.suffix, fmt.Sprintf("(dst, a, b *%s, n int) (done int)", t.name), 40, doc)
	g.Pointers("dst", "a", "b", "n")
	g.Emit("MOVD R3, R4")
	g.Blocks(4, 4*t.lanes, func() {
		g.Emit("VLD1.P 64(R1), %s", neon.List(0, 4, t.shape))
		g.Emit("VLD1.P 64(R2), %s", neon.List(4, 4, t.shape))
		for i := range 4 {
			g.Three(t.op(o), 16+i, i, 4+i)
		}
		g.stopAtNaN(t)
		g.Emit("VST1.P %s, 64(R0)", neon.List(16, 4, t.shape))
	})
	g.Emit("SUB R4, R3")
	g.Emit("MOVD R3, done+32(FP)")
	g.Emit("RET")
}

// scale emits a kernel that scales x, in R0, by V30.
func (g generator) scale(t vectorType) {
	g.Begin("neonScale"+t.suffix, fmt.Sprintf("(x *%s, by %s, n int) (done int)", t.name, t.name), 32, "is Scale for whole blocks, up to the first that has a NaN.")
	g.Pointers("x")
	g.Emit("FMOV%c by+8(FP), F30", t.shape[0])
	g.Emit("VDUP V30.%c[0], V30.%s", t.shape[0], t.shape)
	g.Emit("MOVD n+16(FP), R3")
	g.Emit("MOVD R3, R4")
	g.Blocks(4, 4*t.lanes, func() {
		g.Emit("VLD1 (R0), %s", neon.List(0, 4, t.shape))
		for i := range 4 {
			g.Three(t.op(t.ops[1]), 16+i, i, 30)
		}
		g.stopAtNaN(t)
		g.Emit("VST1.P %s, 64(R0)", neon.List(16, 4, t.shape))
	})
	g.Emit("SUB R4, R3")
	g.Emit("MOVD R3, done+24(FP)")
	g.Emit("RET")
}

// stopAtNaN ends a kernel for floats if V16 to V19 have a NaN: the maximum is NaN then.
func (g generator) stopAtNaN(t vectorType) {
	if !t.float {
		return
	}
	greatest := t.op(t.ops[3])
	g.Three(greatest, 20, 16, 17)
	g.Three(greatest, 21, 18, 19)
	g.Three(greatest, 20, 20, 21)
	across, compare := 0x6e30f800, "FCMPS"
	if t.name == "float64" {
		across, compare = 0x7e70f800, "FCMPD"
	}
	g.Two(neon.Op{Name: "FMAX across", Word: across}, 22, 20)
	g.Emit("%s F22, F22", compare)
	g.Emit("BVS end")
}

// convert emits a kernel that converts blocks of 16 elements, src in R1, to dst in R0.
func (g generator) convert(name, to, from, doc string, before, body func()) {
	g.Begin("neon"+name, fmt.Sprintf("(dst *%s, src *%s, n int)", to, from), 24, doc)
	g.Pointers("dst", "src", "n")
	before()
	g.Blocks(2, 16, body)
	g.Emit("RET")
}

func (g generator) widen(format string, o neon.Op) {
	g.convert("Widen"+format, "float32", "uint16", "is Widen for whole blocks.", func() {}, func() {
		g.Emit("VLD1.P 32(R1), %s", neon.List(0, 2, "H8"))
		for i := range 2 {
			g.Two(o, 16+2*i, i)
			g.Two(o.Upper(), 17+2*i, i)
		}
		g.Emit("VST1.P %s, 64(R0)", neon.List(16, 4, "S4"))
	})
}

func (g generator) roundHalf() {
	narrow := neon.Op{Name: "FCVTN", Word: 0x0e216800}
	g.convert("RoundHalf", "uint16", "float32", "is Round for whole blocks.", func() {}, func() {
		g.Emit("VLD1.P 64(R1), %s", neon.List(0, 4, "S4"))
		for i := range 2 {
			g.Two(narrow, 16+i, 2*i)
			g.Two(narrow.Upper(), 16+i, 2*i+1)
		}
		g.Emit("VST1.P %s, 32(R0)", neon.List(16, 2, "H8"))
	})
}

// roundBrain rounds the bits of numbers as integers, to nearest even. It only makes a NaN
// quiet.
func (g generator) roundBrain() {
	const one, half, quiet = 29, 30, 31 // registers
	var (
		isNumber  = neon.Op{Name: "FCMEQ", Shape: "S4", Word: 0x4e20e400} // all ones unless it is NaN
		unless    = neon.Op{Name: "BIF", Shape: "B16", Word: 0x6ee01c00}
		upperHalf = neon.Op{Name: "SHRN $16,", Word: 0x0f108400}
	)
	g.convert("RoundBrain", "uint16", "float32", "is Round for whole blocks.", func() {
		g.Constant(one, 1)
		g.Constant(half, 1<<15-1)
		g.Constant(quiet, 1<<22)
	}, func() {
		g.Emit("VLD1.P 64(R1), %s", neon.List(0, 4, "S4"))
		for i := range 4 {
			g.Three(isNumber, 24, i, i)
			g.Emit("VUSHR $16, V%d.S4, V25.S4", i)
			g.Emit("VAND V%d.B16, V25.B16, V25.B16", one)
			g.Emit("VADD V%d.S4, V25.S4, V25.S4", half)
			g.Emit("VADD V%d.S4, V25.S4, V25.S4", i)
			g.Emit("VORR V%d.B16, V%d.B16, V26.B16", quiet, i)
			g.Three(unless, 25, 26, 24)
			narrow := upperHalf
			if i%2 == 1 {
				narrow = narrow.Upper()
			}
			g.Two(narrow, 16+i/2, 25)
		}
		g.Emit("VST1.P %s, 32(R0)", neon.List(16, 2, "H8"))
	})
}
