// Command foldgen writes the AVX2 kernels of collective/fold: the assembly and
// the Go declarations that belong to it. go generate in that package runs it.
//
// A kernel takes whole blocks only: a multiple of 8 elements of float32, of 4
// of float64, of 16 of a 16-bit format. The rest is left to the Go loops. The
// assembler names operands the other way round than Intel: the destination
// comes last, and the first source, whose NaN has precedence, before it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!noasm,!race")
	for _, f := range floats {
		into("sum", f, f.add)
		into("prod", f, f.mul)
		into("min", f, f.extreme(f.min, f.or))
		into("max", f, f.extreme(f.max, f.and))
		scale(f)
	}
	widenHalf()
	widenBrain()
	roundHalf()
	roundBrain()
	Generate()
}

// unroll is how many blocks a turn of the wide loop takes.
const unroll = 4

// blocks emits the loops of a kernel over n elements: step handles the k-th
// block at the pointers, advance moves them on by so many blocks.
func blocks(n reg.Register, block int, step func(k int), advance func(blocks int)) {
	loop := func(name, next string, count int) {
		Label(name)
		CMPQ(n, U32(count*block))
		JL(LabelRef(next))
		for k := range count {
			step(k)
		}
		advance(count)
		SUBQ(U32(count*block), n)
		JMP(LabelRef(name))
	}
	loop("wide", "narrow", unroll)
	loop("narrow", "done", 1)
	Label("done")
	VZEROUPPER()
	RET()
}

// function begins a function that keeps no pointer and needs no stack.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(doc)
}

// base is the pointer of a slice parameter.
func base(name string) Mem {
	return Mem{Base: Load(Param(name).Base(), GP64())}
}

// length is the number of elements of a slice parameter.
func length(name string) reg.Register {
	return Load(Param(name).Len(), GP64())
}
