// Package kernel holds what the generators of kernels share. A kernel takes only
// whole blocks of elements and leaves the rest to a Go loop.
//
// The assembler lists operands in the reverse of Intel's order: the destination comes
// last, and before it the first source, whose NaN has precedence.
package kernel

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Vector is the size of a register in bytes.
const Vector = 32

// Unroll is the number of blocks per iteration of a wide loop.
const Unroll = 4

// Loops emits the loops of a kernel over n elements, first Unroll blocks at a time and
// then one. step handles the k-th block at the pointers; advance moves the pointers
// forward by a number of blocks.
func Loops(n reg.Register, block int, step func(k int), advance func(blocks int)) {
	loop("wide", "narrow", Unroll, n, block, step, advance)
	loop("narrow", "done", 1, n, block, step, advance)
	Label("done")
}

// Loop is Loops without unrolling, for a long step.
func Loop(n reg.Register, block int, step func(k int), advance func(blocks int)) {
	loop("narrow", "done", 1, n, block, step, advance)
	Label("done")
}

func loop(name, next string, count int, n reg.Register, block int, step func(k int), advance func(blocks int)) {
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

// End ends a kernel.
func End() {
	VZEROUPPER()
	RET()
}

// Begin begins a function that keeps no pointers and needs no stack.
func Begin(name, signature, doc string) {
	TEXT(name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(doc)
}

// Base returns the pointer of a slice parameter.
func Base(name string) Mem {
	return Mem{Base: Load(Param(name).Base(), GP64())}
}

// Length returns the number of elements of a slice parameter.
func Length(name string) reg.Register {
	return Load(Param(name).Len(), GP64())
}

// Pointer returns a pointer parameter.
func Pointer(name string) Mem {
	return Mem{Base: Load(Param(name), GP64())}
}

// Move advances pointers by a number of bytes.
func Move(bytes int, pointers ...Mem) {
	for _, p := range pointers {
		ADDQ(U32(uint32(bytes)), p.Base)
	}
}
